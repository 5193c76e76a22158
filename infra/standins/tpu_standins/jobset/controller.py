"""The JobSet controller: child Jobs, the headless Service, status and Events.

JobSets that others manage (spec.managedBy) are left alone.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from tpu_standins.clients.conditions import is_true, since
from tpu_standins.clients.errors import ApiError, Unreachable
from tpu_standins.clients.events import Happening, Recorder
from tpu_standins.clients.objects import Object, Objects
from tpu_standins.clients.owners import by_controller, controlled_by
from tpu_standins.clients.rounds import Across, each
from tpu_standins.jobset.keys import JOBSET_NAME
from tpu_standins.jobset.plan import FINAL, plan

_MANAGER = "jobset.sigs.k8s.io/jobset-controller"
_WARNINGS = ("Failed", "Restarting")
_AGAIN = timedelta(seconds=1)
"""After a refusal."""


class JobSets:
    """The controller, and its Events. `across` processes the JobSets."""

    def __init__(self, across: Across = map) -> None:
        self._across = across
        self._recorder = Recorder("jobset")

    def reconcile(self, objects: Objects, now: datetime, _: object) -> datetime | None:
        jobs = by_controller(objects.stored("jobs"))
        jobsets = filter(_is_ours, objects.stored("jobsets"))

        def control(jobset: Object) -> datetime | None:
            return self._control(objects, jobset, jobs[jobset["metadata"]["uid"]], now)

        return each(jobsets, control, self._recorder.doubting(objects, now), across=self._across)

    def _control(self, objects: Objects, jobset: Object, jobs: Sequence[Object], now: datetime) -> datetime | None:
        expiry = _expiry(jobset)
        if expiry is not None and expiry <= now:
            _delete(objects, "jobsets", jobset)
            return None
        decided = plan(jobset, jobs, now)
        for job in decided.delete:
            if "deletionTimestamp" not in job["metadata"]:
                _delete(objects, "jobs", job)
        try:
            _create(objects, jobset, decided.create)
        except Unreachable:
            raise
        except ApiError as refused:
            self._recorder.record(objects, Happening(jobset, "JobCreationFailed", refused.message, warns=True), now)
            return now + _AGAIN
        for job in decided.update:
            objects.update("jobs", job)
        if decided.status != jobset.get("status"):
            objects.update("jobsets", jobset | {"status": decided.status}, status=True)
        if news := decided.told:
            warns = news.type in _WARNINGS
            self._recorder.record(objects, Happening(jobset, news.reason, news.message, warns=warns), now)
        return expiry


def _is_ours(jobset: Object) -> bool:
    ours = jobset["spec"].get("managedBy", _MANAGER) == _MANAGER
    return ours and "deletionTimestamp" not in jobset["metadata"]


def _expiry(jobset: Object) -> datetime | None:
    """Return when a finished JobSet is to be deleted; None: never, or not yet known."""
    seconds = jobset["spec"].get("ttlSecondsAfterFinished")
    end = next((since(jobset, kind) for kind in FINAL if is_true(jobset, kind)), None)
    return None if seconds is None or end is None else end + timedelta(seconds=seconds)


def _delete(objects: Objects, plural: str, obj: Object) -> None:
    metadata = obj["metadata"]
    objects.delete(plural, metadata["namespace"], metadata["name"], propagation="Foreground")


def _create(objects: Objects, jobset: Object, jobs: Sequence[Object]) -> None:
    """Create Jobs, and before them the headless Service of their pods. Raise ApiError for the first that is refused."""
    if jobs:
        name, namespace = jobset["metadata"]["name"], jobset["metadata"]["namespace"]
        metadata = {"name": name, "namespace": namespace, "ownerReferences": [controlled_by(jobset)]}
        spec = {"clusterIP": "None", "selector": {JOBSET_NAME: name}, "publishNotReadyAddresses": True}
        try:
            objects.create("services", {"metadata": metadata, "spec": spec})
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
    for job in jobs:
        objects.create("jobs", job)
