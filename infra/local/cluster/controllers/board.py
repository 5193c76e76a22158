"""What runs where: the scheduler's view of the cluster during one round (pure)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from infra.local.cluster.controllers.quantities import Amounts, amounts, requested, total
from infra.local.cluster.objects import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """Nodes by name; by node name the pods that hold its resources, and what they leave of them."""

    nodes: Mapping[str, Object]
    pods: Mapping[str, tuple[Object, ...]]
    free: Mapping[str, Amounts]

    @classmethod
    def of(cls, nodes: Iterable[Object], pods: Iterable[Object]) -> Self:
        """Take all nodes and all pods; pods that are unbound, finished or on a lost node hold nothing."""
        known = {node["metadata"]["name"]: node for node in nodes}
        placed: dict[str, list[Object]] = {name: [] for name in known}
        for pod in pods:
            if not finished(pod) and pod["spec"].get("nodeName") in placed:
                placed[pod["spec"]["nodeName"]].append(pod)
        free = {name: _left(_offered(node), map(_asked, placed[name])) for name, node in known.items()}
        return cls(nodes=known, pods={name: tuple(there) for name, there in placed.items()}, free=free)

    def with_pod(self, pod: Object) -> Self:
        """Add a pod that was bound just now."""
        name = pod["spec"]["nodeName"]
        return type(self)(
            nodes=self.nodes,
            pods={**self.pods, name: (*self.pods[name], pod)},
            free={**self.free, name: _left(self.free[name], [_asked(pod)])},
        )

    def lacks(self, node_name: str, wanted: Amounts) -> str | None:
        """Name the first resource of which too little is left on the node."""
        free = self.free[node_name]
        return next((name for name in sorted(wanted) if wanted[name] > free.get(name, 0)), None)

    def neighbours(self) -> Iterator[tuple[Object, Object]]:
        """Every placed pod with its node."""
        for name, there in self.pods.items():
            for pod in there:
                yield pod, self.nodes[name]


def finished(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def _offered(node: Object) -> Amounts:
    return amounts(node.get("status", {}).get("allocatable"))


def _asked(pod: Object) -> Amounts:
    return requested(pod["spec"])


def _left(offered: Amounts, taken: Iterable[Amounts]) -> Amounts:
    used = total(taken)
    return {name: amount - used.get(name, 0) for name, amount in offered.items()}
