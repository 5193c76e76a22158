"""A step of the demo: its actions and the conditions that must follow, its progress, and when it has failed. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from infra.local.demo.view import View
from tpu_standins.patience import PATIENCE_SECONDS


@dataclass(frozen=True, slots=True)
class Apply:
    manifest: Path


@dataclass(frozen=True, slots=True)
class Delete:
    manifest: Path


@dataclass(frozen=True, slots=True)
class RunOut:
    """Make the zone run out of hosts for what matches the name: GKE's next node pool, all instance groups."""

    pools: str


@dataclass(frozen=True, slots=True)
class Restock:
    """Let the zone have hosts again for what matches the name, after the same RunOut."""

    pools: str


@dataclass(frozen=True, slots=True)
class Hold:
    """Let the creation of GKE's next node pool of a name that matches last until LetGo."""

    pools: str


@dataclass(frozen=True, slots=True)
class LetGo:
    pools: str


@dataclass(frozen=True, slots=True)
class Show:
    """Show what `kubectl get` prints."""

    what: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """A condition that must be observed within so many seconds of the move before it.

    It must stay true once it is, or have been recorded: what passes may come and go between two looks.
    """

    what: str
    seen: Callable[[View], bool]
    within: float = PATIENCE_SECONDS


Act = Apply | Delete | RunOut | Restock | Hold | LetGo | Show
Move = Act | Until


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    letter: str
    title: str
    workload: str
    """The name of its JobSet or TPUNodeGroup."""
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of a step. Times in seconds of one clock."""

    step: Step
    since: float
    """When the next move began."""
    passed: int = 0
    seen: tuple[tuple[float, str], ...] = ()
    """What happened, and when."""
    failure: str | None = None

    @property
    def next(self) -> Move | None:
        return self.step.moves[self.passed] if self.passed < len(self.step.moves) else None

    @property
    def to_do(self) -> Act | None:
        """Return the action that is due now, or None."""
        move = self.next
        return None if self.over or isinstance(move, Until) else move

    @property
    def over(self) -> bool:
        return self.failure is not None or self.next is None

    @property
    def happened(self) -> bool:
        return self.over and self.failure is None

    @property
    def waits_for(self) -> str:
        return self.next.what if isinstance(self.next, Until) else ""


def done(progress: Progress, what: str, now: float) -> Progress:
    """Return the progress after its next move was performed or observed."""
    return replace(progress, passed=progress.passed + 1, since=now, seen=(*progress.seen, (now, what)))


def failed(progress: Progress, why: str) -> Progress:
    return replace(progress, failure=why)


def advanced(progress: Progress, view: View, now: float) -> Progress:
    """Advance past every condition that holds; one that does not hold by its deadline fails the step."""
    while not progress.over and isinstance(progress.next, Until):
        until = progress.next
        if until.seen(view):
            progress = done(progress, until.what, now)
        elif now - progress.since > until.within:
            return failed(progress, f"not observed within {until.within:.0f} s: {until.what}")
        else:
            return progress
    return progress
