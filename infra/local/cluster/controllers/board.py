"""The scheduler's view of nodes, pods and free resources during one iteration (pure)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Self

from infra.local.cluster.controllers.quantities import Amounts, amounts, requested, total
from infra.local.cluster.controllers.selectors import check_terms
from infra.local.cluster.objects import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """Nodes by name; by node name the pods that hold its resources, and its free resources.

    `strange`: nodes and placed pods that cannot be parsed, and why. They are ignored.
    """

    nodes: Mapping[str, Object]
    pods: Mapping[str, tuple[Object, ...]]
    free: Mapping[str, Amounts]
    strange: tuple[tuple[Object, Exception], ...] = ()

    @classmethod
    def of(cls, nodes: Iterable[Object], pods: Iterable[Object]) -> Self:
        """Build the board of all nodes and pods; pods that are unbound, finished or on a lost node hold nothing."""
        strange: list[tuple[Object, Exception]] = []
        known = {node["metadata"]["name"]: node for node in _readable(nodes, _offered, strange)}
        holding = (pod for pod in pods if not finished(pod) and pod["spec"].get("nodeName") in known)
        placed: dict[str, list[Object]] = {name: [] for name in known}
        for pod in _readable(holding, _check, strange):
            placed[pod["spec"]["nodeName"]].append(pod)
        free = {name: _left(_offered(node), map(_asked, placed[name])) for name, node in known.items()}
        there = {name: tuple(pods) for name, pods in placed.items()}
        return cls(nodes=known, pods=there, free=free, strange=tuple(strange))

    def with_pod(self, pod: Object) -> Self:
        """Return the board with a pod added that was just bound, or will be."""
        name = pod["spec"]["nodeName"]
        return self._with(name, (*self.pods[name], pod))

    def without(self, name: str, pods: Iterable[Object]) -> Self:
        """Return the board without these pods on a node."""
        gone = {pod["metadata"]["uid"] for pod in pods}
        return self._with(name, tuple(pod for pod in self.pods[name] if pod["metadata"]["uid"] not in gone))

    def _with(self, name: str, there: tuple[Object, ...]) -> Self:
        left = _left(_offered(self.nodes[name]), map(_asked, there))
        return replace(self, pods={**self.pods, name: there}, free={**self.free, name: left})

    def lacks(self, node_name: str, wanted: Amounts) -> tuple[str, ...]:
        """Return the resources of which the node has too little left."""
        free = self.free[node_name]
        return tuple(name for name in sorted(wanted) if wanted[name] > free.get(name, 0))

    def offers(self, node_name: str, wanted: Amounts) -> bool:
        """Return whether the node, if empty, would have enough."""
        whole = _offered(self.nodes[node_name])
        return all(amount <= whole.get(name, 0) for name, amount in wanted.items())

    def neighbours(self) -> Iterator[tuple[Object, Object]]:
        """Yield every placed pod with its node."""
        for name, there in self.pods.items():
            for pod in there:
                yield pod, self.nodes[name]


def finished(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def _readable(
    objects: Iterable[Object], read: Callable[[Object], object], strange: list[tuple[Object, Exception]]
) -> Iterator[Object]:
    for obj in objects:
        try:
            read(obj)
        except Exception as error:  # noqa: BLE001 - user input can fail in more ways than there are error types
            strange.append((obj, error))
        else:
            yield obj


def _check(pod: Object) -> None:
    _asked(pod)
    check_terms(pod)


def _offered(node: Object) -> Amounts:
    return amounts(node.get("status", {}).get("allocatable"))


def _asked(pod: Object) -> Amounts:
    return requested(pod["spec"])


def _left(offered: Amounts, taken: Iterable[Amounts]) -> Amounts:
    used = total(taken)
    return {name: amount - used.get(name, 0) for name, amount in offered.items()}
