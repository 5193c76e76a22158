"""Which pods make room for a more important one (pure).

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/defaultpreemption and framework/preemption. There are no
PodDisruptionBudgets here, so none is weighed; as in the original at most a hundred nodes are tried.
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
    """Who makes room on which node; never nobody."""

    node: str
    pods: tuple[Object, ...]


def priority(pod: Object) -> int:
    return int(pod["spec"].get("priority", 0))


def not_eligible(pod: Object, board: Board, refusals: Mapping[str, Refusal]) -> str | None:
    """Say why the pod may take nobody's place now."""
    if pod["spec"].get("preemptionPolicy") == "Never":
        return NEVER
    room = nominated(pod)
    if room is None or room not in refusals or refusals[room].final:
        return None
    there = board.pods[room]
    going = (other for other in there if "deletionTimestamp" in other["metadata"])
    return WAITING if any(priority(other) < priority(pod) for other in going) else None


def nominated(pod: Object) -> str | None:
    """Name the node on which room is being made for the pod."""
    found: str | None = pod.get("status", {}).get("nominatedNodeName")
    return found


def find(pod: Object, board: Board, refusals: Mapping[str, Refusal]) -> Victims | dict[str, Refusal]:
    """Choose victims; or say for each node why none there would do. `refusals`: why the pod fits on no node."""
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
    """List the nodes that other pods alone keep from taking this one, and where one of them is less important."""
    for name, refused in refusals.items():
        if not refused.final and any(priority(other) < priority(pod) for other in board.pods[name]):
            yield name


def _on_node(pod: Object, board: Board, name: str) -> Victims | Refusal:
    """Take every lesser pod away, then bring back, the most important first, whom the pod can live with."""
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
    """Weigh the greatest priority first, then their sum, then their number."""
    lost: Sequence[int] = [priority(pod) for pod in victims.pods]
    return max(lost), _sum_above_the_lowest(lost), len(lost), victims.node


def _sum_above_the_lowest(priorities: Iterable[int]) -> int:
    """Sum priorities so that more victims cost more, also when priorities are negative."""
    return sum(each + 2**31 for each in priorities)
