"""Preemption of Workloads within their ClusterQueue (pure).

Source: pkg/scheduler/preemption (classical, without cohorts).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from infra.local.cluster.controllers.conditions import since
from infra.local.cluster.kueue.flavors import Ground
from infra.local.cluster.kueue.quota import FlavorResource, Usage, held
from infra.local.cluster.kueue.workloads import QUOTA_RESERVED, is_evicted, priority, queued_since
from infra.local.cluster.objects import Object

IN_CLUSTER_QUEUE = "InClusterQueue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """A pending Workload, and those that hold the quota of its ClusterQueue."""

    workload: Object
    ground: Ground
    holders: Sequence[Object]

    def targets(self, wanted: Usage) -> list[Object]:
        """Return the fewest Workloads to preempt, the least important first; none if even all would not suffice."""
        lacking = self._lacking(wanted, self.ground.usage)
        chosen: list[Object] = []
        usage: Usage = self.ground.usage
        for holder in self._candidates(lacking):
            if not self._lacking(wanted, usage):
                break
            chosen.append(holder)
            usage = _changed(usage, held(holder), -1)
        if self._lacking(wanted, usage):
            return []
        return self._spare(chosen, wanted, usage)

    def preemptible(self, key: FlavorResource, amount: int) -> bool:
        """Return whether preemption can make room for this amount of one resource."""
        return bool(self.targets({key: amount}))

    def _spare(self, chosen: list[Object], wanted: Usage, usage: Usage) -> list[Object]:
        """Remove from the targets, the most important first, those whose quota is not needed."""
        kept = list(chosen)
        for holder in reversed(chosen[:-1]):
            back = _changed(usage, held(holder), 1)
            if not self._lacking(wanted, back):
                kept.remove(holder)
                usage = back
        return kept

    def _candidates(self, lacking: Collection[FlavorResource]) -> list[Object]:
        found = [
            holder for holder in self.holders if self._may_go(holder) and not held(holder).keys().isdisjoint(lacking)
        ]
        return sorted(found, key=_importance)

    def _may_go(self, holder: Object) -> bool:
        mine, theirs = priority(self.workload), priority(holder)
        match self.ground.cluster_queue["spec"]["preemption"]["withinClusterQueue"]:
            case "LowerPriority":
                return theirs < mine
            case "LowerOrNewerEqualPriority":
                newer = queued_since(holder) > queued_since(self.workload)
                return theirs < mine or (theirs == mine and newer)
            case _:
                return False

    def _lacking(self, wanted: Usage, usage: Usage) -> set[FlavorResource]:
        quota = self.ground.quota
        return {key for key, amount in wanted.items() if amount + usage.get(key, 0) > quota.get(key, 0)}


def _importance(holder: Object) -> tuple[Any, ...]:
    """Return the sort key: evicted Workloads first, then lower priority, then later reservation."""
    reserved = since(holder, QUOTA_RESERVED)
    later = -reserved.timestamp() if reserved else -inf
    return not is_evicted(holder), priority(holder), later, holder["metadata"]["uid"]


def _changed(usage: Usage, part: Mapping[FlavorResource, int], sign: int) -> Usage:
    return {key: usage.get(key, 0) + sign * part.get(key, 0) for key in {*usage, *part}}
