"""The Job controller, for Indexed Jobs: pods with a completion index, counted once thanks to a tracking finalizer."""

from collections.abc import Callable, Mapping
from datetime import datetime

from infra.local.cluster.controllers import events, lifetime
from infra.local.cluster.controllers.conditions import find, of
from infra.local.cluster.controllers.job_plan import FINAL, Plan, not_covered, plan
from infra.local.cluster.controllers.job_pods import Pods, is_tracked, new_pod, released
from infra.local.cluster.controllers.ownership import by_controller
from infra.local.cluster.controllers.pace import Pace
from infra.local.cluster.controllers.rounds import each
from infra.local.cluster.objects import ApiError, Object, Objects

SOURCE = "job-controller"


def reconcile(objects: Objects, now: datetime, pace: Pace) -> datetime | None:
    jobs = objects.stored("jobs")
    pods = by_controller(objects.stored("pods"))
    doubt = events.doubting(objects, SOURCE, now)
    living = {job["metadata"]["uid"] for job in jobs if "deletionTimestamp" not in job["metadata"]}
    each([pod for uid in pods if uid not in living for pod in pods[uid]], lambda pod: _let_go(objects, pod), doubt)

    def control(job: Object) -> datetime | None:
        if "deletionTimestamp" in job["metadata"] or "managedBy" in job["spec"]:
            return None
        if uncovered := not_covered(job):
            message = f"the local Job controller does not implement {', '.join(uncovered)}"
            events.record_once(objects, events.Happening(job, "NotImplemented", message, SOURCE, warns=True), now)
            return None
        expiry = lifetime.expiry(job, FINAL)
        if expiry is not None and expiry <= now:
            _delete(objects, "jobs", job)
            return None
        decided = plan(job, Pods.of(job, pods[job["metadata"]["uid"]]), now, pace.pod_backoff)
        _carry_out(objects, job, decided, now)
        return expiry or decided.wake

    return each(jobs, control, doubt)


def _let_go(objects: Objects, pod: Object) -> None:
    """Remove the tracking finalizer of a pod whose Job is gone or being deleted, so that the pod can be removed."""
    if is_tracked(pod):
        objects.update("pods", released(pod))


def _carry_out(objects: Objects, job: Object, decided: Plan, now: datetime) -> None:
    if decided.status != job.get("status"):
        objects.update("jobs", job | {"status": decided.status}, status=True)
        _tell_change(objects, job, decided.status, now)
    for pod in decided.counted:
        objects.update("pods", released(pod))
    for pod in decided.delete:
        _delete(objects, "pods", pod)
        message = f"Deleted pod: {pod['metadata']['name']}"
        events.record(objects, events.Happening(job, "SuccessfulDelete", message, SOURCE), now)
    for index in decided.missing:
        if not _create(objects, job, index, now):
            return


def _create(objects: Objects, job: Object, index: int, now: datetime) -> bool:
    """Create a pod; return whether it worked. If not, stop for this Job: its other followers await the same leader."""
    try:
        pod = objects.create("pods", new_pod(job, index))
    except ApiError as error:
        message = f"Error creating: {error.message}"
        events.record_once(objects, events.Happening(job, "FailedCreate", message, SOURCE, warns=True), now)
        return False
    message = f"Created pod: {pod['metadata']['name']}"
    events.record(objects, events.Happening(job, "SuccessfulCreate", message, SOURCE), now)
    return True


def _delete(objects: Objects, plural: str, obj: Object) -> None:
    objects.delete(plural, obj["metadata"]["namespace"], obj["metadata"]["name"])


def _tell_change(objects: Objects, job: Object, status: Object, now: datetime) -> None:
    """Record events for the conditions that change with this status, as pkg/controller/job does."""
    before = of(job)
    for condition in of({"status": status}):
        said = find(before, condition["type"])
        news = None if said and said["status"] == condition["status"] else _NEWS.get(condition["type"])
        if news is not None:
            reason, message = news(condition)
            failed = condition["type"] == "Failed"
            events.record(objects, events.Happening(job, reason, message, SOURCE, warns=failed), now)


def _suspension(condition: Object) -> tuple[str, str]:
    return ("Suspended", "Job suspended") if condition["status"] == "True" else ("Resumed", "Job resumed")


_NEWS: Mapping[str, Callable[[Object], tuple[str, str]]] = {
    "Complete": lambda _: ("Completed", "Job completed"),
    "Failed": lambda condition: (condition["reason"], condition["message"]),
    "Suspended": _suspension,
}
"""Reason and message of the event for a condition."""
