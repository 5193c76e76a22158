"""The Job controller, for Indexed Jobs: pods with a completion index, counted once thanks to a tracking finalizer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from infra.local.clients.conditions import find, is_true, of, since
from infra.local.clients.errors import ApiError
from infra.local.clients.events import Happening, Recorder
from infra.local.clients.objects import Object, Objects
from infra.local.clients.owners import by_controller
from infra.local.clients.rounds import each, soonest
from infra.local.embedded.controllers.job_plan import FINAL, Plan, not_covered, plan
from infra.local.embedded.controllers.job_pods import Pods, is_tracked, new_pod, released
from infra.local.embedded.controllers.pace import Pace


@dataclass(slots=True)
class JobController:
    """Remembers which Jobs were told to be unsupported, and when to try again what was refused."""

    _recorder: Recorder = field(default_factory=lambda: Recorder("job-controller"))
    _unsupported: set[str] = field(default_factory=set)
    _retries: dict[str, datetime] = field(default_factory=dict)

    def reconcile(self, objects: Objects, now: datetime, pace: Pace) -> datetime | None:
        jobs = objects.stored("jobs")
        pods = by_controller(objects.stored("pods"))
        doubt = self._recorder.doubting(objects, now)
        living = {job["metadata"]["uid"] for job in jobs if "deletionTimestamp" not in job["metadata"]}
        self._retries = {uid: retry for uid, retry in self._retries.items() if uid in living and retry > now}

        def let_go(pod: Object) -> None:
            if is_tracked(pod):
                objects.update("pods", released(pod))

        each([pod for uid in pods if uid not in living for pod in pods[uid]], let_go, doubt)

        def control(job: Object) -> datetime | None:
            if "deletionTimestamp" in job["metadata"] or "managedBy" in job["spec"] or self._tell(objects, job, now):
                return None
            end = expiry(job)
            if end is not None and end <= now:
                _delete(objects, "jobs", job, "Foreground")
                return None
            decided = plan(job, Pods.of(job, pods[job["metadata"]["uid"]]), now, pace.pod_backoff)
            return soonest([end, decided.wake, self._carry_out(objects, job, decided, now, pace.creation_backoff)])

        return each(jobs, control, doubt)

    def _tell(self, objects: Objects, job: Object, now: datetime) -> bool:
        """Say once that a Job uses what this controller does not implement; return whether it does."""
        uncovered, uid = not_covered(job), job["metadata"]["uid"]
        if uncovered and uid not in self._unsupported:
            self._unsupported.add(uid)
            message = f"the embedded Job controller does not implement {', '.join(uncovered)}"
            self._recorder.record(objects, Happening(job, "NotImplemented", message, warns=True), now)
        return bool(uncovered)

    def _carry_out(
        self, objects: Objects, job: Object, decided: Plan, now: datetime, backoff: timedelta
    ) -> datetime | None:
        """Carry out a plan; return when to try again what was refused."""
        if decided.status != job.get("status"):
            objects.update("jobs", job | {"status": decided.status}, status=True)
            self._tell_change(objects, job, decided.status, now)
        for pod in decided.counted:
            objects.update("pods", released(pod))
        for pod in decided.delete:
            _delete(objects, "pods", pod, "Background")
            message = f"Deleted pod: {pod['metadata']['name']}"
            self._recorder.record(objects, Happening(job, "SuccessfulDelete", message), now)
        uid = job["metadata"]["uid"]
        for index in decided.missing if uid not in self._retries else ():
            try:
                pod = objects.create("pods", new_pod(job, index))
            except ApiError as error:  # stop for this Job: its other followers await the same leader
                event = Happening(job, "FailedCreate", f"Error creating: {error.message}", warns=True)
                self._recorder.record(objects, event, now)
                self._retries[uid] = now + backoff
                break
            message = f"Created pod: {pod['metadata']['name']}"
            self._recorder.record(objects, Happening(job, "SuccessfulCreate", message), now)
        return self._retries.get(uid)

    def _tell_change(self, objects: Objects, job: Object, status: Object, now: datetime) -> None:
        """Record events for the conditions that change with this status, as pkg/controller/job does."""
        for condition in of({"status": status}):
            before = find(of(job), condition["type"])
            same = before is not None and before["status"] == condition["status"]
            news = None if same else _NEWS.get(condition["type"])
            if news is not None:
                reason, message = news(condition)
                failed = condition["type"] == "Failed"
                self._recorder.record(objects, Happening(job, reason, message, warns=failed), now)


def expiry(job: Object) -> datetime | None:
    """Return when a finished Job is to be deleted (ttlSecondsAfterFinished); None: never (pure)."""
    seconds = job["spec"].get("ttlSecondsAfterFinished")
    end = next((since(job, kind) for kind in FINAL if is_true(job, kind)), None)
    return None if seconds is None or end is None else end + timedelta(seconds=seconds)


def _delete(objects: Objects, plural: str, obj: Object, propagation: str) -> None:
    objects.delete(plural, obj["metadata"]["namespace"], obj["metadata"]["name"], propagation=propagation)


def _suspension(condition: Object) -> tuple[str, str]:
    return ("Suspended", "Job suspended") if condition["status"] == "True" else ("Resumed", "Job resumed")


_NEWS: Mapping[str, Callable[[Object], tuple[str, str]]] = {
    "Complete": lambda _: ("Completed", "Job completed"),
    "Failed": lambda condition: (condition["reason"], condition["message"]),
    "Suspended": _suspension,
}
"""Reason and message of the event for a condition."""
