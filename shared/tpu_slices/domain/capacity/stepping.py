"""At which rung of its ladder a workload asks for the slices that it has not. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tpu_slices.domain.model.reasons import IN_LINE, Phase, Reason
from tpu_slices.domain.model.slices import RungSpec, SliceSpec, at_rung, is_at
from tpu_slices.domain.model.texts import clock, shortened
from tpu_slices.domain.records.awaited import Shortage
from tpu_slices.domain.records.ladders import OnLadder, PassedOver
from tpu_slices.domain.records.slices import SliceRecord

RAN_OUT: Mapping[Reason, str] = {
    Reason.STOCKOUT: "{what} is out of stock as {how}",
    Reason.RESOURCES_EXHAUSTED: "{what} is out of stock, or beyond the quota, as {how}",
    Reason.QUOTA_EXCEEDED: "the quota does not allow {what} as {how}",
    Reason.RESERVATION_UNAVAILABLE: "{how} cannot provide {what}",
    Reason.RESERVATION_AWAITED: "{how} is not there, or cannot be used yet",
}
"""What is told of a place, by the reason of a slice that it did not provide."""
TOLD = frozenset({Reason.INVALID_CONFIGURATION, Reason.IMPOSSIBLE_SHAPE})
"""The vendor does not take what is requested there: a rung is passed over until somebody may have mended it."""
_EMPTY = frozenset({Reason.AWAITING_FLEX_START, Reason.AWAITING_CAPACITY})
_FAILED = frozenset({Reason.CREATION_FAILED, Reason.HOSTS_NOT_USABLE, Reason.IP_SPACE_EXHAUSTED})
_GANGS = frozenset({Reason.AWAITING_GANG, Reason.LET_GO_WITH_GANG, Reason.GANG_TOO_LARGE})
_NEW = frozenset({Reason.REQUESTED, Reason.UNOWNED_POOL, Reason.NO_RUNG_IN_ZONE})
_WAITS = frozenset({*RAN_OUT, *TOLD, *_FAILED, *_GANGS, *IN_LINE, *_NEW})
"""The reasons of claims that ask for a slice, and have none on its way."""
PASSED_FOR = timedelta(minutes=30)
"""How long a rung is passed over at which slices came to nothing for its whole time."""
FREED_WITHIN = timedelta(minutes=5)
"""How long a workload that may ask nowhere is not decided on: what it has in another zone goes, or does not."""
DECIDED_WITHIN = timedelta(minutes=1)
"""How long a workload that stepped is not decided on since claims of it wait for their turn there."""
_WHY = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A workload on a ladder: its claims that have that, and what is known of the places."""

    name: str
    """Of the ladder, as in the settings."""
    at: OnLadder
    rungs: Sequence[RungSpec]
    """`against`: of each claim that waits, so that none can use it."""
    claims: Sequence[SliceRecord]
    """Those that need a slice, with what they have."""
    earlier: Sequence[SliceRecord] = ()
    """The claims of the workload that have slices by what they had before: an earlier form of the ladder, or none."""
    what: str
    """What they ask for, as in `v6e 4x4`."""
    avoided: Mapping[int, datetime]
    """The rungs whose places are short for what waits, and until when nobody comes there who has another."""
    shortages: Mapping[int, Shortage]
    anywhere: bool = False
    """Whether slices of the workload may be in several zones."""
    whole: bool = False
    """Whether they are of a gang that has not started: what it has holds it nowhere."""
    now: datetime
    mended_after: timedelta
    """After what time somebody may have mended what the vendor does not take."""

    @property
    def waiting(self) -> Sequence[SliceRecord]:
        return [each for each in self.claims if waits(each)]

    def here(self, at: OnLadder) -> Sequence[SliceRecord]:
        """Return the claims that wait where the workload is."""
        return [each for each in self.waiting if each.spec and is_there(each.spec, at)]

    def made(self, at: OnLadder) -> Sequence[SliceRecord]:
        """Return the claims whose slices stand, or are made, where the workload is."""
        return [each for each in self.claims if _is_made(each) and _is_at(each, at)]

    def empty(self, at: OnLadder) -> Sequence[SliceRecord]:
        """Return the claims to whose slices no hosts came within the time of their rung, which asks for them on."""
        return [each for each in self.claims if is_empty(each) and is_over(each, at, self.now)]

    def open(self, at: OnLadder) -> Sequence[int]:
        """Return the rungs at which the workload may ask: not against its pods, not passed over, in its zone."""
        zones = self.zones(at)
        return [
            number
            for number, rung in enumerate(self.rungs)
            if not rung.against and not at.passes(number, self.now) and (not zones or rung.zone in zones)
        ]

    def zones(self, at: OnLadder) -> Collection[str]:
        """Return the zones in which what the workload has keeps it; empty: it may ask in any.

        What it has by what it had before the ladder keeps a gang in its zone, too: it is at no rung, and does not move.
        """
        kept = [] if self.whole else [each for each in self.claims if _stands(each, at, self.now)]
        kept = [] if self.anywhere else [*kept, *self.earlier]
        return {each.made_as.zone for each in kept if each.made_as is not None}


