"""Cases to decide: slices in the states that tests of the decision need, and strategies for all that there are."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from tests.builders import (
    MINUTE,
    NOW,
    a_jobset,
    a_record,
    a_spec,
    an_occupant,
    asked_to_close,
    asked_to_open,
    heard,
    settings,
    some_hosts,
    unclaimed,
    with_fields,
)
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.observations import (
    Absent,
    Begun,
    Broken,
    Busy,
    Creating,
    Deleting,
    Failure,
    FailureKind,
    Observation,
    Observed,
    Running,
    Unowned,
    Unreadable,
    Visible,
    Witness,
)
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import Capacity, CapacityKind
from tpu_slices.domain.reconciling.case import Known, Situation
from tpu_slices.domain.reconciling.giving_up import HOSTS_AWAITED
from tpu_slices.domain.records.attempts import Seen
from tpu_slices.domain.records.awaited import PoolOperation, SlotAwaited
from tpu_slices.domain.records.claims import Refusal, Rejection
from tpu_slices.domain.records.heartbeats import RelayHeard
from tpu_slices.domain.records.hosts import NO_HOSTS, Departure, Hosts
from tpu_slices.domain.records.slices import Desire, SliceRecord

HOUR = timedelta(hours=1)
STOCKOUT = Failure(FailureKind.STOCKOUT, "[GCE_STOCKOUT] not enough resources")
FLEX = a_spec(capacity=Capacity(CapacityKind.FLEX_START, max_run_duration=timedelta(days=7)))
OURS, OTHERS = Running(a_spec().fingerprint), Running("v1-other")
BARE = Running(lacking="it has no label google.com/tpu-slice-id.")
"""One that is ours by its record alone."""
LOST = Creating(operation_runs=False)

OWN, SIBLING, GUEST = an_occupant(), an_occupant(job_index=1, pod_uid="pod-llama-1"), an_occupant("guest")
LEFT = (Departure(user=OWN, at=NOW - MINUTE),)
GUEST_LEFT = (Departure(user=GUEST, at=NOW - MINUTE),)

SILENT = Known(relay=RelayHeard(last_at=NOW - 4 * MINUTE, since=NOW - 8 * HOUR))
HEARD_AGAIN = Known(relay=RelayHeard(last_at=NOW, since=NOW - MINUTE))
GUEST_ENDED = heard(workloads={GUEST.owner.uid: a_jobset(uid=GUEST.owner.uid, state=WorkloadState.COMPLETED)})


def owned(state: WorkloadState, **changes: Any) -> Known:
    """Return what is known while the relay is heard and the slice's own JobSet is in this state."""
    own = a_jobset(state=state)
    return heard(workloads={own.owner.uid: own}, **changes)


def requested(**changes: Any) -> SliceRecord:
    """Return a slice whose pool was requested an hour ago, and of which nothing was reported."""
    return a_record(**{"create_requested_at": NOW - HOUR, "phase": Phase.PROVISIONING, **changes})


def lasting(reason: Reason, since: timedelta, **changes: Any) -> SliceRecord:
    """Return a slice whose pool was requested an hour ago, and that has had this reason for so long."""
    record = requested().transitioned(NOW - since, reason, "")
    awaited_since = NOW - since if reason in HOSTS_AWAITED else None
    made = was_seen(Creating()) if reason in {Reason.CREATION_STARTED, Reason.CREATING} else None
    fields = {"since": NOW - since, "hosts_awaited_since": awaited_since, "seen": made}
    return with_fields(record, **{**fields, **changes})


def ready(since: timedelta = 4 * MINUTE, **changes: Any) -> SliceRecord:
    """Return a slice that became READY then, and is vacant; its leader does not wait."""
    hosts = some_hosts(vacant_since=NOW - since)
    return lasting(Reason.READY, since, **{"hosts": hosts, "demand_confirmed_at": NOW - 2 * HOUR, **changes})


def unneeded(record: SliceRecord) -> SliceRecord:
    return replace(record, desire=Desire.ABSENT, desire_message="the JobSet completed")


