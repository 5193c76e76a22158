"""Preemption: which pods make room for one of higher priority (pure).

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/defaultpreemption and framework/preemption. There are no
PodDisruptionBudgets here, so none are considered; as in the original, at most a hundred nodes are tried.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from infra.local.cluster.controllers.board import Board
from infra.local.cluster.controllers.fit import Fit, Refusal
from infra.local.cluster.objects import Object

_CANDIDATES = 100  # DefaultPreemptionArgs.minCandidateNodesAbsolute

NO_VICTIMS = "No preemption victims found for incoming pod"
NO_HELP = "Preemption is not helpful for scheduling"
NEVER = "not eligible due to preemptionPolicy=Never."
WAITING = "not eligible due to a terminating pod on the nominated node."


@dataclass(frozen=True, slots=True, kw_only=True)
class Victims:
    """The pods to preempt on a node; never empty."""

    node: str
    pods: tuple[Object, ...]


def priority(pod: Object) -> int:
    return int(pod["spec"].get("priority", 0))


def not_eligible(pod: Object, board: Board, refusals: Mapping[str, Refusal]) -> str | None:
    """Return why the pod may not preempt others now, or None if it may."""
    if pod["spec"].get("preemptionPolicy") == "Never":
        return NEVER
    room = nominated(pod)
    if room is None or room not in refusals or refusals[room].final:
        return None
    there = board.pods[room]
    going = (other for other in there if "deletionTimestamp" in other["metadata"])
    return WAITING if any(priority(other) < priority(pod) for other in going) else None


def nominated(pod: Object) -> str | None:
    """Return the node on which room is being made for the pod, if any."""
    found: str | None = pod.get("status", {}).get("nominatedNodeName")
    return found


def find(pod: Object, board: Board, refusals: Mapping[str, Refusal]) -> Victims | dict[str, Refusal]:
    """Return the victims, or for each node why preemption is no use there. `refusals`: why the pod fits nowhere."""
    answers = {name: Refusal((NO_HELP if refused.final else NO_VICTIMS,)) for name, refused in refusals.items()}
    candidates: list[Victims] = []
    for name in islice(_promising(pod, board, refusals), _CANDIDATES):
        match _on_node(pod, board, name):
            case Victims() as victims:
                candidates.append(victims)
            case refusal:
                answers[name] = refusal
    return min(candidates, key=_cost) if candidates else answers


def _promising(pod: Object, board: Board, refusals: Mapping[str, Refusal]) -> Iterator[str]:
    """Yield the nodes where the pod might fit without others, of which at least one has lower priority."""
    for name, refused in refusals.items():
        if not refused.final and any(priority(other) < priority(pod) for other in board.pods[name]):
            yield name


def _on_node(pod: Object, board: Board, name: str) -> Victims | Refusal:
    """Remove all pods of lower priority, then restore, by descending importance, those with which the pod fits."""
    lesser = sorted((other for other in board.pods[name] if priority(other) < priority(pod)), key=_importance)
    node, emptied = board.nodes[name], board.without(name, lesser)
    if refused := Fit(pod, emptied).why_not(node):
        return refused
    victims = []
    for other in lesser:
        fuller = emptied.with_pod(other)
        if Fit(pod, fuller).why_not(node):
            victims.append(other)
        else:
            emptied = fuller
    return Victims(node=name, pods=tuple(victims)) if victims else Refusal((NO_VICTIMS,))


def _importance(pod: Object) -> tuple[int, str, str]:
    metadata = pod["metadata"]
    return -priority(pod), (pod.get("status") or {}).get("startTime", metadata["creationTimestamp"]), metadata["uid"]


def _cost(victims: Victims) -> tuple[int, int, int, str]:
    """Return the sort key: first the highest priority of a victim, then their sum, then their number."""
    lost: Sequence[int] = [priority(pod) for pod in victims.pods]
    return max(lost), _sum_above_the_lowest(lost), len(lost), victims.node


def _sum_above_the_lowest(priorities: Iterable[int]) -> int:
    """Return the sum of priorities, offset so that more victims cost more even if priorities are negative."""
    return sum(each + 2**31 for each in priorities)
