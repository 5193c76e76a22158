"""The steps of both demos. Each reads from top to bottom: what a researcher does, and what must then be observed."""

from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from infra.local.demo.steps import Apply, Delete, Hold, LetGo, Move, Restock, RunOut, Show, Step, Until
from infra.local.demo.view import Ran, View, reasons, went_through
from infra.local.plan import REPOSITORY
from tpu_slices.domain.model.reasons import Phase, Reason

EXAMPLES = REPOSITORY / "examples" / "demo"


def story(examples: Path = EXAMPLES) -> tuple[Step, ...]:
    return (
        _two_slices(examples / "a-two-slices.yaml", "two-slices", "GKE creates two node pools"),
        _change_of_mind(examples / "b-change-of-mind.yaml"),
        _second_try(examples / "c-second-try.yaml"),
        _impossible(examples / "d-impossible.yaml"),
        _restart(examples / "e-restart.yaml"),
    )


def story_on_compute(examples: Path = EXAMPLES / "compute") -> tuple[Step, ...]:
    """Return the steps in a self-managed cluster on Compute Engine."""
    return (
        _two_slices(examples / "a-two-groups.yaml", "two-groups", "Compute Engine creates two instance groups"),
        _awaited(examples / "b-awaited.yaml"),
        _declared(examples / "c-declared.yaml"),
    )


def _two_slices(manifest: Path, name: str, created: str) -> Step:
    return Step(
        letter="a",
        title="a JobSet of two multi-host slices runs from creation to cleanup",
        workload=name,
        moves=_completing(
            manifest,
            name,
            Until(what=created, seen=lambda view: len(view.creates_of(name)) == 2),
            Until(what="both slices are READY", seen=lambda view: _became(view, name, Phase.READY) == 2),
            Until(what="both Jobs run", seen=lambda view: len(view.ran_of(name)) == 2),
        ),
    )


def _change_of_mind(manifest: Path) -> Step:
    name = "change-of-mind"
    pools = f"tpu-{name}-.*"
    return Step(
        letter="b",
        title="a JobSet is deleted while its slice is still being created",
        workload=name,
        moves=(
            Hold(pools),
            Apply(manifest),
            Until(
                what="GKE is creating its node pool",
                seen=lambda view: "PROVISIONING" in view.pools_of(name).values(),
            ),
            Delete(manifest),
            Until(what="the slice is to be released", seen=lambda view: _became(view, name, Phase.RELEASING) == 1),
            LetGo(pools),
            _gone(name),
            Until(
                what="the slice was released without ever being READY",
                seen=lambda view: not any(went_through(record, Phase.READY) for record in view.slices_of(name)),
                within=0,
            ),
        ),
    )


def _second_try(manifest: Path) -> Step:
    name = "second-try"
    return Step(
        letter="c",
        title="the zone is out of hosts at the first attempt; the automatic retry succeeds",
        workload=name,
        moves=(
            RunOut(f"tpu-{name}-.*"),
            *_completing(
                manifest,
                name,
                _told(name, Reason.STOCKOUT, "is WAITING with reason Stockout and a time for the next attempt"),
                _ready_after(name, Reason.STOCKOUT, 2, "the second attempt is READY"),
            ),
        ),
    )


def _awaited(manifest: Path) -> Step:
    name = "awaited"
    return Step(
        letter="b",
        title="Compute Engine has too few hosts; its group waits, is told of, and starts when it has them",
        workload=name,
        moves=(
            RunOut(f"tpu-{name}-.*"),
            *_completing(
                manifest,
                name,
                _told(name, Reason.AWAITING_CAPACITY, "waits with reason AwaitingCapacity, in Compute Engine's words"),
                Restock(f"tpu-{name}-.*"),
                _ready_after(name, Reason.AWAITING_CAPACITY, 1, "the same attempt is READY"),
            ),
        ),
    )


def _declared(manifest: Path) -> Step:
    name = "declared"
    groups = f"tpu-{name}-.*"
    nodes = f"--selector=cloud.google.com/tpu-node-group-name={name}"
    return Step(
        letter="c",
        title="a TPUNodeGroup is a slice until it is deleted, and tells in its status how far it is",
        workload=name,
        moves=(
            RunOut(groups),
            Apply(manifest),
            Until(what="kubectl says that it is Provisioning", seen=lambda view: _says(view, name) == "False"),
            Show(("tpunodegroups",)),
            Restock(groups),
            Until(
                what="each of its conditions is True: those of its parts, and Ready",
                seen=lambda view: _says(view, name) == "True",
            ),
            Show(("tpunodegroups",)),
            Show(("nodes", nodes)),
            Delete(manifest),
            _gone(name),
            Until(what="its object has gone last", seen=lambda view: view.group(name) is None),
        ),
    )


