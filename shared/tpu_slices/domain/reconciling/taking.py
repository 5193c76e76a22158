"""Which claim gets a slice that another has, or that none has any more. Pure.

| a slice                                        | its claim is from then on                                  |
|------------------------------------------------|------------------------------------------------------------|
| on which a Job came whose claim has another    | that Job's (`taken`)                                       |
| that no claim has, and whose last one waits    | that again, as if its Job is on it (`regained`)            |
| that is about to be deleted                    | one that waits for such (`handed_over`): it is not deleted |
| that goes, while one is about to be created    | that for which it would be (`handed_over`): none is        |

A slice that was handed over is its claim's at once. Its hosts carry another key: they are closed, and get the claim's
once the relay has proven that nobody uses them (`changes_hands`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from tpu_slices.domain.capacity.warmth import may_get
from tpu_slices.domain.model.capacity import ZonesOf
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.facts import Occupant
from tpu_slices.domain.model.host_keys import within
from tpu_slices.domain.model.observations import Broken, Busy, Creating, Running
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import ClaimId, SliceId, SliceSpec, at_rung, same_request
from tpu_slices.domain.model.texts import clock
from tpu_slices.domain.reconciling.case import Situation
from tpu_slices.domain.reconciling.deletion import Assessment, Evidence, Step, assess
from tpu_slices.domain.reconciling.occupancy import NewCount, Workloads, may_use, with_hosts
from tpu_slices.domain.reconciling.refusals import refusal_of
from tpu_slices.domain.records.hosts import job_of
from tpu_slices.domain.records.matching import needs, needs_of_any, offers, offers_to_any, values_of
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.usage import Usage, with_those_of


@dataclass(frozen=True, slots=True)
class Taken:
    """What comes of a Job on the hosts of a slice that its claim does not have."""

    has: SliceRecord
    """The slice, which the Job's claim has now."""
    had: SliceRecord | None
    """What becomes of the slice that this claim had: another claim has it, or none; None: it is on record no more."""
    other: SliceRecord | None = None
    """The claim that had the slice, or had it last: with its next one, or without this among its earlier ones.

    None: it got what the Job's claim had, or has no record.
    """


def claimant(
    count: NewCount,
    guests: Mapping[ClaimId, Occupant],
    having: Mapping[ClaimId, SliceRecord],
    workloads: Workloads,
    limits: Limits,
) -> tuple[ClaimId, Occupant] | None:
    """Return whose claim gets the slice that was counted, the first of the guests' that may; None: none does.

    `having`: the slices of their claims; a claim without one is new.

    | the Job, or the slice                                                       | gets it |
    |-----------------------------------------------------------------------------|---------|
    | the Job whose claim has the slice, or had it last, is on it, too            | no      |
    | the slice is that of a TPUNodeGroup, is held, or was released by an operator| no      |
    | the slice does not stand, or a request to delete it may still take effect   | no      |
    | its workload is not on record, has ended, is suspended, or scaled it away,  | no      |
    | or it shares the slice of another Job                                       |         |
    | was seen on the slice that its claim has, later than here                   | no      |
    | the slice that its claim has is held, or is released by an operator         | no      |
    | else                                                                        | yes     |
    """
    record = replace(count.record, current=replace(count.record.current, hosts=count.after))
    if record.occupied or record.owner.kind.declares or record.hold or record.release_requested:
        return None
    if not _stands(record) or limits.order_may_arrive(record.current.delete_requested_at, count.now):
        return None
    for claim, occupant in guests.items():
        own = having.get(claim)
        steered = own is not None and (own.hold or own.release_requested)
        if may_use(occupant, workloads) and not steered and (own is None or not count.is_outdated_for(own)):
            return claim, occupant
    return None


