"""Quota: what flavors offer, what Workloads request, and what they hold (pure).

Source: pkg/workload/workload.go (totalRequestsFromPodSets, totalRequestsFromAdmission), pkg/resources.
"""

from collections.abc import Iterable, Mapping
from math import ceil

from infra.local.cluster.controllers.quantities import ONE, quantity, requested
from infra.local.cluster.objects import Object

FlavorResource = tuple[str, str]
"""The names of a ResourceFlavor and of a resource."""

Usage = Mapping[FlavorResource, int]
"""Amounts in billionths, as in `quantities`."""

PODS = "pods"
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = ("", "k", "M", "G", "T", "P", "E")


def nominal(cluster_queue: Object) -> dict[FlavorResource, int]:
    """Return a ClusterQueue's nominal quota."""
    return {
        (flavor["name"], resource["name"]): quantity(resource["nominalQuota"])
        for group in cluster_queue["spec"].get("resourceGroups", [])
        for flavor in group["flavors"]
        for resource in flavor["resources"]
    }


def group_of(cluster_queue: Object, resource: str) -> Object | None:
    """Return the resource group that covers a resource, if any."""
    groups: list[Object] = cluster_queue["spec"].get("resourceGroups", [])
    return next((group for group in groups if resource in group["coveredResources"]), None)


def counts(workload: Object) -> dict[str, int]:
    """Return how many pods of each podSet still need quota: those of succeeded Jobs no longer do."""
    needed = {pod_set["name"]: int(pod_set["count"]) for pod_set in workload["spec"]["podSets"]}
    for reclaimable in workload.get("status", {}).get("reclaimablePods", []):
        if reclaimable["name"] in needed:
            needed[reclaimable["name"]] -= reclaimable["count"]
    return needed


def wanted(pod_set: Object, pods: int) -> dict[str, int]:
    """Return what this many pods of a podSet request."""
    return {name: amount * pods for name, amount in requested(pod_set["template"].get("spec", {})).items()}


def held(workload: Object) -> dict[FlavorResource, int]:
    """Return the quota that a Workload holds."""
    used: dict[FlavorResource, int] = {}
    needed = counts(workload)
    for assigned in workload.get("status", {}).get("admission", {}).get("podSetAssignments", []):
        for resource, amount in assigned.get("resourceUsage", {}).items():
            if resource in assigned["flavors"]:
                key = (assigned["flavors"][resource], resource)
                left = needed.get(assigned["name"], assigned["count"])
                used[key] = used.get(key, 0) + quantity(amount) * left // max(assigned["count"], 1)
    return used


def together(parts: Iterable[Usage]) -> dict[FlavorResource, int]:
    summed: dict[FlavorResource, int] = {}
    for part in parts:
        for key, amount in part.items():
            summed[key] = summed.get(key, 0) + amount
    return summed


def written(resource: str, amount: int) -> str:
    """Format an amount as resource.Quantity does: "8", "500m", "16Gi", "2k"."""
    if resource == "cpu" and (thousandths := ceil(amount / (ONE // 1000))) % 1000:
        return f"{thousandths}m"
    whole = ceil(amount / ONE)
    binary = resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")
    base, suffixes = (1024, _BINARY) if binary else (1000, _DECIMAL)
    power = 0
    while whole and whole % base == 0 and power < len(suffixes) - 1:
        whole, power = whole // base, power + 1
    return f"{whole}{suffixes[power]}"
