"""The Job controller, for Indexed Jobs: pods with a completion index, counted once by a tracking finalizer."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from infra.local.cluster.controllers import events, lifetime
from infra.local.cluster.controllers.conditions import of
from infra.local.cluster.controllers.job_plan import FINAL, Plan, not_covered, plan
from infra.local.cluster.controllers.job_pods import Pods, is_tracked, new_pod, released
from infra.local.cluster.controllers.ownership import controller_uid
from infra.local.cluster.controllers.pace import Pace
from infra.local.cluster.controllers.rounds import each
from infra.local.cluster.objects import ApiError, Object, Objects

SOURCE = "job-controller"


def reconcile(objects: Objects, now: datetime, pace: Pace) -> datetime | None:
    jobs = objects.stored("jobs")
    pods = _by_controller(objects.stored("pods"))
    living = {job["metadata"]["uid"] for job in jobs if "deletionTimestamp" not in job["metadata"]}
    _let_go(objects, [pod for uid in pods if uid not in living for pod in pods[uid]])

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

    return each(jobs, control)


def _by_controller(pods: Iterable[Object]) -> defaultdict[str, list[Object]]:
    owned: defaultdict[str, list[Object]] = defaultdict(list)
    for pod in pods:
        uid = controller_uid(pod)
        if uid is not None:
            owned[uid].append(pod)
    return owned


def _let_go(objects: Objects, pods: Iterable[Object]) -> None:
    """Release tracked pods whose Job is gone or going, so that they can go too."""
    for pod in pods:
        if is_tracked(pod):
            objects.update("pods", released(pod))


def _carry_out(objects: Objects, job: Object, decided: Plan, now: datetime) -> None:
    if decided.status != job.get("status"):
        objects.update("jobs", job | {"status": decided.status}, status=True)
        _tell_end(objects, job, decided.status, now)
    for pod in decided.counted:
        objects.update("pods", released(pod))
    for pod in decided.delete:
        _delete(objects, "pods", pod)
    for index in decided.missing:
        if not _create(objects, job, index, now):
            return


def _create(objects: Objects, job: Object, index: int, now: datetime) -> bool:
    """Make a pod. A refusal ends this round of the Job: its other followers wait for the same leader."""
    try:
        objects.create("pods", new_pod(job, index))
    except ApiError as error:
        message = f"Error creating: {error.message}"
        events.record_once(objects, events.Happening(job, "FailedCreate", message, SOURCE, warns=True), now)
        return False
    return True


def _delete(objects: Objects, plural: str, obj: Object) -> None:
    objects.delete(plural, obj["metadata"]["namespace"], obj["metadata"]["name"])


def _tell_end(objects: Objects, job: Object, status: Object, now: datetime) -> None:
    ended = [c for c in of({"status": status}) if c["type"] in FINAL]
    for condition in ended:
        failed = condition["type"] == "Failed"
        reason, message = (condition["reason"], condition["message"]) if failed else ("Completed", "Job completed")
        events.record(objects, events.Happening(job, reason, message, SOURCE, warns=failed), now)
