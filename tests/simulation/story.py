"""A story: which JobSets there are and when, and what goes wrong and when. Plain data; times are minutes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import yaml

from tests.simulation.chance import Chance


class Kind(StrEnum):
    """What goes wrong. The share of a fault is of messages, calls, operations, or of pools in each minute."""

    MESSAGES_LOST = "messages lost"
    """Facts of the relay never arrive."""
    MESSAGES_DOUBLED = "messages doubled"
    MESSAGES_LATE = "messages late"
    """Facts arrive up to two hours later, after newer ones."""
    REQUESTS_LOST = "requests lost"
    """Reconcile requests never arrive: dead-lettered, or the log sink is silent."""
    REQUESTS_OLD = "requests old"
    """Reconcile requests of the past arrive again."""
    FUNCTIONS_CRASH = "functions crash"
    """A process is gone right after a side effect."""
    FUNCTIONS_STALL = "functions stall"
    """An instance stands still between remember and act for up to eight minutes, and goes on."""
    FUNCTIONS_OVERLAP = "functions overlap"
    """Other messages are handled between the reads and the write of one."""
    CLOCKS_DIFFER = "clocks differ"
    """The clock of an instance is up to 20 seconds ahead or behind."""
    STORE_CONTENDED = "store contended"
    """Commits are refused since somebody else wrote first."""
    STORE_DOWN = "store down"
    PUBLISHER_DOWN = "publisher down"
    GKE_UNAVAILABLE = "GKE unavailable"
    """503, before an order has an effect."""
    GKE_FORBIDS = "GKE forbids"
    """403."""
    GKE_ANSWERS_LOST = "GKE answers lost"
    """Orders are carried out, and time out."""
    GKE_FULL = "GKE full"
    """Operations of others leave room for one."""
    OPERATIONS_SLOW = "operations slow"
    """They take an hour longer."""
    OPERATIONS_FORGOTTEN = "operations forgotten"
    """Those of creations end without an end that anybody sees; ended ones are dropped."""
    STOCKOUT = "stockout"
    QUOTA = "quota"
    CREATIONS_FAIL = "creations fail"
    """With errors that say nothing; pools stay behind, with or without hosts."""
    DELETIONS_FAIL = "deletions fail"
    DELETIONS_REFUSED = "deletions refused"
    POOLS_WRECKED = "pools wrecked"
    """RUNNING_WITH_ERROR for some minutes."""
    POOLS_REPAIRED = "pools repaired"
    """GKE recreates all hosts of a pool, or upgrades them."""
    POOLS_DELETED = "pools deleted"
    """By hand, past the provisioner."""
    HOSTS_DIE = "hosts die"
    """They are preempted, and come again or do not."""
    HOSTS_TAKEN_BACK = "hosts taken back"
    """Those of flex-start, as at the end of their time."""
    HOSTS_CORDONED = "hosts cordoned"
    """By somebody else, for half an hour at most."""
    HOSTS_UNUSABLE = "hosts unusable"
    """A host of those that join never becomes ready."""
    LEADERS_LEAVE = "leaders leave"
    """Jobs restart: a pod fails, is evicted or preempted."""
    RELAY_DOWN = "relay down"
    RELAY_RESTARTS = "relay restarts"
    SETTINGS_INVALID = "settings invalid"
    """An operator's edit that cannot be accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    kind: Kind
    at: int
    lasts: int
    share: float = 1.0

    def is_on(self, minute: int) -> bool:
        return self.at <= minute < self.at + self.lasts


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """What becomes of one JobSet."""

    name: str
    at: int
    slices: int = 1
    flex_start: bool = False
    ends: int | None = None
    """None: it lives until the end."""
    deleted: bool = False
    """At its end; else it completes."""
    again: bool = False
    """Created anew under its name, a minute after it was deleted."""
    suspended: tuple[tuple[int, int], ...] = ()
    """From when to when."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    seed: int
    """Of everything that the story does not say."""
    minutes: int
    """How long faults happen; then there is calm, and then all JobSets end."""
    chips: int | None = None
    """The limit of the cluster."""
    crosses: bool = False
    """Whether leaders go to free hosts of other JobSets' slices, too."""
    jobsets: tuple[Plot, ...] = ()
    faults: tuple[Fault, ...] = ()

    def on(self, minute: int) -> Mapping[Kind, float]:
        """Return the faults of a minute, with the greatest share of each."""
        shares: dict[Kind, float] = {}
        for fault in self.faults:
            if fault.is_on(minute):
                shares[fault.kind] = max(fault.share, shares.get(fault.kind, 0.0))
        return shares