def stepped(case: Case) -> OnLadder:
    """Return where the workload asks from now on. The first row that holds counts.

    | the workload                                                    | asks                                       |
    |-----------------------------------------------------------------|--------------------------------------------|
    | waits for nothing                                               | where it did                               |
    | no rung is open to it                                           | where it did; nowhere, if that is in       |
    |                                                                 | another zone than what it has              |
    | was refused where that is short still, and the vendor names a   | there, before any other                    |
    | zone that has stock: a rung of the same kind is open there      |                                            |
    | may ask at a better rung, which is not known to be short; not a | there                                      |
    | gang that has some of its slices, or will, where it asks        |                                            |
    | its rung is open, and is not known to be short                  | where it did                               |
    | its rung is short, it has asked there, or waits for its         | where it did                               |
    | reservation, and the rung's time is not over                    |                                            |
    | a later rung is not known to be short                           | there                                      |
    | all rungs are short                                             | where the shortage is forgotten first      |

    A rung is open unless its pods cannot use it; the vendor did not take what was requested there (told, and tried
    again once that may be mended); nothing came of slices there within its time; or it is in another zone than what
    the workload has, unless the ladder says otherwise. A gang that has not started moves whole. What stands is never
    moved.
    """
    at = _judged(case)
    open_ = case.open(at)
    if not (case.waiting or case.empty(case.at)) or not open_:
        return replace(case.at, tried=at.tried, nowhere=_nowhere(case, at) if case.waiting else "")
    free = [number for number in open_ if number not in case.avoided]
    named = next(_named(case, at, free), None) if at.rung not in free else None
    if named is not None:
        return _to(named, case, at, sent=True)
    asked = at.tried or any(each.phase is Phase.PROVISIONING for each in case.made(case.at))
    stays = (at.sent and not asked) or (case.whole and bool(case.made(at)))
    better = [] if stays else [number for number in free if number < at.rung]
    if better:
        return _to(better[0], case, at)
    if at.rung in open_ and (at.rung in free or (asked and not _over(case, at))):
        return at
    later = [number for number in free if number > at.rung]
    if later:
        return _to(later[0], case, at)
    first = min(open_, key=lambda number: (case.avoided.get(number, case.now), number))
    return at if first == at.rung else _to(first, case, at)


def next_look(case: Case, at: OnLadder) -> datetime | None:
    """Return when the workload is decided on if nothing happens before; None: not by itself.

    It waits for nothing, or asks where nothing was refused yet: what is refused first is told by the claim that is.
    Whoever comes to a place may find that somebody else tries it, or was refused there meanwhile, and is decided on
    again within a minute.
    """
    times = [*case.avoided.values(), *(each.until for each in at.passed)]
    if case.waiting and at.nowhere:
        return min((each for each in (*times, case.now + FREED_WITHIN) if each > case.now), default=None)
    moved = at.rung != case.at.rung
    in_line = moved or any(each.reason is Reason.AWAITING_TURN for each in case.here(at))
    if not case.waiting or not (times or at.tried or in_line):
        return None
    times += [case.now + DECIDED_WITHIN] if in_line else []
    times += [ends for each in case.waiting if (ends := _ends(each, at)) is not None]
    return min((each for each in times if each > case.now), default=case.now + PASSED_FOR)


