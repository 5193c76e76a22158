"""The assignment of flavors to a Workload's podSets (pure).

Source: pkg/scheduler/flavorassigner. Without cohorts there is no borrowing, and a ClusterQueue's capacity is
its nominal quota.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from infra.local.cluster.controllers.selectors import meets
from infra.local.cluster.controllers.tolerations import tolerates
from infra.local.cluster.kueue.quota import (
    PODS,
    FlavorResource,
    Usage,
    counts,
    group_of,
    together,
    wanted,
    written,
)
from infra.local.cluster.objects import Object

NO_MATCHING_FLAVOR = "NoMatchingFlavor"
WAITING_FOR_QUOTA = "WaitingForQuota"
EXCEEDS_MAX_QUOTA = "ExceedsMaxQuota"

_SEVERITY = ("", WAITING_FOR_QUOTA, EXCEEDS_MAX_QUOTA, NO_MATCHING_FLAVOR)
_NEVER_FOR_LONG = ("NoSchedule", "NoExecute")

Preemptible = Callable[[FlavorResource, int], bool]
"""Returns whether preemption could make room for this amount of a resource."""


class Mode(IntEnum):
    """How well a flavor fits; higher values are preferred."""

    NO_FIT = 0
    NO_CANDIDATES = 1
    """It would fit the quota, but the Workloads that use it cannot be preempted."""
    PREEMPT = 2
    FIT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What can be assigned: a ClusterQueue and its quota, ResourceFlavors by name, and the current usage."""

    cluster_queue: Object
    quota: Usage
    flavors: Mapping[str, Object]
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetAssignment:
    """The flavor by resource, and the total requests; empty if none was found. `reasons`: why it does not fit now."""

    name: str
    count: int
    requests: Mapping[str, int]
    flavors: Mapping[str, str]
    reasons: tuple[str, ...] = ()

    @property
    def usage(self) -> dict[FlavorResource, int]:
        return {(flavor, resource): self.requests[resource] for resource, flavor in self.flavors.items()}

    def status(self) -> Object:
        """Return an item of status.admission.podSetAssignments."""
        usage = {name: written(name, amount) for name, amount in self.requests.items()}
        return {"name": self.name, "count": self.count, "flavors": dict(self.flavors), "resourceUsage": usage}


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The assignment of all podSets. `reason`: of the QuotaReserved condition, if the mode is NO_FIT."""

    pod_sets: tuple[PodSetAssignment, ...]
    mode: Mode
    reason: str = ""

    @property
    def usage(self) -> dict[FlavorResource, int]:
        return together(pod_set.usage for pod_set in self.pod_sets)

    @property
    def message(self) -> str:
        return "; ".join(
            f"couldn't assign flavors to pod set {pod_set.name}: {', '.join(sorted(pod_set.reasons))}"
            for pod_set in self.pod_sets
            if pod_set.reasons
        )


def assign(workload: Object, ground: Ground, preemptible: Preemptible) -> Assignment:
    """Assign flavors to one podSet after the other, until one gets none."""
    done: list[PodSetAssignment] = []
    mode, reason = Mode.FIT, ""
    for pod_set in workload["spec"]["podSets"]:
        search = _Search(workload, pod_set, ground, together(one.usage for one in done), preemptible)
        search.run()
        done.append(search.result())
        mode, reason = min(mode, search.mode), _worse(reason, search.reason)
        if mode is Mode.NO_FIT:
            break
    return Assignment(pod_sets=tuple(done), mode=mode, reason=reason)


def _worse(first: str, second: str) -> str:
    return max(first, second, key=_SEVERITY.index)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Try:
    """The evaluation of one flavor, or of the quota of one of its resources."""

    mode: Mode
    reason: str = ""
    told: tuple[str, ...] = ()


@dataclass(slots=True)
class _Search:
    """The search for one podSet's flavors; `taken` is the usage assigned to the podSets before it."""

    workload: Object
    pod_set: Object
    ground: Ground
    taken: Usage
    preemptible: Preemptible
    mode: Mode = Mode.FIT
    reason: str = ""
    requests: dict[str, int] = field(default_factory=dict)
    flavors: dict[str, str] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    pods: int = 0

    def run(self) -> None:
        self.pods = counts(self.workload)[self.pod_set["name"]]
        covers_pods = group_of(self.ground.cluster_queue, PODS) is not None
        asked = wanted(self.pod_set, self.pods)
        self.requests = {name: asked[name] for name in sorted(asked) if covers_pods or name != PODS}
        for resource, amount in self.requests.items():
            group = group_of(self.ground.cluster_queue, resource)
            if resource in self.flavors or (group is None and amount == 0):
                continue
            if group is None:
                why = f"resource {resource} unavailable in ClusterQueue"
                self._settle("", [], _Try(mode=Mode.NO_FIT, reason=NO_MATCHING_FLAVOR, told=(why,)))
            else:
                self._choose(group)
            if self.mode is Mode.NO_FIT:
                self.flavors = {}
                return

    def result(self) -> PodSetAssignment:
        requests = {name: amount for name, amount in self.requests.items() if name in self.flavors}
        return PodSetAssignment(
            name=self.pod_set["name"],
            count=self.pods,
            requests=requests,
            flavors=self.flavors,
            reasons=tuple(self.reasons),
        )

    def _choose(self, group: Object) -> None:
        """Choose the first flavor that fits, else the one that fits best."""
        covered = [name for name in self.requests if name in group["coveredResources"]]
        policy = self.ground.cluster_queue["spec"]["flavorFungibility"]["whenCanPreempt"]
        told: list[str] = []
        best, name, reason = Mode.NO_FIT, "", ""
        for quotas in group["flavors"]:
            tried = self._try(quotas["name"], covered)
            told += tried.told
            reason = _worse(reason, tried.reason)
            if tried.mode > best:
                best, name = tried.mode, quotas["name"]
            if best is Mode.FIT:
                told, reason = [], ""
                break
            if tried.mode is Mode.PREEMPT and policy != "TryNextFlavor":
                break
        self._settle(name, covered, _Try(mode=best, reason=reason, told=tuple(told)))

    def _settle(self, flavor: str, covered: Sequence[str], found: _Try) -> None:
        self.mode = min(self.mode, found.mode)
        self.reasons += found.told
        self.reason = _worse(self.reason, found.reason)
        self.flavors |= dict.fromkeys(covered, flavor)

    def _try(self, flavor: str, covered: Sequence[str]) -> _Try:
        mismatch = why_not(self.pod_set, self.ground.flavors.get(flavor), flavor)
        if mismatch is not None:
            return _Try(mode=Mode.NO_FIT, reason=NO_MATCHING_FLAVOR, told=(mismatch,))
        told: list[str] = []
        mode, reason = Mode.FIT, ""
        for resource in covered:
            tried = self._quota((flavor, resource))
            mode, reason = min(mode, tried.mode), _worse(reason, tried.reason)
            told += tried.told
            if mode is Mode.NO_FIT:
                break
        return _Try(mode=mode, reason=reason, told=tuple(told))

    def _quota(self, key: FlavorResource) -> _Try:
        flavor, resource = key
        before, asked = self.taken.get(key, 0), self.requests[resource]
        capacity = self.ground.quota[key]
        if before + asked > capacity:
            sizes = (written(resource, size) for size in (before, asked, capacity))
            why = (
                f"insufficient quota for {resource} in flavor {flavor}, previously considered podsets requests "
                "({}) + current podset request ({}) > maximum capacity ({})"
            )
            return _Try(mode=Mode.NO_FIT, reason=EXCEEDS_MAX_QUOTA, told=(why.format(*sizes),))
        lacking = before + asked + self.ground.usage.get(key, 0) - capacity
        if lacking <= 0:
            return _Try(mode=Mode.FIT)
        more = written(resource, lacking)
        why = f"insufficient unused quota for {resource} in flavor {flavor}, {more} more needed"
        mode = Mode.PREEMPT if self.preemptible(key, before + asked) else Mode.NO_CANDIDATES
        return _Try(mode=mode, reason=WAITING_FOR_QUOTA, told=(why,))


