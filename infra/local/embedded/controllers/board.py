"""The scheduler's view of nodes, pods and free resources during one round."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Self

from infra.local.clients.objects import Object
from infra.local.embedded.controllers.company import check_terms
from infra.local.embedded.controllers.disruption import finished
from infra.local.embedded.store.quantities import Amounts, amounts, requested

Strange = list[tuple[Object, Exception]]


@dataclass(slots=True)
class Board:
    """Nodes by name; by node name the pods that hold its resources, and its free resources.

    `strange`: nodes and placed pods that cannot be parsed, and why. They are ignored.
    """

    nodes: dict[str, Object] = field(default_factory=dict)
    pods: dict[str, list[Object]] = field(default_factory=dict)
    free: dict[str, dict[str, int]] = field(default_factory=dict)
    strange: Strange = field(default_factory=list)

    @classmethod
    def of(cls, nodes: Iterable[Object], pods: Iterable[Object]) -> Self:
        """Build the board of all nodes and pods; pods that are unbound, finished or on a lost node hold nothing."""
        board = cls()
        for node in _readable(nodes, _offered, board.strange):
            name = node["metadata"]["name"]
            board.nodes[name], board.pods[name], board.free[name] = node, [], dict(_offered(node))
        holding = (pod for pod in pods if not finished(pod) and pod["spec"].get("nodeName") in board.nodes)
        for pod in _readable(holding, _check, board.strange):
            board.add(pod)
        return board

    def add(self, pod: Object) -> None:
        """Add a pod that is on a node."""
        name = pod["spec"]["nodeName"]
        self.pods[name].append(pod)
        free = self.free[name]
        for resource, amount in requested(pod["spec"]).items():
            if resource in free:
                free[resource] -= amount

    def lacks(self, node_name: str, wanted: Amounts) -> tuple[str, ...]:
        """Return the resources of which the node has too little left."""
        free = self.free[node_name]
        return tuple(name for name in sorted(wanted) if wanted[name] > free.get(name, 0))

    def placed(self) -> Iterator[tuple[Object, Object]]:
        """Yield every placed pod with its node."""
        for name, there in self.pods.items():
            for pod in there:
                yield pod, self.nodes[name]


def _readable(objects: Iterable[Object], read: Callable[[Object], object], strange: Strange) -> Iterator[Object]:
    for obj in objects:
        try:
            read(obj)
        except Exception as error:  # noqa: BLE001 - user input can fail in more ways than there are error types
            strange.append((obj, error))
        else:
            yield obj


def _check(pod: Object) -> None:
    requested(pod["spec"])
    check_terms(pod)


def _offered(node: Object) -> Amounts:
    return amounts(node.get("status", {}).get("allocatable"))