def going(**changes: Any) -> SliceRecord:
    """Return a slice that no claim has, of an hour ago, of which the relay says that nobody uses it."""
    fields = {
        "attempt": 1,
        "create_requested_at": NOW - HOUR,
        "ordered": a_spec(),
        "demand_confirmed_at": None,
        "phase": Phase.RELEASING,
        "hosts": some_hosts(usable=0, closed=4, asked=asked_to_close(), answered=1),
    }
    return unclaimed(a_record(), **{**fields, **changes})


def in_use(*occupants: Any, **changes: Any) -> SliceRecord:
    """Return a slice that no claim has, and whose hosts these Jobs use; the relay was not asked to close them."""
    return going(**{"hosts": some_hosts(occupants=occupants), **changes})


def with_hosts(record: SliceRecord, **changes: Any) -> SliceRecord:
    return record.with_current(hosts=replace(record.current.hosts, **changes))


def was_seen(pool: Visible, by: Witness = Witness.LOOK, since: datetime = NOW - 30 * MINUTE) -> Seen:
    return Seen(pool=pool, since=since, by=by)


def seen(pool: Observation) -> Observed:
    return Observed(pool)


moments = st.integers(-90, 0).map(lambda minutes: NOW + minutes * MINUTE)
maybe_moments = st.none() | moments
counted_hosts = st.builds(
    some_hosts,
    usable=st.integers(0, 4),
    closed=st.sampled_from([0, 4]),
    occupants=st.sampled_from([(), (), (OWN,), (GUEST,), (SIBLING,), (GUEST, OWN)]),
    departures=st.sampled_from([(), (), LEFT, GUEST_LEFT]),
    vacant_since=maybe_moments,
).map(lambda hosts: replace(hosts, vacant_since=None) if hosts.occupants else hosts)
hosts: st.SearchStrategy[Hosts] = st.just(NO_HOSTS) | counted_hosts
kinds = st.sampled_from([kind for kind in FailureKind if kind is not FailureKind.NAME_TAKEN])  # that is a refusal
failures = st.builds(Failure, kinds, st.just("why"))
visible: st.SearchStrategy[Visible] = st.one_of(
    st.just(Absent()),
    st.just(Begun("its workload policy")),
    st.builds(Creating, st.booleans()),
    st.sampled_from([OURS, OTHERS, Running(), Running(OURS.fingerprint, awaiting="stockout"), BARE]),
    st.just(Busy("repair")),
    st.builds(Broken, failures),
    st.just(Deleting()),
    st.just(Unowned("not ours")),
)
observations: st.SearchStrategy[Observation] = visible | st.just(Unreadable("503"))
ordinary = st.sampled_from([heard(), *(owned(state) for state in WorkloadState)])
special = st.sampled_from(
    [owned(WorkloadState.DELETED, stopped="Too many."), GUEST_ENDED, HEARD_AGAIN, SILENT, Known()]
)
knowledge = ordinary | ordinary | special


rarely = st.integers(0, 4).map(lambda number: number == 0)


@st.composite
def asked_hosts(draw: st.DrawFn) -> Hosts:
    """Draw hosts about which the relay may have been asked, may have answered that, and may have seen a later one."""
    found, asks = draw(hosts), draw(st.sampled_from([None, asked_to_close, asked_to_close, asked_to_open]))
    asked = asks(draw(moments), number=3) if asks else None
    return replace(
        found,
        asked=asked,
        highest=draw(st.sampled_from([3, 3, 4])),
        answered=draw(st.sampled_from([0, 2, 3, 3])),
    )


_ENDS = {
    "not_cancellable": st.booleans(),
    "cancel_refused": st.sampled_from(["", "missing permission"]),
    "refused": st.sampled_from(["", "missing permission"]),
    "delete_requested_at": maybe_moments,
}
"""The fields of a slice that goes."""


