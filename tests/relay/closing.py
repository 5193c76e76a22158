"""A fact queue, the nodes that it sees, and an API server that patches them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from relay.hosts.closing import CLOSED
from relay.node_patches import NodePatch
from relay.objects import Kind
from tests.builders import NOW
from tests.relay.objects import Json, bound_pod, jobset, node
from tests.relay.watched import Watched, reports
from tpu_slices.domain.model.facts import HostsChanged
from tpu_slices.domain.model.questions import HostsQuestion
from tpu_slices.domain.model.slices import ClaimId

SLICE = ClaimId("tpu-llama-0-aaaaaaaaaaaaa")


def leader(host: int = 0) -> Json:
    return bound_pod(0, f"{SLICE}-1-{host}")


def question(
    *, close: bool = True, number: int = 1, attempt: int = 1, slice_id: ClaimId = SLICE, key: str = ""
) -> HostsQuestion:
    return HostsQuestion(slice_id=slice_id, attempt=attempt, number=number, asked_at=NOW, close=close, key=key)


@dataclass
class Site:
    """A JobSet and its pool of four hosts; `patch` applies what the relay needs, and the watch shows it."""

    watched: Watched = field(default_factory=Watched)
    nodes: dict[str, Json] = field(default_factory=dict)
    version: int = 100

    def __post_init__(self) -> None:
        self.watched.see(jobset())
        self.join(0, 1, 2, 3)
        self.watched.due_facts()

    def join(self, *numbers: int, **parts: Any) -> None:
        for number in numbers:
            self._show(node(number, **parts))

    def leave(self, *numbers: int) -> None:
        for number in numbers:
            self.watched.lose(self.nodes.pop(f"{SLICE}-1-{number}"))

    def cordon(self, number: int, *, cordoned: bool = True) -> None:
        """Cordon or uncordon a node as a person would."""
        name = f"{SLICE}-1-{number}"
        self._show({**self.nodes[name], "spec": {"unschedulable": cordoned}})

    def breaks(self, number: int) -> None:
        """Let a node be not Ready from now on."""
        name = f"{SLICE}-1-{number}"
        self._show({**self.nodes[name], "status": node(number, ready=False)["status"]})

    def ask(self, **parts: Any) -> list[HostsChanged]:
        """Ask, and return what is reported of hosts at once."""
        self.watched.queue.ask(question(**parts), self.watched.now)
        return self.reports()

    def reports(self) -> list[HostsChanged]:
        return reports(self.watched.due_facts())

    def answers(self) -> list[int | None]:
        return [fact.answers for fact in self.reports()]

    def after(self, seconds: float) -> list[HostsChanged]:
        self.watched.pass_time(seconds)
        return self.reports()

    def needed(self) -> list[str]:
        return [each.node for each in self.watched.patches()]

    def patch(self) -> list[str]:
        """Apply every patch that is needed, and show its effect; return the patched nodes."""
        return self.apply(self.watched.patches())

    def apply(self, patches: Iterable[NodePatch]) -> list[str]:
        for each in patches:
            before = self.nodes[each.node]["metadata"]
            assert each.patch["metadata"]["resourceVersion"] == before["resourceVersion"]
            changes = each.patch["metadata"]["annotations"]
            annotations = {**before.get("annotations", {}), **changes}
            metadata = {**before, "annotations": {k: v for k, v in annotations.items() if v is not None}}
            metadata["labels"] = {**before["labels"], **each.patch["metadata"].get("labels", {})}
            self._show({**self.nodes[each.node], "metadata": metadata, "spec": each.patch["spec"]})
        return [each.node for each in patches]

    def restart(self) -> None:
        """Let another relay begin, with no more than what the API server has."""
        objects = [*self.nodes.values()]
        self.watched = Watched()
        self.watched.see(jobset())
        self.watched.relist(Kind.HOSTS, *objects, version=self.version)

    def ours(self) -> dict[str, tuple[bool, str | None]]:
        """Return whether each node is cordoned, and our annotation."""
        return {
            name.removeprefix(f"{SLICE}-1-"): (
                made["spec"].get("unschedulable", False),
                made["metadata"].get("annotations", {}).get(CLOSED),
            )
            for name, made in self.nodes.items()
        }

    def _show(self, made: Json) -> None:
        self.version += 1
        made = {**made, "metadata": {**made["metadata"], "resourceVersion": str(self.version)}}
        self.nodes[made["metadata"]["name"]] = made
        self.watched.see(made)


def closed_site(number: int = 1) -> Site:
    """Return a site whose hosts were closed, and the question of this number answered."""
    site = Site()
    site.ask(number=number)
    site.patch()
    (fact,) = site.after(5)
    assert (fact.closed, fact.answers) == (4, number)
    return site
