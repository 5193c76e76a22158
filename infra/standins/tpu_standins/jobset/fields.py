"""JobSet's webhook for JobSets: it completes them, and refuses every field and change that is not covered (pure).

Facts: pkg/webhooks/jobset_webhook.go (Default, ValidateUpdate), and the defaults of the CRD's schema.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tpu_standins.clients.objects import Object, Objects
from tpu_standins.clients.reviews import Refused, submitted

_REASONS = ("BackoffLimitExceeded", "PodFailurePolicy")  # of Jobs of the embedded API server
_COVERED: Object = {
    "suspend": bool,
    "managedBy": str,
    "ttlSecondsAfterFinished": range(2**31),
    "network": {"enableDNSHostnames": (True,), "publishNotReadyAddresses": (True,)},
    "successPolicy": {"operator": ("All",)},
    "startupPolicy": {"startupPolicyOrder": ("AnyOrder",)},
    "failurePolicy": {
        "maxRestarts": range(2**31),
        "restartStrategy": ("Recreate",),
        "rules": [{"name": str, "action": ("FailJobSet",), "onJobFailureReasons": [_REASONS]}],
    },
    "replicatedJobs": [
        {
            "name": str,
            "groupName": ("default",),
            "replicas": range(1001),
            "template": {"metadata": {"labels": dict, "annotations": dict}, "spec": dict},
        }
    ],
}
"""The fields of a JobSet's spec, with their types, or with their values where some are not covered."""

_REMEDY = "use JobSet's own controller, on the control plane that `make kubernetes` builds"
_NOT_DONE = f"Forbidden: not done by the JobSet of the embedded API server; {_REMEDY}"
_FREE = ("suspend", "ttlSecondsAfterFinished")
_FIXED = f"Forbidden: only {' and '.join(_FREE)} change; create the JobSet anew, or {_REMEDY}"


def admitted(_: Objects, request: Object) -> Object:
    """Return a new or changed JobSet as it is stored. Raise Refused 422."""
    new = submitted(request)
    spec, name = new["spec"], new["metadata"].get("name", "")
    _complete(spec)
    refusals = [f"{path}: {_NOT_DONE}" for path in _uncovered(spec, _COVERED, "spec")]
    names = Counter(replicated["name"] for replicated in spec["replicatedJobs"])
    refusals += [f"spec.replicatedJobs: Duplicate value: {each}" for each, times in names.items() if times > 1]
    if request["operation"] == "UPDATE":
        refusals += [f"spec.{key}: {_FIXED}" for key in _changed(request["oldObject"]["spec"], spec)]
    if refusals:
        raise Refused(422, "Invalid", f'JobSet.jobset.x-k8s.io "{name}" is invalid: {"; ".join(refusals)}')
    return new


def _complete(spec: Object) -> None:
    _fill(spec, "successPolicy", operator="All")
    _fill(spec, "startupPolicy", startupPolicyOrder="AnyOrder")
    _fill(spec, "network", enableDNSHostnames=True, publishNotReadyAddresses=True)
    if "failurePolicy" in spec:
        _fill(spec, "failurePolicy", restartStrategy="Recreate")
    for replicated in spec["replicatedJobs"]:
        replicated.update({"groupName": "default", "replicas": 1} | replicated)
        job = _fill(_fill(replicated, "template"), "spec", completionMode="Indexed")
        _fill(_fill(job, "template"), "spec", restartPolicy="OnFailure")


def _fill(owner: Object, key: str, **defaults: Any) -> Object:
    filled: Object = defaults | owner.get(key, {})
    owner[key] = filled
    return filled


def _uncovered(value: Any, covered: Any, path: str) -> Iterator[str]:
    """Yield the fields that have no place in what is covered."""
    match covered:
        case dict() if isinstance(value, dict):
            for key, item in value.items():
                yield from _uncovered(item, covered.get(key, ()), f"{path}.{key}")
        case [each] if isinstance(covered, list) and isinstance(value, list):
            for index, item in enumerate(value):
                yield from _uncovered(item, each, f"{path}[{index}]")
        case type() if type(value) is covered:
            return
        case tuple() | range() if value in covered and type(value) is type(covered[0]):
            return
        case _:
            yield path


def _changed(before: Object, after: Object) -> list[str]:
    """Return the fields that differ, but for those that may change."""
    return [key for key in sorted((before.keys() | after.keys()) - {*_FREE}) if before.get(key) != after.get(key)]