def taken(count: NewCount, by: Occupant, own: SliceRecord, last: SliceRecord | None) -> Taken:
    """Return what each claim has once the Job's claim gets the slice that was counted.

    `own`: what the Job's claim had, or would have.
    `last`: what the claim has now that had the slice last, if none has it.

    | the claim whose slice it was                            | has                                     |
    |---------------------------------------------------------|-----------------------------------------|
    | none                                                    | the last one keeps what it has          |
    | its Job is on the slice that the Job's claim had        | that                                    |
    | else that serves it, too, and its pods may come there   | that: nothing tells these two apart     |
    | as they are, by its key; nobody is on it                |                                         |
    | else                                                    | the next: what the other left, if that  |
    |                                                         | serves it (`handed_over`)               |

    What no claim has then goes.
    """
    now, slice_ = count.now, with_hosts(count)
    own = _vacated(own, by, now)
    stood = own.current.create_requested_at is not None and own.phase is not Phase.GONE
    crossed = any(map(slice_.is_of, own.current.hosts.occupants)) or _is_as_good(own, slice_)
    if stood and slice_.wanted and own.wanted and crossed and not slice_.unclaimed:
        return Taken(own.with_slice_of(slice_, now, left=None), slice_.with_slice_of(own, now, left=None))
    left = replace(own.let_go_of(f"its Job runs on {slice_.pool}", now), fits=True) if stood else None
    has = own.with_slice_of(slice_, now, left=left.id if left is not None else None)
    guest = by.owner.told_in(slice_.owner.namespace)
    return replace(given(slice_, has, last, f"The last one is used by {guest}.", now), had=left)


def _is_as_good(own: SliceRecord, slice_: SliceRecord) -> bool:
    """Return whether pods of the claim that loses a slice may come to what the other claim had instead, as it is."""
    spec, made_as = slice_.spec, own.made_as
    if spec is None or made_as is None or own.spec is None or not spec.key or own.spec.key != spec.key:
        return False
    serves = own.phase in {Phase.PROVISIONING, Phase.READY} and not own.current.hosts.occupants
    same = same_request(own.current.made_for or made_as.fingerprint, spec) and values_of(made_as) == values_of(spec)
    return serves and same and own.reason is not Reason.POOL_BROKEN


def given(slice_: SliceRecord, has: SliceRecord, last: SliceRecord | None, why: str, now: datetime) -> Taken:
    """Return what each claim has once one `has` the slice that another had, or that none has any more.

    `last`: what the claim has now that had the slice last, if none has it. `why`: what is told to the claim that loses
    it.
    """
    if slice_.unclaimed:
        earlier = tuple(each for each in last.claim.earlier if each != slice_.id) if last is not None else ()
        past = slice_.usages if has.owner.namespace != slice_.owner.namespace else ()
        return Taken(has, None, last and _without(last, earlier, past, now))
    rest = replace(slice_.with_next(None), join_asked=None, next_reconcile_at=now)
    return Taken(has, None, rest.transitioned(now, Reason.REQUESTED, why) if rest.wanted else rest.used(now))


def _without(last: SliceRecord, earlier: tuple[SliceId, ...], past: Sequence[Usage], now: datetime) -> SliceRecord:
    """Return a claim that has a slice no more; `past`: how its chips were used, if its namespace has them no more."""
    usages = with_those_of(last.usages, past, now)
    return replace(last.with_claim(earlier=earlier), usages=usages, next_reconcile_at=now)


def _vacated(own: SliceRecord, by: Occupant, now: datetime) -> SliceRecord:
    """Return the slice of a Job's claim without the Job, which was seen on another one since it was seen there."""
    hosts = own.current.hosts
    others = tuple(each for each in hosts.occupants if job_of(each) != job_of(by))
    if others == hosts.occupants:
        return own
    return own.with_current(hosts=replace(hosts, occupants=others, vacant_since=None if others else now))


def may_be_regained(slice_: SliceRecord) -> bool:
    """Return whether a slice that no claim has may be given back to the claim that had it last."""
    current = slice_.current
    free = slice_.fits and not current.hosts.occupants and current.delete_requested_at is None
    steered = slice_.hold or slice_.release_requested
    return slice_.unclaimed and not steered and (free or slice_.occupied)


def regained(claim: SliceRecord, case: Situation) -> tuple[SliceRecord, SliceRecord | None] | None:
    """Return a claim with a slice again that it had before, and the slice that it had meanwhile, if it had one.

    None: it does not get it. `case`: of the slice, which `may_be_regained`.

    | the claim                                                                           | gets it |
    |-------------------------------------------------------------------------------------|---------|
    | is not needed any more, or not now; is held                                         | no      |
    | its Job is on the slice that it has                                                 | no      |
    | its Job is on this slice, which does not stand, or is being deleted                 | no      |
    | its Job is on this slice                                                            | yes     |
    | its Job waits, none was requested for it yet, and the slice stands whole for the    | yes     |
    | same request where the claim asks by now, with nobody on it or about to return      |         |
    | else                                                                                | no      |
    """
    slice_, now = case.record, case.now
    if not claim.wanted or claim.hold or claim.occupied:
        return None
    if not _stands(slice_) or case.order_may_arrive(slice_.current.delete_requested_at):
        return None
    if not slice_.occupied and not _serves(claim, case):
        return None
    had = claim.current.create_requested_at is not None
    meanwhile = claim.let_go_of(f"its Job runs on {slice_.pool}", now) if had else None
    return claim.with_slice_of(slice_, now, left=meanwhile.id if meanwhile is not None else None), meanwhile


