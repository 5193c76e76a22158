"""How the chips of a slice are used over time: the one definition of what is held, and of what is useful. Pure.

Lists, pages, simulations and metrics add these numbers up, and derive none of them otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from tpu_slices.domain.model.observations import Running
from tpu_slices.domain.model.reasons import UNUSED, Phase, Reason
from tpu_slices.domain.model.slices import CapacityKind, SliceSpec
from tpu_slices.domain.records.attempts import Attempt
from tpu_slices.domain.records.hosts import Hosts

MOST_USAGES = 30
"""How many usages a record keeps: the newest."""


class Use(StrEnum):
    """How the chips of a slice are used: see `use_of`."""

    WAITING = "WAITING"
    STOPPED = "STOPPED"
    STARTING = "STARTING"
    IDLE = "IDLE"
    WARM = "WARM"
    USEFUL = "USEFUL"


HELD = frozenset({Use.STARTING, Use.IDLE, Use.WARM, Use.USEFUL})
"""Hosts stand, which are billed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledAs:
    """By what hosts are billed: how they are had, and where."""

    capacity: CapacityKind
    zone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """A time in which the chips of a slice were used alike."""

    since: datetime
    until: datetime | None = None
    """None: they still are."""
    use: Use
    chips: int
    billed_as: BilledAs | None = None
    """Of chips that are held: a claim may have slices at one place after another. None: as its slice is made."""


def use_of(phase: Phase, reason: Reason, current: Attempt) -> Use | None:
    """Return how the chips of a slice are used; None: none is requested, and none stands.

    | its hosts | and                                                                    | use      |
    |-----------|------------------------------------------------------------------------|----------|
    | stand     | a Job is on them, and nothing says that it does not run                | USEFUL   |
    | stand     | they are kept, or were made, for the next claim, as a setting says     | WARM     |
    | stand     | they join, or come back (PROVISIONING), and no Job is known to run     | STARTING |
    | stand     | anything else: nobody is on them, or its Job does not train on them    | IDLE     |
    | do not    | it is GONE, or goes                                                    | None     |
    | do not    | somebody must change something or release chips: REFUSED, BLOCKED      | STOPPED  |
    | do not    | anything else: in line, out of stock, being created, hosts taken back  | WAITING  |
    """
    if phase is Phase.GONE:
        return None
    if hosts_stand(current):
        if reason in {Reason.WARM, Reason.SPARE}:
            return Use.WARM
        if _is_used(phase, reason, current.hosts):
            return Use.USEFUL
        return Use.STARTING if phase is Phase.PROVISIONING else Use.IDLE
    if phase is Phase.RELEASING:
        return None
    return Use.STOPPED if phase in {Phase.REFUSED, Phase.BLOCKED} else Use.WAITING


def hosts_stand(current: Attempt) -> bool:
    """Return whether there are hosts, as far as is known: from then on they are billed, as a slice comes as a whole.

    | the relay                        | the vendor                                     | hosts stand |
    |----------------------------------|------------------------------------------------|-------------|
    | counts at least one              | whatever it says                               | yes         |
    | counted some before, and none now| whatever it says                               | no          |
    | has not told of any yet          | has made the pool, and waits for no hosts of it| yes         |
    | has not told of any yet          | anything else                                  | no          |
    """
    if current.create_requested_at is None or current.hosts.known:
        return current.create_requested_at is not None and current.hosts.joined > 0
    seen = current.seen.pool if current.seen is not None else None
    fills_later = current.ordered is not None and current.ordered.is_flex_start
    return isinstance(seen, Running) and not seen.awaiting and not fills_later


def _is_used(phase: Phase, reason: Reason, hosts: Hosts) -> bool:
    if phase is Phase.PROVISIONING:
        return any(each.running >= each.needed and not each.trouble and not each.apart for each in hosts.pods)
    return bool(hosts.occupants) and reason not in UNUSED and not any(each.trouble for each in hosts.pods)


def used_on(usages: Sequence[Usage], use: Use | None, made_as: SliceSpec | None, at: datetime) -> tuple[Usage, ...]:
    """Return the usages of a slice whose chips are used so from a time on: as they are, if they were before."""
    if use is None or made_as is None or not made_as.chips:
        return ended(usages, at)
    billed_as = BilledAs(capacity=made_as.capacity.kind, zone=made_as.zone) if use in HELD else None
    now = Usage(since=at, use=use, chips=made_as.chips, billed_as=billed_as)
    if usages and replace(usages[-1], since=at) == now:
        return tuple(usages)
    return (*ended(usages, at), now)[-MOST_USAGES:]


def ended(usages: Sequence[Usage], at: datetime) -> tuple[Usage, ...]:
    """Return the usages without one that goes on."""
    if not usages or usages[-1].until is not None:
        return tuple(usages)
    *before, last = usages
    return (*before, replace(last, until=at)) if last.since < at else tuple(before)


def with_those_of(usages: Sequence[Usage], others: Sequence[Usage], at: datetime) -> tuple[Usage, ...]:
    """Return the usages of a claim with those of a slice that it had before, or gets, which ended then."""
    if not others:
        return tuple(usages)
    going = [each for each in usages if each.until is None]
    past = [each for each in (*usages, *ended(others, at)) if each.until is not None]
    return (*sorted(past, key=lambda each: each.since), *going)[-MOST_USAGES:]