def to_yaml(story: Story) -> str:
    fields = asdict(story)
    fields["jobsets"] = [_told(each, Plot(name="", at=0)) for each in story.jobsets]
    fields["faults"] = [{**asdict(each), "kind": each.kind.value} for each in story.faults]
    return yaml.safe_dump(fields, sort_keys=False)


def _told(plot: Plot, plain: Plot) -> dict[str, Any]:
    fields, usual = asdict(plot), asdict(plain)
    fields["suspended"] = [list(each) for each in plot.suspended]
    return {name: value for name, value in fields.items() if name in {"name", "at"} or value not in (usual[name], [])}


def from_yaml(text: str) -> Story:
    fields = yaml.safe_load(text)
    jobsets = (
        Plot(**{**each, "suspended": tuple((since, until) for since, until in each.get("suspended", ()))})
        for each in fields.pop("jobsets", ())
    )
    faults = (Fault(**{**each, "kind": Kind(each["kind"])}) for each in fields.pop("faults", ()))
    return Story(**fields, jobsets=tuple(jobsets), faults=tuple(faults))


PER_MINUTE = {
    Kind.POOLS_WRECKED, Kind.POOLS_REPAIRED, Kind.POOLS_DELETED, Kind.HOSTS_DIE, Kind.HOSTS_TAKEN_BACK,
    Kind.HOSTS_CORDONED, Kind.LEADERS_LEAVE, Kind.RELAY_RESTARTS,
}  # fmt: skip
"""Their share is of each minute, so it is small."""
SHARES = (0.02, 0.1, 0.3, 1.0)


def story_of(seed: int) -> Story:
    """Return the story that a seed draws."""
    chance = Chance(f"story {seed}")
    minutes = chance.between(60, 240, "minutes")
    return Story(
        seed=seed,
        minutes=minutes,
        chips=chance.pick((None, 64, 96), "chips"),
        crosses=chance.happens(0.5, "crosses"),
        jobsets=tuple(_plot(chance, number, minutes) for number in range(chance.between(1, 9, "jobsets"))),
        faults=tuple(_fault(chance, number, minutes) for number in range(chance.between(0, 10, "faults"))),
    )


def _plot(chance: Chance, number: int, minutes: int) -> Plot:
    at = chance.between(0, minutes - 30, number, "at")
    ends = chance.between(at + 5, minutes, number, "ends") if chance.happens(0.6, number, "ends?") else None
    last = minutes if ends is None else ends
    since = chance.between(at + 1, last, number, "suspended")
    until = chance.between(since + 1, since + 30, number, "resumed")
    deleted = chance.happens(0.5, number, "deleted")
    return Plot(
        name=f"job-{number}",
        at=at,
        slices=chance.pick((1, 1, 2, 3), number, "slices"),
        flex_start=chance.happens(0.2, number, "flex-start"),
        ends=ends,
        deleted=deleted,
        again=deleted and chance.happens(0.3, number, "again"),
        suspended=((since, until),) if until < last and chance.happens(0.3, number, "suspended?") else (),
    )


def _fault(chance: Chance, number: int, minutes: int) -> Fault:
    kind = chance.pick(tuple(Kind), "kind", number)
    share = chance.pick(SHARES[:3] if kind is Kind.FUNCTIONS_CRASH else SHARES, "share", number)
    return Fault(
        kind=kind,
        at=chance.between(0, minutes - 10, "from", number),
        lasts=chance.pick((5, 20, 60, 120), "lasts", number),
        share=share / 10 if kind in PER_MINUTE else share,
    )
