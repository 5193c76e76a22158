"""The Job controller, for Indexed Jobs and those of one pod; pods are counted once thanks to a tracking finalizer."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tpu_standins.clients.conditions import find, is_true, of, since
from tpu_standins.clients.errors import ApiError
from tpu_standins.clients.events import Happening, Recorder
from tpu_standins.clients.objects import Object, Objects
from tpu_standins.clients.owners import by_controller
from tpu_standins.clients.rounds import Across, each, soonest
from tpu_standins.embedded.controllers.job_plan import FINAL, Plan, is_tracked, new_pod, not_covered, plan, released
from tpu_standins.embedded.controllers.nodes import Pace

AT_A_TIME = 5
"""How many Jobs are worked on at a time: as in the original (--concurrent-job-syncs)."""


@dataclass(slots=True)
class JobController:
    """Remembers which Jobs were told to be unsupported, and when to try again what was refused.

    `across` processes the Jobs.
    """

    across: Across = map
    _recorder: Recorder = field(default_factory=lambda: Recorder("job-controller"))
    _unsupported: set[str] = field(default_factory=set)
    _retries: dict[str, datetime] = field(default_factory=dict)

    def reconcile(self, objects: Objects, now: datetime, pace: Pace) -> datetime | None:
        jobs, doubt = objects.stored("jobs"), self._recorder.doubting(objects, now)
        pods = by_controller(objects.stored("pods"))
        living = {job["metadata"]["uid"] for job in jobs if "deletionTimestamp" not in job["metadata"]}
        self._retries = {uid: retry for uid, retry in self._retries.items() if uid in living and retry > now}

        def let_go(pod: Object) -> None:
            if is_tracked(pod):
                objects.patch("pods", pod["metadata"]["namespace"], pod["metadata"]["name"], released(pod))

        def control(job: Object) -> datetime | None:
            uid = job["metadata"]["uid"]
            if uid not in living or "managedBy" in job["spec"] or self._refused(objects, job, now):
                return None
            end = expiry(job)
            if end is not None and end <= now:
                _delete(objects, "jobs", job, "Foreground")
                return None
            decided = plan(job, pods[uid], now, pace.pod_backoff)
            self._carry_out(objects, job, decided, now, now + pace.creation_backoff)
            return soonest([end, decided.wake, self._retries.get(uid)])

        each([pod for uid in pods if uid not in living for pod in pods[uid]], let_go, doubt)
        return each(jobs, control, doubt, across=self.across)

    def _refused(self, objects: Objects, job: Object, now: datetime) -> bool:
        uncovered, uid = not_covered(job), job["metadata"]["uid"]
        if uncovered and uid not in self._unsupported:
            self._unsupported.add(uid)
            message = f"the embedded Job controller does not implement {', '.join(uncovered)}"
            self._recorder.record(objects, Happening(job, "NotImplemented", message, warns=True), now)
        return bool(uncovered)

    def _carry_out(self, objects: Objects, job: Object, decided: Plan, now: datetime, retry: datetime) -> None:
        uid = job["metadata"]["uid"]
        if decided.status != job.get("status"):
            objects.update("jobs", job | {"status": decided.status}, status=True)
            self._tell(objects, job, decided.status, now)
        for pod in decided.counted:
            objects.patch("pods", pod["metadata"]["namespace"], pod["metadata"]["name"], released(pod))
        for pod in decided.delete:
            _delete(objects, "pods", pod, "Background")
            event = Happening(job, "SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")
            self._recorder.record(objects, event, now)
        for index in decided.missing if uid not in self._retries else ():
            try:
                pod = objects.create("pods", new_pod(job, index))
            except ApiError as error:  # stop for this Job: its other followers await the same leader
                event = Happening(job, "FailedCreate", f"Error creating: {error.message}", warns=True)
                self._recorder.record(objects, event, now)
                self._retries[uid] = retry
                return
            event = Happening(job, "SuccessfulCreate", f"Created pod: {pod['metadata']['name']}")
            self._recorder.record(objects, event, now)

    def _tell(self, objects: Objects, job: Object, status: Object, now: datetime) -> None:
        for new in of({"status": status}):
            before = find(of(job), new["type"])
            if before is not None and before["status"] == new["status"]:
                continue
            resumed = "Suspended" if new["status"] == "True" else "Resumed"
            reason = {"Complete": "Completed", "Failed": new["reason"], "Suspended": resumed}.get(new["type"])
            if reason is not None:
                message = new["message"] if new["type"] != "Complete" else "Job completed"
                event = Happening(job, reason, message, warns=new["type"] == "Failed")
                self._recorder.record(objects, event, now)


def expiry(job: Object) -> datetime | None:
    """Return when a finished Job is to be deleted (ttlSecondsAfterFinished); None: never (pure)."""
    seconds = job["spec"].get("ttlSecondsAfterFinished")
    end = next((since(job, kind) for kind in FINAL.values() if is_true(job, kind)), None)
    return None if seconds is None or end is None else end + timedelta(seconds=seconds)


def _delete(objects: Objects, plural: str, obj: Object, propagation: str) -> None:
    objects.delete(plural, obj["metadata"]["namespace"], obj["metadata"]["name"], propagation=propagation)
