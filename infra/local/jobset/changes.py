"""Which changes of a JobSet are refused, by JobSet's webhook and by its CRD's rules (pure).

Facts: pkg/webhooks/jobset_webhook.go (ValidateUpdate), the CRD's x-kubernetes-validations.
"""

from typing import Any

import orjson

from infra.local.clients.quantities import canonical
from infra.local.jobset.refusals import FieldError, invalid_value

Json = dict[str, Any]

_IMMUTABLE_POLICIES = ("network", "successPolicy", "failurePolicy", "startupPolicy", "volumeClaimPolicies")
_MUTABLE_POD_METADATA = ("annotations", "labels")
_MUTABLE_POD_SPEC = ("nodeSelector", "tolerations", "schedulingGates")
"""What may change in a pod template while the JobSet is suspended, or is being suspended: by Kueue."""
_AMOUNTS = ("limits", "requests")


def update_errors(old: Json, new: Json) -> list[FieldError]:
    """Return the errors of an update of a JobSet's spec: changes of immutable fields."""
    before, after = old["spec"], new["spec"]
    # The CRD's transition rules apply only to fields that both versions have.
    found = [
        invalid_value(f"spec.{policy}", "object", "Value is immutable")
        for policy in _IMMUTABLE_POLICIES
        if policy in before and policy in after and before[policy] != after[policy]
    ]
    suspended = before.get("suspend", False) or after.get("suspend", False)
    jobs_before, jobs_after = (spec.get("replicatedJobs") or [] for spec in (before, after))
    if _fixed(jobs_before, suspended=suspended) != _fixed(jobs_after, suspended=suspended):
        shown = orjson.dumps(jobs_after).decode()
        found.append(FieldError("spec.replicatedJobs", f"Invalid value: {shown}: field is immutable"))
    if before.get("managedBy") != after.get("managedBy"):
        found.append(invalid_value("spec.managedBy", after.get("managedBy", ""), "field is immutable"))
    return found


def _fixed(replicated_jobs: list[Json], *, suspended: bool) -> Any:
    """Return what of the replicatedJobs must not change."""
    jobs: list[Json] = [_meaning(replicated) for replicated in replicated_jobs]
    if not suspended:
        return jobs
    for replicated in jobs:
        pod = replicated.get("template", {}).get("spec", {}).get("template", {})
        for part, mutable in (("metadata", _MUTABLE_POD_METADATA), ("spec", _MUTABLE_POD_SPEC)):
            for key in mutable:
                pod.get(part, {}).pop(key, None)
    return [_meaning(replicated) for replicated in jobs]


def _meaning(value: Any) -> Any:
    """Return a copy as Go compares it: what is empty is not there, and quantities are equal that are worth the same."""
    if isinstance(value, list):
        return [_meaning(item) for item in value]
    if not isinstance(value, dict):
        return value
    amounts = {key: _amounts(value[key]) for key in _AMOUNTS if isinstance(value.get(key), dict)}
    parts = {key: _meaning(item) for key, item in value.items()} | amounts
    return {key: item for key, item in parts.items() if item not in (None, "", [], {})}


def _amounts(listed: Json) -> dict[str, str]:
    return {name: canonical(amount) for name, amount in listed.items()}