def may_step(record: SliceRecord, at: OnLadder | None, now: datetime) -> bool:
    """Return whether a claim shows that its workload may have to step, so that all of its claims are to be read."""
    spec = record.spec
    if spec is None or not spec.ladder or record.unclaimed or not record.wanted:
        return False
    on = at or OnLadder(since=began(record))
    if is_empty(record):
        return is_over(record, on, now)
    if not waits(record) or not is_there(spec, on):
        return False
    if record.reason in TOLD or record.claim.stocked:
        return True
    if record.reason in {Reason.AWAITING_TURN, *_GANGS} and at is not None and now - at.since < DECIDED_WITHIN:
        return False
    return record.reason not in {Reason.REQUESTED, Reason.OPERATION_LIMIT} and (
        not on.tried or is_over(record, on, now)
    )


def waits(record: SliceRecord) -> bool:
    """Return whether a claim asks for a slice, and has none on its way."""
    has_none = record.current.create_requested_at is None and record.claim.refusal is None and not record.hold
    return record.wanted and has_none and record.reason in _WAITS


def is_empty(record: SliceRecord) -> bool:
    """Return whether a claim has a pool without hosts, to which the vendor adds them when it has them."""
    made = record.current.create_requested_at is not None and not record.goes
    return made and record.reason in _EMPTY and not record.current.hosts.joined


def is_there(spec: SliceSpec, at: OnLadder) -> bool:
    """Return whether a claim asks where its workload is by now."""
    return at_rung(spec, at.rung).rung == spec.rung


def began(record: SliceRecord) -> datetime:
    """Return since when a claim has waited."""
    return record.claim.waits_since or record.claim.awaited_since or record.since


def is_over(record: SliceRecord, at: OnLadder, now: datetime) -> bool:
    """Return whether the time is over for which a claim asks at its rung."""
    ends = _ends(record, at)
    return ends is not None and now >= ends


def _ends(record: SliceRecord, at: OnLadder) -> datetime | None:
    """Return when the time of a claim's rung ends; None: not by itself, as that of flex-start without one."""
    empty, spec = is_empty(record), record.made_as if is_empty(record) else record.spec
    if spec is None or not spec.rungs:
        return None
    lasts = spec.rungs[spec.rung].lasts
    requested = record.current.create_requested_at
    if empty and requested is not None:
        flexible = spec.is_flex_start and lasts is None
        return None if flexible else requested + (lasts or timedelta(0))
    return max(at.since, began(record)) + (lasts or timedelta(0))


def _over(case: Case, at: OnLadder) -> bool:
    return any(is_over(each, at, case.now) for each in case.here(at))


def _stands(record: SliceRecord, at: OnLadder, now: datetime) -> bool:
    """Return whether what a claim has, or what is being made for it, keeps its workload in its zone."""
    made_as = record.made_as
    if record.current.create_requested_at is None or record.goes or made_as is None:
        return False
    return not (is_empty(record) and at.passes(made_as.rung, now))


def _judged(case: Case) -> OnLadder:
    """Return where it is, with what is known by now: whether it was refused there, and what it passes over.

    Who was refused is decided on when the time of the rung is over (`next_look`). So a creation that runs is none: if
    it fails, that is the first refusal.
    """
    at, here = case.at, case.here(case.at)
    in_line = any(each.reason is Reason.RESERVATION_NOT_OPEN for each in here)
    refused = any(each.phase is Phase.WAITING and each.reason in RAN_OUT for each in here)
    tried = at.tried or refused or in_line
    passed = {each.rung: each for each in (*at.passed, *_passed(case)) if case.now < each.until}
    return replace(at, tried=tried, passed=tuple(passed[number] for number in sorted(passed)), nowhere="")