def lines(attempt: int, *, goes: bool) -> st.SearchStrategy[SlotAwaited]:
    """Return the operation of a slice that may wait for a slot, or have it in hand."""
    operation = PoolOperation.DELETE if goes else PoolOperation.CREATE
    return st.builds(
        lambda number: SlotAwaited(operation=operation, attempt=attempt, since=NOW - MINUTE, number=number),
        st.none() | st.just(7),
    )


@st.composite
def records(draw: st.DrawFn) -> SliceRecord:
    """Draw a claim, and the slice that it has, which may go; or a slice that no claim has."""
    record = lasting(draw(st.sampled_from(Reason)), draw(st.integers(0, 90)) * MINUTE)
    requested_at, number = draw(maybe_moments), draw(st.integers(4, 6))
    lets_go = requested_at is not None and draw(st.booleans())
    claim = with_fields(
        record,
        slot_awaited=draw(st.none() | lines(number, goes=lets_go)),
        desire=draw(st.sampled_from(Desire)),
        demand_confirmed_at=draw(st.just(NOW) | maybe_moments),
        attempt=number,
        tried=draw(st.integers(6, 8)),
        create_requested_at=requested_at,
        ordered=draw(st.sampled_from([a_spec(), replace(a_spec(), fingerprint="v1-other"), None])),
        slot=draw(st.none() | st.integers(0, 4)),
        hosts=draw(asked_hosts()) if requested_at else NO_HOSTS,
        spared_until=NOW + MINUTE if draw(rarely) else None,
        let_go="nobody used it" if lets_go else "",
        earlier=draw(st.sampled_from([(), (), (1,), (1, 3)])),
        failures=draw(st.integers(0, 40)),
        retry_at=draw(st.none() | st.integers(-5, 5).map(lambda minutes: NOW + minutes * MINUTE)),
        unawaited_since=NOW - draw(st.integers(0, 20)) * MINUTE if draw(rarely) else None,
        rebuild_allowed=draw(st.booleans()),
        release_requested=draw(rarely),
        spec=draw(st.sampled_from([a_spec(), a_spec(), a_spec(hosts=8), FLEX, None])),
        refusal=Refusal(reason=Reason.DOES_NOT_FIT, message="No.") if draw(rarely) else None,
        rejection=REJECTION if draw(rarely) else None,
    )
    if not lets_go:
        return claim
    seen_before = draw(st.none() | st.builds(was_seen, visible, st.sampled_from(Witness)))
    claim = with_fields(claim, seen=seen_before, **{name: draw(drawn) for name, drawn in _ENDS.items()})
    return unclaimed(claim, release_requested=False) if draw(st.booleans()) else claim


REJECTION = Rejection(reason=Reason.LEADER_UNSCHEDULABLE, message="No.", settings_version="settings-1")


every_record = records()


@st.composite
def situations(
    draw: st.DrawFn,
    slices: st.SearchStrategy[SliceRecord] = every_record,
    known: st.SearchStrategy[Known] = knowledge,
    current: st.SearchStrategy[Observation] = observations,
) -> Situation:
    record, beside = draw(slices), draw(known)
    record = record if record.unclaimed else replace(record, desire=_desire(record, beside))
    found = Observed(draw(current) if record.current.create_requested_at is not None else Absent())
    granted = {number: number for number in range(9)} if draw(st.booleans()) else {}
    return Situation(record, found, NOW, settings(), replace(beside, slots=granted))


def _desire(record: SliceRecord, known: Known) -> Desire:
    """Return the desire that follows from what is known of the slice's own JobSet."""
    own = known.workloads.get(record.owner.uid)
    if record.release_requested:
        return Desire.ABSENT
    return record.desire if own is None or own.state is WorkloadState.ACTIVE else Desire.ABSENT


def wanted(record: SliceRecord) -> SliceRecord:
    """Return the slice as it is while its JobSet needs it and its pool was requested."""
    requested_at = record.current.create_requested_at or NOW - HOUR
    kept = {"claimed_by": record.maker, "let_go": "", "delete_requested_at": None}
    return with_fields(record, **kept, desire=Desire.PRESENT, release_requested=False, create_requested_at=requested_at)