def _impossible(manifest: Path) -> Step:
    name = "impossible"
    return Step(
        letter="d",
        title="a JobSet that asks for an impossible topology is refused with the reason",
        workload=name,
        moves=(
            Apply(manifest),
            Until(
                what="its slice is REFUSED",
                seen=lambda view: any(record.phase is Phase.REFUSED for record in view.slices_of(name)),
            ),
            Until(
                what="a Kubernetes Event names the node selector, the topology and the nearest valid ones",
                seen=lambda view: _explained(view, name, "cloud.google.com/gke-tpu-topology", "3x5x7", "use "),
            ),
            Until(what="no node pool was created for it", seen=lambda view: not view.creates_of(name), within=0),
            Delete(manifest),
            _gone(name),
        ),
    )


def _restart(manifest: Path) -> Step:
    name = "restart"
    return Step(
        letter="e",
        title="a JobSet restarts and keeps its slice",
        workload=name,
        moves=_completing(
            manifest,
            name,
            Until(what="its slice is READY", seen=lambda view: _became(view, name, Phase.READY) == 1),
            Until(what="it fails and restarts", seen=lambda view: _restarts(view, name) == 1),
            Until(what="it runs again", seen=lambda view: Ran(name, 0, restart=1) in view.ran),
            Until(
                what="it kept its slice, which was READY throughout",
                seen=lambda view: len(view.creates_of(name)) == 1 and _stayed_ready(view, name),
                within=0,
            ),
        ),
    )


def _completing(manifest: Path, name: str, *meanwhile: Move) -> tuple[Move, ...]:
    """Return the moves of a JobSet from its creation until it has completed, its slices are gone, and so is it."""
    completes = Until(what="the JobSet completes", seen=lambda view: "Completed" in _conditions(view, name))
    return (Apply(manifest), *meanwhile, completes, _gone(name), Delete(manifest))


def _told(name: str, reason: Reason, what: str) -> Until:
    return Until(
        what=f"its slice {what}",
        seen=lambda view: any(reason in reasons(record) for record in view.slices_of(name)),
    )


def _ready_after(name: str, reason: Reason, creates: int, what: str) -> Until:
    """Return when its only slice became READY after such a wait, with so many creations that were accepted."""

    def seen(view: View) -> bool:
        told = [reasons(record) for record in view.slices_of(name)]
        return len(view.creates_of(name)) == creates and [_follows(Reason.READY, reason, each) for each in told] == [
            True
        ]

    return Until(what=what, seen=seen)


def _follows(later: Reason, earlier: Reason, told: Sequence[Reason]) -> bool:
    return earlier in told and later in told[told.index(earlier) :]


def _gone(name: str) -> Until:
    return Until(what="all its slices are GONE and its node pools deleted", seen=lambda view: _over(view, name))


def _over(view: View, name: str) -> bool:
    records = view.slices_of(name)
    gone = all(record.phase is Phase.GONE for record in records)
    return bool(records) and gone and not view.pools_of(name)


def _became(view: View, name: str, phase: Phase) -> int:
    """Return how many of its slices are or were in a phase."""
    return sum(went_through(record, phase) for record in view.slices_of(name))


def _stayed_ready(view: View, name: str) -> bool:
    """Return whether the slices stayed READY from the first READY on, until they were released."""
    phases = [transition.phase for record in view.slices_of(name) for transition in record.transitions]
    since = phases[phases.index(Phase.READY) :]
    return all(phase is Phase.READY for phase in takewhile(lambda phase: phase is not Phase.RELEASING, since))


def _restarts(view: View, name: str) -> int:
    jobset = view.jobset(name)
    return jobset.restarts if jobset else 0


def _conditions(view: View, name: str) -> frozenset[str]:
    jobset = view.jobset(name)
    return jobset.conditions if jobset else frozenset()


def _says(view: View, name: str) -> str:
    """Return what a TPUNodeGroup says of itself: True once every condition is, and nothing before it says anything."""
    group = view.group(name)
    statuses = set(group.conditions.values()) if group else set()
    return "" if not statuses else "True" if statuses == {"True"} else "False"


def _explained(view: View, name: str, *words: str) -> bool:
    return any(
        event.type == "Warning" and all(word in event.message for word in words) for event in view.events_of(name)
    )