def _nowhere(case: Case, at: OnLadder) -> str:
    """Return why a workload to which no rung is open may not ask where it did either; empty: it may."""
    zones = case.zones(at)
    if not zones or case.rungs[at.rung].zone in zones:
        return ""
    where = " or ".join(sorted(zones))
    there = [number for number, each in enumerate(case.rungs) if each.zone in zones]
    passed = {each.rung: each.message for each in at.passed}
    why = "; ".join(
        f"rung {number + 1} ({case.rungs[number].how}): {case.rungs[number].against or passed.get(number, '')}"
        for number in there
    )
    none = f"no rung in {where} that it can use ({shortened(why, _WHY)})" if there else f"no rung in {where}"
    return (
        f"The ladder {case.name} has {none}, where other slices of the workload are. Add one there, or say "
        "`zones: any` of the ladder; or wait until those slices are gone."
    )


def _is_at(record: SliceRecord, at: OnLadder) -> bool:
    """Return whether what a claim has is where its workload is, also if it was made for none, or without a ladder."""
    return (
        record.made_as is not None and record.spec is not None and is_at(record.made_as, at_rung(record.spec, at.rung))
    )


def _is_made(record: SliceRecord) -> bool:
    return record.current.create_requested_at is not None and record.phase in {Phase.PROVISIONING, Phase.READY}


def _passed(case: Case) -> Iterator[PassedOver]:
    for each in case.here(case.at):
        if each.spec is None or not each.spec.rungs:
            continue
        why, rung = shortened(each.message.rstrip("."), _WHY), each.spec.rungs[each.spec.rung]
        if each.reason in TOLD:
            yield PassedOver(rung=each.spec.rung, message=why, until=case.now + case.mended_after)
        elif each.reason in _FAILED and rung.lasts is not None and is_over(each, case.at, case.now):
            yield PassedOver(rung=each.spec.rung, message=why, until=case.now + max(PASSED_FOR, rung.lasts))
    for each in case.empty(case.at):
        if (made_as := each.made_as) is not None:
            lasts = made_as.rungs[made_as.rung].lasts or PASSED_FOR
            yield PassedOver(rung=made_as.rung, message="no hosts came", until=case.now + max(PASSED_FOR, lasts))


def _named(case: Case, at: OnLadder, free: Collection[int]) -> Iterator[int]:
    """Yield the rungs in zones that the vendor named when it refused a slice where the workload is."""
    for each in case.here(at):
        spec = each.spec
        if spec is not None and each.reason in RAN_OUT:
            alike = (number for number in free if case.rungs[number].capacity.kind is spec.capacity.kind)
            yield from (number for number in alike if case.rungs[number].zone in each.claim.stocked)


def _to(number: int, case: Case, at: OnLadder, *, sent: bool = False) -> OnLadder:
    why = f"{_said(number, case, at)}; now asked as {case.rungs[number].how} (rung {number + 1} of {len(case.rungs)})"
    return replace(at, rung=number, since=case.now, tried=False, whole=case.whole, sent=sent, message=why)


def _said(number: int, case: Case, at: OnLadder) -> str:
    """Return why it steps, as a clause."""
    if number < at.rung and number not in case.avoided:
        return f"{case.rungs[number].how} may have {case.what} again"
    how = case.rungs[at.rung].how if at.rung < len(case.rungs) else ""
    if known := _known_of_reservation(case, at):
        return known
    passed = next((each.message for each in at.passed if each.rung == at.rung), None)
    if passed is not None:
        return f"{how} is passed over ({passed})"
    here, short = [each for each in case.here(at) if each.reason in RAN_OUT], case.shortages.get(at.rung)
    reason = here[0].reason if here else short.reason if short is not None else Reason.STOCKOUT
    said = RAN_OUT.get(reason, RAN_OUT[Reason.STOCKOUT]).format(what=case.what, how=how)
    tries = sum(sum(each.claim.setbacks.values()) for each in case.waiting) if at.tried else 0
    if tries:
        since = clock(min(began(each) for each in case.waiting), case.now)
        return f"{said} ({tries} attempt{'' if tries == 1 else 's'} since {since})"
    return f"{said} (as of {clock(short.at, case.now)})" if short is not None else said


def _known_of_reservation(case: Case, at: OnLadder) -> str:
    """Return what is known of the reservation of its rung that keeps it from serving; empty: nothing is."""
    against = case.rungs[at.rung].against if at.rung < len(case.rungs) else ""
    short = case.shortages.get(at.rung)
    return against or (short.message if short is not None else "")