def why_not(pod_set: Object, flavor: Object | None, name: str) -> str | None:
    """Return why a podSet's pods cannot run on nodes of a flavor, by selectors and taints, or None if they can."""
    if flavor is None:
        return f"flavor {name} not found"
    if pod_set.get("topologyRequest"):
        return f'Flavor "{name}" does not support TopologyAwareScheduling'
    spec, pod = flavor["spec"], pod_set["template"].get("spec", {})
    admitted = {"spec": {"tolerations": [*pod.get("tolerations", []), *spec.get("tolerations", [])]}}
    for taint in spec.get("nodeTaints", []):
        if taint["effect"] in _NEVER_FOR_LONG and not tolerates(admitted, taint):
            shown = f"{{{taint['key']} {taint.get('value', '')} {taint['effect']} <nil>}}"
            return f"untolerated taint {shown} in flavor {name}"
    if not _selects(pod, spec.get("nodeLabels", {})):
        return f"flavor {name} doesn't match node affinity"
    return None


def _selects(pod: Object, labels: Mapping[str, str]) -> bool:
    """Return whether the flavor's labels match; requirements on other labels are ignored."""
    selector = pod.get("nodeSelector", {})
    if any(key in labels and labels[key] != value for key, value in selector.items()):
        return False
    affinity = pod.get("affinity", {}).get("nodeAffinity", {})
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", [])
    judged = [[e for e in term.get("matchExpressions", []) if e["key"] in labels] for term in terms]
    return not judged or any(all(meets(labels, expression) for expression in term) for term in judged)
