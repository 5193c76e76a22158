"""The JobSet controller: child Jobs, the headless Service, policies, conditions.

JobSets managed by other controllers (spec.managedBy) are left alone.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby

from infra.local.clients.backoff import Backoff
from infra.local.clients.errors import ApiError, Unreachable
from infra.local.clients.events import Happening, Recorder
from infra.local.clients.objects import Object, Objects
from infra.local.clients.owners import by_controller, controlled_by
from infra.local.clients.rounds import Across, each
from infra.local.jobset import lifetime
from infra.local.jobset.child_jobs import replicated_job_name, subdomain
from infra.local.jobset.keys import JOBSET_CONTROLLER, JOBSET_NAME
from infra.local.jobset.plan import FINAL, Plan, plan

SOURCE = "jobset"
"""The name of the event recorder upstream (main.go)."""

_WARNINGS = ("Failed", "RestartingJobSet")


class _NotCreated(Exception):
    """An object that a JobSet needs was refused; the event to record."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class JobSets:
    """The controller, and what it remembers: its Events, and what was refused. `across` processes the JobSets."""

    def __init__(self, across: Across = map) -> None:
        self._across = across
        self._recorder = Recorder(SOURCE)
        self._backoff = Backoff()

    def reconcile(self, objects: Objects, now: datetime, _: object) -> datetime | None:
        jobs = by_controller(objects.stored("jobs"))
        jobsets = [jobset for jobset in objects.stored("jobsets") if _is_ours(jobset)]
        self._backoff.keep({jobset["metadata"]["uid"] for jobset in jobsets})

        def control(jobset: Object) -> datetime | None:
            return self._control(objects, jobset, jobs[jobset["metadata"]["uid"]], now)

        return each(jobsets, control, self._recorder.doubting(objects, now), across=self._across)

    def _control(self, objects: Objects, jobset: Object, jobs: Sequence[Object], now: datetime) -> datetime | None:
        expiry = lifetime.expiry(jobset, FINAL)
        if expiry is not None and expiry <= now:
            _delete(objects, "jobsets", jobset)
            return None
        uid, version = jobset["metadata"]["uid"], _versions([jobset, *jobs])
        pause = self._backoff.until(uid, version, now)
        if pause is not None:
            return pause
        try:
            self._carry_out(objects, jobset, plan(jobset, jobs, now), now)
        except _NotCreated as refused:
            self._recorder.record(objects, Happening(jobset, refused.reason, refused.message, warns=True), now)
            return self._backoff.failed(uid, version, now)
        self._backoff.succeeded(uid)
        return expiry

    def _carry_out(self, objects: Objects, jobset: Object, decided: Plan, now: datetime) -> None:
        """Make the changes in upstream's order, up to the first that fails: then the status stays as it is."""
        for job in decided.delete:
            if "deletionTimestamp" not in job["metadata"]:
                _delete(objects, "jobs", job)
        if decided.goes_on and jobset["spec"]["network"]["enableDNSHostnames"]:
            _ensure_service(objects, jobset)
        for _, jobs in groupby(decided.create, replicated_job_name):
            _create_jobs(objects, jobs)
        for job in decided.update:
            objects.update("jobs", job)
        if decided.status != jobset.get("status"):
            objects.update("jobsets", jobset | {"status": decided.status}, status=True)
        for news in decided.told:
            warns = news.status and news.type in _WARNINGS
            self._recorder.record(objects, Happening(jobset, news.reason, news.message, warns=warns), now)


def _is_ours(jobset: Object) -> bool:
    ours = jobset["spec"].get("managedBy", JOBSET_CONTROLLER) == JOBSET_CONTROLLER
    return ours and "deletionTimestamp" not in jobset["metadata"]


def _versions(objects: Iterable[Object]) -> frozenset[tuple[str, str]]:
    return frozenset((obj["metadata"]["uid"], obj["metadata"]["resourceVersion"]) for obj in objects)


def _delete(objects: Objects, plural: str, obj: Object) -> None:
    metadata = obj["metadata"]
    objects.delete(plural, metadata["namespace"], metadata["name"], propagation="Foreground")


def _create_jobs(objects: Objects, jobs: Iterable[Object]) -> None:
    """Create the Jobs of a replicatedJob, whatever becomes of each. Raise _NotCreated with all refusals."""
    refusals = []
    for job in jobs:
        try:
            objects.create("jobs", job)
        except Unreachable:
            raise
        except ApiError as error:
            refusals.append(f'job "{job["metadata"]["name"]}" creation failed with error: {error.message}')
    if refusals:
        raise _NotCreated("JobCreationFailed", "\n".join(refusals))


def _ensure_service(objects: Objects, jobset: Object) -> None:
    name, namespace = subdomain(jobset), jobset["metadata"]["namespace"]
    try:
        objects.get("services", namespace, name)
    except ApiError as error:
        if error.reason != "NotFound":
            raise
    else:
        return
    service = {
        "metadata": {"name": name, "namespace": namespace, "ownerReferences": [controlled_by(jobset)]},
        "spec": {
            "clusterIP": "None",
            "selector": {JOBSET_NAME: jobset["metadata"]["name"]},
            "publishNotReadyAddresses": jobset["spec"]["network"]["publishNotReadyAddresses"],
        },
    }
    try:
        objects.create("services", service)
    except Unreachable:
        raise
    except ApiError as error:
        raise _NotCreated("HeadlessServiceCreationFailed", error.message) from error
