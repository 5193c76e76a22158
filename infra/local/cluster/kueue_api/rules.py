"""Validation by Kueue's schemas and webhooks, and what this stand-in does not cover (pure).

Facts and error messages: the CRDs' x-kubernetes-validations, pkg/webhooks, pkg/controller/jobframework/validation.go.
Using something that is not covered raises ApiError 501.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from infra.local.cluster import errors
from infra.local.cluster.errors import FieldError
from infra.local.cluster.kueue_api.keys import (
    ADMISSION_GATED_BY,
    MAX_EXECUTION_SECONDS,
    PREBUILT_WORKLOAD,
    QUEUE_NAME,
)
from infra.local.cluster.names import (
    invalid_value,
    is_dns_subdomain,
    is_label_value,
    is_qualified_name,
    label_errors,
)

Object = dict[str, Any]
CreateRule = Callable[[Object], Iterator[FieldError]]
UpdateRule = Callable[[Object, Object], Iterator[FieldError]]

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_MOST_LABELS = 8
_MOST_POD_SETS = 18


def _too_many(path: str, found: int, most: int) -> Iterator[FieldError]:
    if found > most:
        yield FieldError(path, "FieldValueTooMany", f"Too many: {found}: must have at most {most} items")


def _resource_flavor(flavor: Object) -> Iterator[FieldError]:
    spec = flavor["spec"]
    if "topologyName" in spec:
        raise errors.not_implemented("topologyName of ResourceFlavors (topology-aware scheduling)")
    yield from label_errors(spec.get("nodeLabels", {}), "spec.nodeLabels")
    yield from _too_many("spec.nodeLabels", len(spec.get("nodeLabels", {})), _MOST_LABELS)
    yield from _taint_errors(spec.get("nodeTaints", []))
    yield from _toleration_errors(spec.get("tolerations", []))


def _taint_errors(taints: list[Object]) -> Iterator[FieldError]:
    seen = set()
    for index, taint in enumerate(taints):
        path = f"spec.nodeTaints[{index}]"
        yield from (invalid_value(f"{path}.key", taint["key"], why) for why in is_qualified_name(taint["key"]))
        value = taint.get("value", "")
        yield from (invalid_value(f"{path}.value", value, why) for why in is_label_value(value))
        if (taint["key"], taint["effect"]) in seen:
            why = "taints must be unique by key and effect pair"
            yield FieldError(path, "FieldValueDuplicate", f'Duplicate value: "{taint["key"]}": {why}')
        seen.add((taint["key"], taint["effect"]))
    if any(taint["effect"] not in _EFFECTS for taint in taints):
        why = "supported taint effect values: 'NoSchedule', 'PreferNoSchedule', 'NoExecute'"
        yield invalid_value("spec.nodeTaints", "array", why)


def _toleration_errors(tolerations: list[Object]) -> Iterator[FieldError]:
    broken = {
        "operator must be Exists when 'key' is empty, which means 'match all values and all keys'": lambda one: (
            not one.get("key") and one.get("operator") != "Exists"
        ),
        "effect must be 'NoExecute' when 'tolerationSeconds' is set": lambda one: (
            "tolerationSeconds" in one and one.get("effect") != "NoExecute"
        ),
        "supported toleration values: 'Equal'(default), 'Exists'": lambda one: (
            one.get("operator", "Equal") not in ("Equal", "Exists")
        ),
        "a value must be empty when 'operator' is 'Exists'": lambda one: (
            one.get("operator") == "Exists" and "value" in one
        ),
        "supported taint effect values: 'NoSchedule', 'PreferNoSchedule', 'NoExecute'": lambda one: (
            one.get("effect", _EFFECTS[0]) not in _EFFECTS
        ),
    }
    for why, breaks in broken.items():
        if any(map(breaks, tolerations)):
            yield invalid_value("spec.tolerations", "array", why)


def _cluster_queue(queue: Object) -> Iterator[FieldError]:
    spec = queue["spec"]
    for field in ("cohort", "fairSharing", "admissionScope"):
        if field in spec:
            raise errors.not_implemented(f"{field} of ClusterQueues")
    yield from _selector_errors(spec.get("namespaceSelector", {}).get("matchExpressions", []))
    groups = spec.get("resourceGroups", [])
    resources: list[str] = []
    flavors: list[str] = []
    for index, group in enumerate(groups):
        path = f"spec.resourceGroups[{index}]"
        yield from _group_errors(group, path)
        yield from _repeated(group["coveredResources"], resources, f"{path}.coveredResources[{{}}]")
        yield from _repeated([f["name"] for f in group["flavors"]], flavors, f"{path}.flavors[{{}}].name")
    policy = spec["flavorFungibility"]
    both = policy["whenCanBorrow"] == policy["whenCanPreempt"] == "TryNextFlavor"
    if "preference" in policy and not both:
        why = "preference can only be set when both whenCanBorrow and whenCanPreempt are TryNextFlavor"
        yield invalid_value("spec.flavorFungibility", "object", why)
    preemption = spec["preemption"]
    if preemption["reclaimWithinCohort"] == "Never" and preemption["borrowWithinCohort"]["policy"] != "Never":
        why = "reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never"
        yield invalid_value("spec.preemption", "object", why)


def _selector_errors(requirements: list[Object]) -> Iterator[FieldError]:
    for index, one in enumerate(requirements):
        path = f"spec.namespaceSelector.matchExpressions[{index}]"
        if one["operator"] not in ("In", "NotIn", "Exists", "DoesNotExist"):
            yield invalid_value(f"{path}.operator", one["operator"], "not a valid selector operator")
        elif one["operator"] in ("In", "NotIn") and not one.get("values"):
            why = "Required value: must be specified when `operator` is 'In' or 'NotIn'"
            yield FieldError(f"{path}.values", "FieldValueRequired", why)


def _repeated(names: list[str], seen: list[str], path: str) -> Iterator[FieldError]:
    for index, name in enumerate(names):
        if name in seen:
            yield FieldError(path.format(index), "FieldValueDuplicate", f'Duplicate value: "{name}"')
        seen.append(name)


def _group_errors(group: Object, path: str) -> Iterator[FieldError]:
    covered = group["coveredResources"]
    if any(len(flavor["resources"]) != len(covered) for flavor in group["flavors"]):
        why = "flavors must have the same number of resources as the coveredResources"
        yield invalid_value(path, "object", why)
    for number, flavor in enumerate(group["flavors"]):
        for index, (resource, name) in enumerate(zip(flavor["resources"], covered, strict=False)):
            yield from _quota_errors(resource, name, f"{path}.flavors[{number}].resources[{index}]")


def _quota_errors(resource: Object, covered: str, path: str) -> Iterator[FieldError]:
    if resource["name"] != covered:
        yield invalid_value(f"{path}.name", resource["name"], "must match the name in coveredResources")
    nominal = str(resource["nominalQuota"])
    if nominal.startswith("-"):
        yield invalid_value(f"{path}.nominalQuota", nominal, "must be greater than or equal to 0")
    for limit in ("borrowingLimit", "lendingLimit"):
        if limit in resource:
            yield invalid_value(f"{path}.{limit}", str(resource[limit]), "must be nil when cohort is empty")


def _local_queue(queue: Object) -> Iterator[FieldError]:
    spec = queue["spec"]
    if "fairSharing" in spec:
        raise errors.not_implemented("fairSharing of LocalQueues")
    name = spec.get("clusterQueue", "")
    yield from (invalid_value("spec.clusterQueue", name, why) for why in is_dns_subdomain(name))


def _local_queue_update(old: Object, new: Object) -> Iterator[FieldError]:
    yield from _local_queue(new)
    if old["spec"].get("clusterQueue") != new["spec"].get("clusterQueue"):
        yield invalid_value("spec.clusterQueue", new["spec"].get("clusterQueue", ""), "field is immutable")


def _workload(workload: Object) -> Iterator[FieldError]:
    spec = workload["spec"]
    if "maximumExecutionTimeSeconds" in spec:
        raise errors.not_implemented("maximumExecutionTimeSeconds of Workloads")
    if not spec.get("podSets"):
        yield FieldError("spec.podSets", "FieldValueInvalid", "Invalid value: 0: should have at least 1 items")
    yield from _too_many("spec.podSets", len(spec.get("podSets", [])), _MOST_POD_SETS)
    if "priorityClassName" in spec and "priority" not in spec:
        why = "priority should not be nil when priorityClassName is set"
        yield invalid_value("spec", "object", why)
    if any("minCount" in pod_set for pod_set in spec.get("podSets", [])):
        raise errors.not_implemented("minCount of podSets (partial admission)")


def _workload_update(old: Object, new: Object) -> Iterator[FieldError]:
    yield from _workload(new)
    if not (_reserves(old) and _reserves(new)):
        return
    before, after = old["spec"], new["spec"]
    if before.get("podSets") != after.get("podSets"):
        yield invalid_value("spec.podSets", "array", "field is immutable")
    if before.get("queueName") != after.get("queueName"):
        yield invalid_value("<nil>", "object", "queueName is immutable while workload quota reserved")
    if before.get("priorityClassSource") != after.get("priorityClassSource"):
        yield invalid_value("<nil>", "object", "priorityClassSource is immutable while workload quota reserved")


def _reserves(workload: Object) -> bool:
    conditions = workload.get("status", {}).get("conditions", [])
    return any(c["type"] == "QuotaReserved" and c["status"] == "True" for c in conditions)


def _priority_class(_: Object) -> Iterator[FieldError]:
    return iter(())


def _jobset(jobset: Object) -> Iterator[FieldError]:
    """Yield the errors of Kueue's webhook for a new JobSet."""
    metadata = jobset["metadata"]
    labels, annotations = metadata.get("labels", {}), metadata.get("annotations", {})
    if QUEUE_NAME not in labels:
        return
    for key in (PREBUILT_WORKLOAD, MAX_EXECUTION_SECONDS, ADMISSION_GATED_BY):
        if key in labels or key in annotations:
            raise errors.not_implemented(f"{key} of JobSets")
    queue = labels[QUEUE_NAME]
    path = f"metadata.labels[{QUEUE_NAME}]"
    yield from (invalid_value(path, queue, why) for why in is_dns_subdomain(queue) if queue)


