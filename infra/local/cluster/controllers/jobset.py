"""The JobSet controller: child Jobs, the headless Service, policies, conditions.

JobSets managed by other controllers (spec.managedBy) are left alone.
"""

from dataclasses import dataclass
from datetime import datetime

from infra.local.cluster.controllers import events, lifetime
from infra.local.cluster.controllers.child_jobs import subdomain
from infra.local.cluster.controllers.jobset_plan import FINAL, Plan, plan
from infra.local.cluster.controllers.keys import JOBSET_CONTROLLER, JOBSET_NAME
from infra.local.cluster.controllers.ownership import by_controller, controlled_by
from infra.local.cluster.controllers.pace import Pace
from infra.local.cluster.controllers.rounds import each
from infra.local.cluster.objects import ApiError, Object, Objects

SOURCE = "jobset"
"""The name of the event recorder upstream (main.go)."""

_WARNINGS = ("Failed", "RestartingJobSet")


def reconcile(objects: Objects, now: datetime, _: Pace) -> datetime | None:
    jobs = by_controller(objects.stored("jobs"))

    def control(jobset: Object) -> datetime | None:
        if not _is_ours(jobset):
            return None
        expiry = lifetime.expiry(jobset, FINAL)
        if expiry is not None and expiry <= now:
            _delete(objects, "jobsets", jobset)
            return None
        _carry_out(objects, jobset, plan(jobset, jobs[jobset["metadata"]["uid"]], now), now)
        return expiry

    return each(objects.stored("jobsets"), control, events.doubting(objects, SOURCE, now))


def _is_ours(jobset: Object) -> bool:
    ours = jobset["spec"].get("managedBy", JOBSET_CONTROLLER) == JOBSET_CONTROLLER
    return ours and "deletionTimestamp" not in jobset["metadata"]


def _carry_out(objects: Objects, jobset: Object, decided: Plan, now: datetime) -> None:
    for job in decided.delete:
        if "deletionTimestamp" not in job["metadata"]:
            _delete(objects, "jobs", job)
    if decided.goes_on and jobset["spec"]["network"]["enableDNSHostnames"]:
        _ensure_service(objects, jobset, now)
    for job in decided.create:
        refusal = _Refusal("JobCreationFailed", f'job "{job["metadata"]["name"]}" creation failed with error: ')
        _create(objects, jobset, ("jobs", job), refusal, now)
    for job in decided.update:
        objects.update("jobs", job)
    if decided.status != jobset.get("status"):
        objects.update("jobsets", jobset | {"status": decided.status}, status=True)
    for news in decided.told:
        warns = news.status and news.type in _WARNINGS
        happening = events.Happening(jobset, news.reason, news.message, SOURCE, warns=warns)
        events.record(objects, happening, now)


def _delete(objects: Objects, plural: str, obj: Object) -> None:
    metadata = obj["metadata"]
    objects.delete(plural, metadata["namespace"], metadata["name"], propagation="Foreground")


def _ensure_service(objects: Objects, jobset: Object, now: datetime) -> None:
    name, namespace = subdomain(jobset), jobset["metadata"]["namespace"]
    if any(service["metadata"]["name"] == name for service in objects.stored("services", namespace)):
        return
    service = {
        "metadata": {"name": name, "namespace": namespace, "ownerReferences": [controlled_by(jobset)]},
        "spec": {
            "clusterIP": "None",
            "selector": {JOBSET_NAME: jobset["metadata"]["name"]},
            "publishNotReadyAddresses": jobset["spec"]["network"]["publishNotReadyAddresses"],
        },
    }
    _create(objects, jobset, ("services", service), _Refusal("HeadlessServiceCreationFailed"), now)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Reason, and beginning of the message, of the event when an object cannot be created."""

    reason: str
    beginning: str = ""


def _create(objects: Objects, jobset: Object, new: tuple[str, Object], refusal: _Refusal, now: datetime) -> None:
    """Create an object of the JobSet; a refusal is reported once, and retried at the next change."""
    try:
        objects.create(*new)
    except ApiError as error:
        happening = events.Happening(jobset, refusal.reason, refusal.beginning + error.message, SOURCE, warns=True)
        events.record_once(objects, happening, now)
