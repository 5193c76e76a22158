"""Quota in chips: which Workloads a ClusterQueue admits now, and why the others wait (pure).

| in order of priority, then age, a Workload | |
|---|---|
| fits the unused quota of flavors that its pods may run on | is admitted |
| does not fit | waits; those behind may pass, unless the queue is StrictFIFO |
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from infra.local.clients.objects import Object
from infra.local.clients.tolerations import matches

TPU = "google.com/tpu"


class Why(NamedTuple):
    """Reason and message of a condition."""

    reason: str
    message: str


def decide(
    queue: Object, waiting: Iterable[Object], holders: Iterable[Object], flavors: Mapping[str, Object]
) -> Iterator[tuple[Object, Object | Why]]:
    """Yield a ClusterQueue's Workloads with their status.admission; `holders` have one, `flavors` are by name."""
    unused = quota(queue)
    for holder in holders:
        unused.subtract(_chips(holder["status"]["admission"]))
    for workload in sorted(waiting, key=_in_order):
        assigned = _assign(workload, unused.copy(), flavors)
        if isinstance(assigned, Why):
            yield workload, assigned
            if queue["spec"].get("queueingStrategy") == "StrictFIFO":
                return
        else:
            admission = {"clusterQueue": queue["metadata"]["name"], "podSetAssignments": assigned}
            unused.subtract(_chips(admission))
            yield workload, admission


def quota(queue: Object) -> Counter[str]:
    """Return the chips of a ClusterQueue by flavor, in its order. Raises ValueError for what is no whole number."""
    flavors = [flavor for group in queue["spec"].get("resourceGroups", []) for flavor in group["flavors"]]
    rows = [(flavor["name"], row) for flavor in flavors for row in flavor["resources"]]
    return Counter({name: int(row["nominalQuota"]) for name, row in rows if row["name"] == TPU})


def _in_order(workload: Object) -> tuple[int, str, str]:
    metadata = workload["metadata"]
    return -workload["spec"]["priority"], metadata["creationTimestamp"], metadata["name"]


def _assign(workload: Object, left: Counter[str], flavors: Mapping[str, Object]) -> list[Object] | Why:
    """Return for each podSet the first of its flavors that has room, and reduce what is left."""
    assigned: list[Object] = []
    for pod_set in workload["spec"]["podSets"]:
        row: Object = {"name": pod_set["name"], "count": pod_set["count"], "flavors": {}}
        if chips := _requested(pod_set):
            fitting = [name for name in left if name in flavors and _matches(pod_set, flavors[name])]
            found = next((name for name in fitting if left[name] >= chips), None)
            if found is None:
                return _lacking(pod_set["name"], {name: chips - left[name] for name in fitting})
            left[found] -= chips
            row |= {"flavors": {TPU: found}, "resourceUsage": {TPU: str(chips)}}
        assigned.append(row)
    return assigned


def _requested(pod_set: Object) -> int:
    containers = pod_set["template"]["spec"].get("containers", [])
    limits = [one.get("resources", {}).get("limits", {}).get(TPU, 0) for one in containers]
    return int(pod_set["count"]) * sum(int(one) for one in limits if str(one).isdecimal())


def _matches(pod_set: Object, flavor: Object) -> bool:
    """Return whether the pods select no other nodes than the flavor's, and nothing there keeps them off."""
    spec, pod = flavor.get("spec", {}), pod_set["template"]["spec"]
    labels, selector = spec.get("nodeLabels", {}), pod.get("nodeSelector", {})
    tolerations = [*pod.get("tolerations", []), *spec.get("tolerations", [])]
    tolerated = all(any(matches(one, taint) for one in tolerations) for taint in spec.get("nodeTaints", []))
    return tolerated and all(labels.get(key, value) == value for key, value in selector.items())


def _lacking(pod_set: str, chips: Mapping[str, int]) -> Why:
    text = f"insufficient unused quota for {TPU} in flavor {{}}, {{}} more needed"
    missing = [text.format(*one) for one in chips.items()] or [f"no flavor of {TPU} has the pods' node selector"]
    message = f"couldn't assign flavors to pod set {pod_set}: {', '.join(missing)}"
    return Why("WaitingForQuota" if chips else "NoMatchingFlavor", message)


def _chips(admission: Object) -> Counter[str]:
    rows = [(flavor, row) for row in admission["podSetAssignments"] for flavor in row["flavors"].values()]
    return sum((Counter({flavor: int(row["resourceUsage"][TPU])}) for flavor, row in rows), Counter())
