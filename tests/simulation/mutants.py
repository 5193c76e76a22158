"""Systems that are broken on purpose, each in one place, and the promise that tells.

`python -m tests.simulation.mutants` finds a seed for each mutant whose own no longer tells.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from relay.agenda import Timing
from relay.fact_queue import FactQueue
from tests.builders import had, with_fields
from tests.simulation.capacity.booked import in_reservations
from tests.simulation.capacity.drawn import on_ladders
from tests.simulation.drawn import a_plot, in_gangs, level, story_of
from tests.simulation.played import played
from tests.simulation.promises import Promise
from tests.simulation.stocked import with_spares
from tests.simulation.tenants import anew, flips, reservations
from tests.simulation.warm import in_warm
from tpu_slices.domain.capacity.warmth import kept_warm
from tpu_slices.domain.model.clusters import Limits, Policy
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import ClaimId, SliceId
from tpu_slices.domain.reconciling.deletion import Assessment, Evidence, Step, assess
from tpu_slices.domain.reconciling.demand import with_current_desire
from tpu_slices.domain.reconciling.limiter import admit
from tpu_slices.domain.records.attempts import Attempt
from tpu_slices.domain.records.limiters import Candidate
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.warmth import Warmth
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.ports.store import Change, Stored, moved
from tpu_slices_simulator.story import Fault, Kind, Story

MOST_SEEDS = 60
DOMAIN = "tpu_slices.domain.reconciling"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A system with something else in the place of a function."""

    name: str
    promise: Promise
    place: str
    instead: Any
    played: Callable[[Story], Story] = lambda story: story
    """What of a seed's story tells."""
    seed: int = 0
    """Its story breaks the mutant's promise."""

    def breaks(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(self.place, self.instead)


WITH_NEXT = SliceRecord.with_next
KEPT_WARM = kept_warm


def broken_by(mutant: Mutant, seed: int) -> Promise | None:
    """Return the promise that the mutant breaks in a seed's story."""
    with pytest.MonkeyPatch.context() as patch:
        mutant.breaks(patch)
        return played(mutant.played(story_of(seed))).promise


def found_by(mutant: Mutant) -> int | None:
    """Return the mutant's seed, else the first whose story breaks its promise; None: none of MOST_SEEDS does."""
    seeds = (mutant.seed, *range(MOST_SEEDS))
    return next((seed for seed in seeds if broken_by(mutant, seed) is mutant.promise), None)


def _deletes_at_once(*_: object) -> Assessment:
    return Assessment(Step.DELETE, Reason.DELETION_STARTED, "nobody was asked")


def _uses_two_names_in_turn(record: SliceRecord, stands: SliceId | None) -> SliceRecord:
    after = WITH_NEXT(record, stands)
    other = 1 if record.attempt > 1 else 2
    return after if other in had(after) else with_fields(after, attempt=other)


def _knows_none_of_before(record: SliceRecord, stands: SliceId | None) -> SliceRecord:
    return WITH_NEXT(record, stands).with_claim(earlier=())


def _keeps_what_it_let_go(
    before: Stored[SliceRecord] | None, after: SliceRecord, left: SliceRecord | None = None
) -> tuple[Change, ...]:
    kept = left and replace(left, claimed_by=left.last_claim)
    return moved(before, after, kept)


def _wants_what_has_ended(record: SliceRecord, own: WorkloadRecord | None, listed_at: datetime | None) -> SliceRecord:
    return record if own is not None and own.state.ended else with_current_desire(record, own, listed_at)


def _is_first(_: object, workload: WorkloadRecord, __: object) -> bool:
    return workload.announced_at is None


def _begins_anew(record: SliceRecord, *others: Any) -> Warmth | None:
    return KEPT_WARM(record.with_current(warm=None), *others)


def _rests(pool: Attempt, evidence: Evidence, now: datetime, limits: Limits) -> Assessment:
    told = assess(pool, evidence, now, limits)
    asked = pool.hosts.closing
    rested = asked is None or now - asked.at > timedelta(minutes=10)
    return told if rested or told.step is not Step.DELETE else Assessment(Step.WAIT, Reason.CLOSING_HOSTS, "rests")


def _deletes_nothing(pool: Attempt, evidence: Evidence, now: datetime, limits: Limits) -> Assessment:
    told = assess(pool, evidence, now, limits)
    return Assessment(Step.WAIT, Reason.CLOSING_HOSTS, "rests") if told.step is Step.DELETE else told


def _looks_each_minute(_: object, __: object, now: datetime, *___: object) -> datetime:
    return now + timedelta(minutes=1)


def _admits_by_name(waiting: Iterable[Candidate], *others: Any) -> tuple[Candidate, ...]:
    candidates = list(waiting)
    first = min((each.namespace for each in candidates), default="")
    return admit([each for each in candidates if each.namespace == first], *others)


def _admits_by_pool(waiting: Iterable[Candidate], *others: Any) -> tuple[Candidate, ...]:
    candidates = list(waiting)
    turns = [replace(each, namespace=str(each.capacity_pool)) for each in candidates]
    admitted = {each.id for each in admit(turns, *others)}
    return tuple(each for each in candidates if each.id in admitted)


def _all_of(workload: WorkloadRecord, *_: object) -> Collection[ClaimId]:
    return workload.demand


def _none(*_: object) -> None:
    return None


def _stops_nothing(record: SliceRecord, *_: object) -> tuple[SliceRecord, None]:
    return record, None


def crowded(story: Story) -> Story:
    """Return a story of many JobSets that are deleted all at once, while no watch shows it."""
    unseen = Fault(kind=Kind.WATCHES_HANG, at=20, lasts=1)
    deleted = Fault(kind=Kind.WORKLOADS_DELETED, at=20, lasts=1)
    jobsets = tuple(a_plot(f"job-{number}", 1) for number in range(14))
    return replace(story, jobsets=jobsets, faults=(unseen, deleted), minutes=60)


def flooded(story: Story) -> Story:
    """Return a story in which a namespace asks for many slices before and after another asks for one."""
    many = tuple(a_plot(f"job-{number}", 2 * (number % 2), slices=3) for number in range(8))
    one = a_plot("one", 1, namespace="vision")
    settings = replace(story.settings, limits=Limits(operations=2), policy=Policy())
    plain = replace(story, crosses=False, operated=False, flapping=False, policy_off=None, set_back=None)
    return replace(plain, jobsets=(*many, one), faults=(), minutes=60, settings=settings)


def slowly(story: Story) -> Story:
    """Return a story in which Jobs of one shape follow each other, and pods that are deleted end slowly."""
    slow = Fault(kind=Kind.PODS_END_SLOWLY, at=1, lasts=100, share=1.0)
    lives = ((f"job-{number}", 1 + 12 * number) for number in range(6))
    jobsets = tuple(a_plot(name, at, ends=at + 12, deleted=True) for name, at in lives)
    plain = replace(story, crosses=False, operated=False, flapping=False, policy_off=None, set_back=None)
    return replace(plain, jobsets=jobsets, faults=(slow,), minutes=100)


def held(story: Story) -> Story:
    """Return a story in which a zone runs out of what a gang lacks, for hours, once some of its slices stand."""
    gangs = (a_plot("gang", 1, slices=3, gang=True), a_plot("late", 15, slices=1))
    plain = replace(story, crosses=False, operated=False, flapping=False, policy_off=None, set_back=None)
    out = Fault(kind=Kind.STOCKOUT, at=8, lasts=200)
    settings = replace(story.settings, policy=Policy(), limits=replace(story.settings.limits, operations=1))
    return replace(plain, jobsets=gangs, faults=(out,), minutes=200, settings=settings)


def held_to_a_late_cap(story: Story) -> Story:
    """Return that story in a cluster that holds slices for long at most, and briefly while others cannot be made."""
    story = held(story)
    limits = replace(story.settings.limits, gang_hold_at_most=timedelta(hours=4))
    return replace(story, settings=replace(story.settings, limits=limits))


_never_repeating = partial(FactQueue, timing=Timing(repeat=timedelta(days=1)))
MUTANTS = (
    Mutant("deletes at once", Promise.NO_THEFT, f"{DOMAIN}.ending.assess", _deletes_at_once, seed=6),
    Mutant(
        "uses two names in turn",
        Promise.NO_DOUBLE,
        "tpu_slices.domain.records.slices.SliceRecord.with_next",
        _uses_two_names_in_turn,
        seed=15,
    ),
    Mutant(
        "forgets what it gave up",
        Promise.NO_STRAY,
        f"{DOMAIN}.binding.let_go",
        lambda *_: None,
        seed=6,
    ),
    Mutant(
        "keeps what it let go", Promise.ONE_CLAIM, "tpu_slices.flows.reconcile.moved", _keeps_what_it_let_go, seed=6
    ),
    Mutant(
        "knows none of the slices before",
        Promise.BOOKS_BALANCE,
        "tpu_slices.domain.records.slices.SliceRecord.with_next",
        _knows_none_of_before,
        seed=44,
    ),
    Mutant(
        "buys for whoever waited once",
        Promise.NO_STALE_BUYING,
        f"{DOMAIN}.case.Situation.waiting",
        property(lambda case: case.record.wanted),
        seed=13,
    ),
    Mutant("takes no turn", Promise.NO_OVERRUN, f"{DOMAIN}.case.Situation.slot_for", lambda *_: 0, seed=27),
    Mutant("has no brake", Promise.NO_OVERRUN, "tpu_slices.flows.looking.stopped", _stops_nothing, crowded, seed=20),
    Mutant("heeds no pause", Promise.NO_DEFIANCE, f"{DOMAIN}.decide.why_frozen", lambda *_: None, seed=2),
    Mutant("counts no chips", Promise.NO_OVERRUN, f"{DOMAIN}.refusals.over_budget", lambda *_: None, seed=1),
    Mutant("comes back to nothing", Promise.NO_SILENCE, f"{DOMAIN}.decide.due", lambda *_: None, seed=5),
    Mutant(
        "takes everybody for its own",
        Promise.KNOWN_USERS,
        "tpu_slices.domain.records.slices.SliceRecord.occupied",
        property(lambda record: bool(record.current.hosts.occupants)),
        seed=7,
    ),
    Mutant("deletes nothing", Promise.WANTED, f"{DOMAIN}.ending.assess", _deletes_nothing),
    Mutant("looks each minute", Promise.BOUNDED_COST, f"{DOMAIN}.decide.due", _looks_each_minute),
    Mutant("prefers a namespace", Promise.FAIR_TURNS, "tpu_slices.flows.slots.admit", _admits_by_name, flooded),
    Mutant("asks about all slices", Promise.BOUNDED_COST, "tpu_slices.flows.receive.concerned", _all_of, flips),
    Mutant("counts no chips of a namespace", Promise.NO_OVERRUN, f"{DOMAIN}.refusals.over_budget", _none, flips),
    Mutant(
        "goes round capacity pools", Promise.FAIR_TURNS, "tpu_slices.flows.slots.admit", _admits_by_pool, reservations
    ),
    Mutant(
        "ends nothing", Promise.NO_PILE, "tpu_slices.flows.looking.with_current_desire", _wants_what_has_ended, anew
    ),
    Mutant(
        "gives nothing back",
        Promise.KNOWN_USERS,
        "tpu_slices.flows.unclaimed.may_be_regained",
        lambda _: False,
        seed=27,
    ),
    Mutant("reports once", Promise.TRUE_REPORTS, "tpu_slices.flows.report.is_news", _is_first, seed=1),
    Mutant("repeats nothing", Promise.CONVERGES, "tpu_slices_simulator.relays.FactQueue", _never_repeating, level, 16),
    Mutant(
        "looks at nothing that is due", Promise.CONVERGES, "tpu_slices.flows.sweep.request_due", lambda *_: 0, seed=11
    ),
    Mutant(
        "asks nobody before it hands over",
        Promise.OWN_HOSTS,
        f"{DOMAIN}.taking.assess",
        _deletes_at_once,
        slowly,
    ),
    Mutant(
        "lets pods of gangs go at once",
        Promise.NO_HALF_GANG,
        "relay.gangs.standing.Standing.missing",
        _none,
        in_gangs,
        seed=1,
    ),
    Mutant(
        "holds for ever", Promise.NO_HOARD, "tpu_slices.domain.gangs.deciding._is_held_too_long", lambda *_: False, held
    ),
    Mutant(
        "holds until the cap",
        Promise.NO_HOARD,
        "tpu_slices.domain.gangs.deciding._hold_for",
        lambda _gang, case: case.limits.gang_hold_at_most,
        held_to_a_late_cap,
    ),
    Mutant(
        "keeps warm for ever",
        Promise.WARMTH_ENDS,
        "tpu_slices.domain.capacity.warmth.kept_warm",
        _begins_anew,
        in_warm,
        seed=1,
    ),
    Mutant(
        "takes whatever a rung costs",
        Promise.OWN_RUNGS,
        "tpu_slices.domain.planning.ladders._too_dear",
        lambda *_: "",
        on_ladders,
        seed=9,
    ),
    Mutant(
        "steps to other zones",
        Promise.ONE_ZONE,
        "tpu_slices.domain.capacity.stepping._stands",
        lambda *_: False,
        on_ladders,
        seed=29,
    ),
    Mutant(
        "asks where nothing is",
        Promise.NO_HAMMERING,
        f"{DOMAIN}.limiter.is_avoided",
        lambda *_: False,
        on_ladders,
        seed=21,
    ),
    Mutant(
        "asks in full reservations",
        Promise.NO_OVERBOOKING,
        "tpu_slices.domain.capacity.reservations.fewest_held",
        _none,
        in_reservations,
        seed=2,
    ),
    Mutant(
        "looks at reservations each minute",
        Promise.BOUNDED_COST,
        "tpu_slices.domain.capacity.reservations.next_look",
        _looks_each_minute,
        in_reservations,
    ),
    Mutant(
        "makes no spares",
        Promise.SPARES_STAND,
        f"{DOMAIN}.binding.why_not_now",
        lambda *_: "Others come first.",
        with_spares,
    ),
    Mutant("rests before it deletes", Promise.NO_LEAK, f"{DOMAIN}.ending.assess", _rests, seed=1),
    Mutant(
        "wants what has ended",
        Promise.NO_LEAK,
        "tpu_slices.flows.looking.with_current_desire",
        _wants_what_has_ended,
        seed=20,
    ),
)


def main() -> None:
    for mutant in MUTANTS:
        print(mutant.name, mutant.seed, found_by(mutant), flush=True)


if __name__ == "__main__":
    main()