def _stands(slice_: SliceRecord) -> bool:
    """Return whether a pool stands as far as is known, whatever state it is in, and nobody deletes it."""
    seen = slice_.current.seen
    return seen is None or isinstance(seen.pool, Creating | Running | Busy | Broken)


def _serves(claim: SliceRecord, case: Situation) -> bool:
    """Return whether a slice that no claim has is what its claim waits for."""
    current, confirmed = case.record.current, claim.claim.demand_confirmed_at
    waits = confirmed is not None and case.now - confirmed <= case.limits.demand_ttl
    own = case.known.workloads.get(claim.owner.uid)
    gang = own.gang(claim.replicated_job) if own is not None else None
    if not waits or claim.current.create_requested_at is not None or claim.spec is None or case.record.made_as is None:
        return False
    if gang is not None and gang.waits:
        return False
    if not _is_where_it_asks(claim.spec, case.record.made_as, whole=gang is not None):
        return False
    stands = current.seen is not None and isinstance(current.seen.pool, Running | Busy)
    whole = current.hosts.usable + current.hosts.closed >= case.record.made_as.hosts
    unused = not case.users_of(current.made_for)
    return stands and whole and unused and same_request(current.made_for, claim.spec)


def _is_where_it_asks(spec: SliceSpec, made_as: SliceSpec, *, whole: bool) -> bool:
    """Return whether a slice is where its claim asks by now: of a ladder in its zone, of a gang at the very place."""
    same_zone = spec.zone == made_as.zone
    return not spec.ladder or (same_zone and (spec.capacity == made_as.capacity or not whole))


def is_offered(slice_: Situation) -> bool:
    """Return whether a slice that goes, or a spare, may be given to a claim that waits for such.

    | the slice                                                              | may be given |
    |------------------------------------------------------------------------|--------------|
    | serves nobody (`matching.offers`)                                      | no           |
    | neither stands nor is being made; its labels were replaced             | no           |
    | has a host that is not sound, or hosts of which no key is known        | no           |
    | has a host that Google maintains or stops, or will within the hour     | no           |
    | lacks hosts, and stands for longer than these may take to join, or was | no           |
    | kept warm                                                              | no           |
    | has a user, or one that may come back; pods on it are being deleted    | no           |
    | needs a relay that says for which namespace its hosts are; this is     | no           |
    | none, or nothing pins pods                                             |              |
    | else, as a spare for which capacity is awaited, however long           | yes          |
    """
    record, seen = slice_.record, slice_.seen.pool
    hosts, made_as = record.current.hosts, record.made_as
    if offers(record) is None or made_as is None or seen == Creating(operation_runs=False):
        return False
    if not isinstance(seen, Creating | Running | Busy) or (isinstance(seen, Running) and seen.lacking):
        return False
    if hosts.ends_by is not None or slice_.users_of(record.current.made_for):
        return False
    if made_as.crosses and not slice_.known.relay.hands_across:
        return False
    if hosts.sound < hosts.joined or (hosts.joined and not hosts.keys):
        return False
    if hosts.leave_soon(slice_.now) or (record.current.warm is not None and hosts.joined < made_as.hosts):
        return False
    if record.owner.kind.is_spare and isinstance(seen, Running) and seen.awaiting:
        return True
    return hosts.joined >= made_as.hosts or _hosts_may_join(slice_)


def _hosts_may_join(slice_: Situation) -> bool:
    """Return whether a pool is being made, or stands for so short a time that its hosts may be on their way."""
    seen = slice_.record.current.seen
    return seen is not None and (
        isinstance(seen.pool, Creating) or slice_.now - seen.since < slice_.limits.hosts_timeout
    )


