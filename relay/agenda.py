"""What facts come due by: the relay's clock and intervals, the subjects, and how far the watches have come. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from relay.objects import Kind, Pool
from tpu_slices.domain.model.facts import Family
from tpu_slices.domain.model.questions import ANSWERED_WITHIN
from tpu_slices.domain.model.slices import WorkloadUid


class SteadyClock:
    """Runs evenly, even if the system clock is set: what is scheduled comes neither early nor late."""

    def __init__(self, began: datetime, seconds: Callable[[], float]) -> None:
        self._began = began
        self._seconds = seconds
        self._origin = seconds()

    def now(self) -> datetime:
        """Return the time; compare it only with other times of this clock."""
        return self._began + timedelta(seconds=self._seconds() - self._origin)


LONGEST_PAUSE = 30.0
"""Seconds between two tries of what fails again and again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The relay's delays and intervals; `relay.fact_queue` and `relay.telling.pacing` have what they apply to."""

    gather: timedelta = timedelta(seconds=1)
    regather: timedelta = timedelta(seconds=30)
    renew: timedelta = timedelta(seconds=1)
    renew_at_most: timedelta = timedelta(minutes=5)
    quiet: timedelta = timedelta(minutes=1)
    introduce: timedelta = timedelta(seconds=5)
    count_every: timedelta = timedelta(seconds=15)
    repeat: timedelta = timedelta(minutes=5)
    beat: timedelta = timedelta(minutes=1)
    blind_after: timedelta = timedelta(minutes=4)
    settle: timedelta = timedelta(seconds=5)
    vacated: timedelta = timedelta(seconds=5)
    succeeds: timedelta = timedelta(seconds=2)
    look_every: timedelta = timedelta(seconds=15)
    left_behind: timedelta = timedelta(minutes=30)
    pods_settle: timedelta = timedelta(minutes=2)
    answer_within: timedelta = ANSWERED_WITHIN
    forget_after: timedelta = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Demand:
    """The leaders of a workload that wait for slices."""

    uid: WorkloadUid


@dataclass(frozen=True, slots=True)
class State:
    """The state of a workload."""

    uid: WorkloadUid


@dataclass(frozen=True, slots=True)
class StillEnded:
    """The state of a workload that was told not to be active: told again as long as there are hosts for it."""

    uid: WorkloadUid


@dataclass(frozen=True, slots=True)
class Hosts:
    """The count of a pool's hosts, and who occupies them."""

    pool: Pool


@dataclass(frozen=True, slots=True)
class Recount:
    """A pool whose count, or the answer to a question about it, changes by the passing of time."""

    pool: Pool


@dataclass(frozen=True, slots=True)
class Look:
    """A pool that a Job's leader has left, or ended on: whether others of its pods are on the hosts."""

    pool: Pool


@dataclass(frozen=True, slots=True)
class List:
    """All that the relay sees of a family: the functions asked for it then."""

    family: Family
    asked_at: datetime


@dataclass(frozen=True, slots=True)
class Beat:
    """The heartbeat: the relay is alive, and the digest of each family."""


Subject = Demand | State | StillEnded | Hosts | Recount | Look | List | Beat


class Agenda:
    """When each subject comes due; what is being looked up about one rests, with all that must not overtake it."""

    def __init__(self) -> None:
        self._due: dict[Subject, datetime] = {}
        self._resting: set[Subject] = set()

    def get(self, subject: Subject) -> datetime | None:
        return self._due.get(subject)

    def put(self, subject: Subject, at: datetime) -> None:
        """Schedule a subject for this time, whenever it was due."""
        self._due[subject] = at

    def drop(self, subject: Subject) -> None:
        self._due.pop(subject, None)

    def schedule(self, subject: Subject, at: datetime) -> None:
        """Schedule a subject for this time at the latest; of those that are due, the last one scheduled comes last."""
        known = self._due.get(subject)
        if known is None or at < known:
            self._due.pop(subject, None)
            self._due[subject] = at

    def hurry(self, subjects: Callable[[Subject, datetime], bool], now: datetime) -> None:
        """Let these subjects be due now."""
        for subject, at in self._due.items():
            if subjects(subject, at):
                self._due[subject] = now

    def pop(self, now: datetime) -> Iterator[Subject]:
        """Yield and remove what is due, also what becomes due meanwhile."""
        while subjects := [subject for subject, at in self._due.items() if at <= now and not self.rests(subject)]:
            for subject in subjects:
                if subject in self._due and not self.rests(subject):  # it may rest since another one came due
                    del self._due[subject]
                    yield subject

    def next_due(self) -> datetime | None:
        return min((at for subject, at in self._due.items() if not self.rests(subject)), default=None)

    def rest(self, subject: Subject) -> None:
        """Let a subject rest until `resume`."""
        self._resting.add(subject)

    def resume(self, subject: Subject) -> None:
        self._resting.discard(subject)

    def rests(self, subject: Subject) -> bool:
        """Return whether facts on a subject must wait for those that are being looked up."""
        match subject:
            case State(uid):
                return Demand(uid) in self._resting
            case Look(pool):
                return not self._resting.isdisjoint({subject, Hosts(pool)})
            case List(family=Family.HOSTS):
                return any(isinstance(each, Hosts) for each in self._resting)
            case _:
                return subject in self._resting


class WatchProgress:
    """The signs of life of each watch."""

    def __init__(self, blind_after: timedelta) -> None:
        self._blind_after = blind_after
        self._signs_of_life: dict[Kind, datetime] = {}
        self._versions: dict[Kind, int] = {}
        self._interrupted: set[Kind] = set()

    @property
    def complete(self) -> bool:
        """Whether every kind was listed: what is not in the cluster cache then does not exist."""
        return len(self._signs_of_life) == len(Kind)

    @property
    def interrupted(self) -> bool:
        """Whether a watch failed, and was not resumed yet."""
        return bool(self._interrupted)

    @property
    def sequence(self) -> int:
        """The sum of the versions up to which the watches have delivered: as none decreases, it never does.

        Nor is it lower after a restart: a list has the latest version that the API server has. Only if etcd was
        restored meanwhile does it go back; the functions notice by a list of hosts.
        """
        return sum(self._versions.values())

    def is_current(self, now: datetime) -> bool:
        """Return whether every watch has shown a sign of life lately."""
        return self.complete and all(now - sign < self._blind_after for sign in self._signs_of_life.values())

    def bookmarked(self, kind: Kind, version: str, now: datetime) -> None:
        """Record that a watch has delivered everything up to a resourceVersion; others than numbers are ignored."""
        self._signs_of_life[kind] = now
        self._interrupted.discard(kind)
        if version.isdigit():
            self._versions[kind] = max(self._versions.get(kind, 0), int(version))

    def failed(self, kind: Kind) -> None:
        """Record that a watch failed: what it would have shown is unknown until its next sign of life."""
        self._interrupted.add(kind)


def rising_pause(first: float, failures: int) -> float:
    """Return the pause in seconds: doubled with each consecutive failure, up to LONGEST_PAUSE.

    The exponent is capped, as the power would overflow after very many failures.
    """
    return min(LONGEST_PAUSE, first * 2.0 ** min(failures, 16))