def _jobset_update(old: Object, new: Object) -> Iterator[FieldError]:
    """Yield the errors of Kueue's webhook for an updated JobSet: the queue of a running one is immutable."""
    before, after = (obj["metadata"].get("labels", {}).get(QUEUE_NAME, "") for obj in (old, new))
    if before != after and not new["spec"].get("suspend", False):
        yield invalid_value(f"metadata.labels[{QUEUE_NAME}]", after, "field is immutable")
    yield from _jobset(new)


def _as_new(rule: CreateRule) -> UpdateRule:
    return lambda _, new: rule(new)


CREATE_RULES: Mapping[str, CreateRule] = MappingProxyType(
    {
        "resourceflavors": _resource_flavor,
        "clusterqueues": _cluster_queue,
        "localqueues": _local_queue,
        "workloads": _workload,
        "workloadpriorityclasses": _priority_class,
        "jobsets": _jobset,
    }
)
"""By plural name, for objects with their defaults filled in; for JobSets, the rules that Kueue's webhook adds."""

UPDATE_RULES: Mapping[str, UpdateRule] = MappingProxyType(
    {
        "resourceflavors": _as_new(_resource_flavor),
        "clusterqueues": _as_new(_cluster_queue),
        "localqueues": _local_queue_update,
        "workloads": _workload_update,
        "workloadpriorityclasses": _as_new(_priority_class),
        "jobsets": _jobset_update,
    }
)