def is_served_by(claim: Situation, slice_: SliceRecord) -> bool:
    """Return whether a claim that waits gets a slice that is offered.

    | the claim                                                                   | gets it |
    |-----------------------------------------------------------------------------|---------|
    | waits for another request, in another cluster, or for nothing               | no      |
    | is of another namespace, unless a setting lets the slice cross, which is    | no      |
    | kept warm, and the claim takes such (`capacity.crossing`)                   |         |
    | had the slice itself, which it gets as `regained`                           | no      |
    | is of another workload, and a setting keeps the slice for that which had it | no      |
    | has no leader that was lately seen to wait, or is of a gang that waits      | no      |
    | may ask nowhere, as its workload has slices in a zone of which its ladder   | no      |
    | has no rung                                                                 |         |
    | has no key for its hosts                                                    | no      |
    | asks for other values of what its request names, or elsewhere (`_as_asked`) | no      |
    | is refused, or not allowed; limits of chips do not count, as none is bought | no      |
    | else                                                                        | yes     |
    """
    spec, made_as = claim.record.spec, slice_.made_as
    if spec is None or made_as is None or not _is_asked_for(claim.record, slice_):
        return False
    if slice_.last_claim == claim.record.claimed_by or not may_get(claim.record, slice_, claim.settings):
        return False
    if not claim.waiting or not spec.key or not any(values_of(each) == values_of(made_as) for each in _as_asked(claim)):
        return False
    if claim.asks_nowhere or (claim.gang is not None and claim.gang.waits):
        return False
    return refusal_of(claim.record, claim.settings, None) is None


def _is_asked_for(claim: SliceRecord, slice_: SliceRecord) -> bool:
    of_any = needs_of_any(claim)
    return needs(claim) == offers(slice_) or (of_any is not None and of_any == offers_to_any(slice_))


def _as_asked(claim: Situation) -> Iterator[SliceSpec]:
    """Yield what a claim is served by: what it asks for, and the same at the rungs before it that are open to it.

    | an earlier rung                                                         | is open to it |
    |-------------------------------------------------------------------------|---------------|
    | is not for its pods, or is passed over by its workload                  | no            |
    | any, of a gang that has not started: it is at one rung with all slices  | no            |
    | is in another zone, of a workload of several slices that are in one     | no            |
    | else                                                                    | yes           |
    """
    spec = claim.record.spec
    if spec is None:
        return
    yield spec
    own = claim.known.workloads.get(claim.record.owner.uid)
    at = own.ladders.get(spec.ladder) if own is not None else None
    ladder = claim.settings.ladders.get(spec.ladder.partition("@")[0])
    if at is None or (claim.gang is not None and not claim.gang.ran):
        return
    anywhere = spec.jobset_chips <= spec.chips or (ladder is not None and ladder.zones is ZonesOf.ANY)
    for number, rung in enumerate(spec.rungs[: spec.rung]):
        if not (rung.against or at.passes(number, claim.now)) and (anywhere or rung.zone == spec.zone):
            yield at_rung(spec, number)


def handed_over(claim: SliceRecord, slice_: SliceRecord, last: SliceRecord | None, now: datetime) -> Taken:
    """Return what each claim has once the one that waits has the slice; `last`: see `taking.given`."""
    whose = f"the slice that {slice_.owner.kind} {slice_.owner.name} gave back at {clock(slice_.since, now)}"
    if slice_.owner.kind.is_spare:
        whose = f"a spare of namespace {slice_.owner.namespace}"
    elif slice_.owner.namespace != claim.owner.namespace:
        whose = f"a slice that namespace {slice_.owner.namespace} gave back at {clock(slice_.since, now)}"
    why = f"Got {whose}: nothing was created."
    has = claim.with_slice_of(slice_, now, left=None, why=why)
    return given(slice_, has, last, f"{claim.owner.told_in(slice_.owner.namespace)} has its slice.", now)


def changes_hands(case: Situation) -> Assessment | None:
    """Return what is known of the users of hosts that all carry another key than their claim's; None: it is not so.

    Not if the claim's own Job is there: then its hosts get the key beside it. Hosts that may come to other namespaces
    fit no pod when they are made: nothing is to be proven of them before they get the first one.
    """
    record, current = case.record, case.record.current
    if record.goes or record.occupied or not current.hosts.joined:
        return None
    if current.hosts.lacking(record.key) < current.hosts.joined:
        return None
    if _are_nobodys(record):
        return Assessment(Step.DELETE, Reason.HOSTS_JOINING, "the relay gives them its key")
    others = case.users_of(current.made_for).without_return_of(record.job)
    return assess(
        current,
        Evidence(users=others, relay=case.known.relay, namespace=case.record.owner.namespace),
        case.now,
        case.limits,
    )


def _are_nobodys(record: SliceRecord) -> bool:
    """Return whether the hosts of a slice are as they were made for its claim, of no namespace yet."""
    made_as, hosts = record.made_as, record.current.hosts
    new = made_as is not None and made_as.crosses and record.first_job is None and not hosts.occupants
    return new and hosts.lacking(within("", record.id)) == 0
