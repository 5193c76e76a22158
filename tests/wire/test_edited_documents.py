"""A record that an operator edited in the console is refused by its field, or can be worked on like any other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.builders import (
    CLUSTER,
    MINUTE,
    NOW,
    a_job,
    a_jobset,
    a_record,
    a_slot,
    a_spec,
    an_occupant,
    heard,
    settings,
    some_hosts,
    unclaimed,
)
from tests.world import World
from tpu_slices.domain.model.clusters import ClusterSettings, Limits
from tpu_slices.domain.model.facts import Family, Heartbeat, Listed
from tpu_slices.domain.model.observations import (
    Absent,
    Broken,
    Busy,
    Creating,
    Deleting,
    Failure,
    FailureKind,
    Observed,
    PoolSeen,
    Running,
    Unowned,
)
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import Network, Taint, WorkloadUid, claim_id, pool_name
from tpu_slices.domain.planning.policy import Held
from tpu_slices.domain.reconciling.brake import found, stops_told, why_kept, why_not_bought
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.demand import with_current_desire
from tpu_slices.domain.reconciling.inventory import Records, check_inventory, questions, to_be_listed
from tpu_slices.domain.reconciling.limiter import admit, candidate_of, lowered, raised, ran_out
from tpu_slices.domain.records.awaited import PoolOperation, Shortage, SlotAwaited
from tpu_slices.domain.records.brakes import Brake, Stop
from tpu_slices.domain.records.claims import Refusal, Rejection
from tpu_slices.domain.records.heartbeats import Compared, RelayHeartbeat, with_heartbeat, with_listed
from tpu_slices.domain.records.hosts import Asked, Departure
from tpu_slices.domain.records.limiters import Budget, ConcurrencyLimiter, Slot
from tpu_slices.domain.records.queues import capacity_pool_of
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.domain.reporting.reports import called_for, report
from tpu_slices.domain.reporting.waits import QueueState
from tpu_slices.flows.reconcile import reconcile
from tpu_slices.flows.sweep import sweep
from tpu_slices.ports.errors import Permanent
from tpu_slices.ports.store import Record
from tpu_slices.wire.documents import decode, encode

FAILURE = Failure(FailureKind.STOCKOUT, "out of stock")
SEEN = (Absent(), Creating(operation_runs=False), Running(fingerprint=None), Busy("repair"), Broken(FAILURE),
        Deleting(), Unowned("not ours"))  # fmt: skip
SETTINGS = settings()

AWAITED = SlotAwaited(operation=PoolOperation.DELETE, attempt=3, since=NOW)
SPEC = a_spec(
    node_labels=(("team", "vision"),),
    taints=(Taint("a", "b"),),
    networks=(Network("n", "s"),),
    copied_labels=("team",),
)
WHOLE = a_record(
    spec=SPEC,
    ordered=SPEC,
    pinned_settings=SETTINGS.pools,
    create_requested_at=NOW - MINUTE,
    attempt=3,
    slot=1,
    failures=2,
    retry_at=NOW + MINUTE,
    hosts=some_hosts(occupants=(an_occupant(),), departures=(Departure(user=an_occupant("phi"), at=NOW),)),
    slot_awaited=AWAITED,
    earlier=(2,),
    first_job=a_job(name="gemma"),
    rejection=Rejection(reason=Reason.IMPOSSIBLE_SHAPE, message="no", settings_version="1"),
    expire_at=NOW + MINUTE,
).transitioned(NOW - MINUTE, Reason.STOCKOUT, "out of stock")
LET_GO = unclaimed(
    WHOLE,
    attempt=2,
    earlier=(),
    delete_requested_at=NOW - MINUTE,
    spared_until=NOW,
    hosts=some_hosts(
        occupants=(an_occupant("gemma"),), asked=Asked(number=2, at=NOW, close=True), highest=2, answered=1
    ),
    slot_awaited=SlotAwaited(operation=PoolOperation.DELETE, attempt=2, since=NOW),
)
REFUSED = a_record(spec=None, refusal=Refusal(reason=Reason.NOT_ALLOWED, message="no"), phase=Phase.REFUSED)
ADOPTED = a_record(attempt=0, legacy_pool="tpu-provisioner-1", create_requested_at=NOW, phase=Phase.READY)
JOBSET = a_jobset(report=report(a_jobset(), [WHOLE], QueueState(), NOW), next_report_at=NOW, announced_at=NOW)
LIMITER = ConcurrencyLimiter(
    cluster=CLUSTER,
    limit=5,
    changed_at=NOW - MINUTE,
    shortages={capacity_pool_of(a_spec()): Shortage(at=NOW, reason=Reason.STOCKOUT)},
)
HEARTBEAT = RelayHeartbeat(
    cluster=CLUSTER,
    received_at=NOW,
    uninterrupted_since=NOW - MINUTE,
    count=1,
    families={Family.DEMAND: Compared(parts=(NOW, NOW - MINUTE), asked_at=NOW)},
    next_inventory_check_at=NOW,
)
STOP = Stop(since=NOW - MINUTE, stopped_at=NOW, ended=12, live=3, chips=240, confirmed_at=NOW - MINUTE)
BRAKE = Brake(cluster=CLUSTER, whole=STOP, namespaces={"research": STOP})
LISTED = Listed(family=Family.DEMAND, asked_at=NOW, after=None, up_to=None, digests={}, part=0, parts=1, sequence=7)
BEAT = Heartbeat(count=1, digests=dict.fromkeys(Family, 0))
BUDGET = Budget(cluster=CLUSTER, creations=3, changed_at=NOW)
RECORDS: Mapping[str, Record] = {
    "slice": WHOLE, "let go": LET_GO, "refused": REFUSED, "adopted": ADOPTED, "workload": JOBSET, "slot": a_slot(),
    "limiter": LIMITER, "heartbeat": HEARTBEAT, "budget": BUDGET, "brake": BRAKE,
}  # fmt: skip

EDITS: tuple[Any, ...] = (
    None, True, "", "x", "READY", "2x2", "a/b", "__x__", "2026-03-01T12:00:00", "2026-03-01", "0001-01-01T00:00:00Z",
    "9" * 400, -1, 0, 1, 7, 10_000, 2**31, 2**62, 2**63 - 1, 1.5, float("inf"), float("nan"), 1e300, -1e300,
    [], {}, [[]], [None], ["x"], {"x": 1}, {"x": None}, {"a/b": NOW}, [{}],
    datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC),
)  # fmt: skip
"""What a person may type, or a script may write, into a field."""
REMOVED = object()


def paths_of(value: Any, *way: str | int) -> Iterator[tuple[str | int, ...]]:
    """Yield the way to every value in a document, at any depth."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for part, member in members:
        yield (*way, part)
        yield from paths_of(member, *way, part)


def edited(value: Any, way: tuple[str | int, ...], edit: object) -> Any:
    part, *rest = way
    copied: Any = list(value) if isinstance(value, list) else dict(value)
    if rest:
        copied[part] = edited(copied[part], tuple(rest), edit)
    elif edit is REMOVED:
        del copied[part]
    else:
        copied[part] = edit
    return copied


def decoded_or_refused(kind: type[Record], document: Mapping[str, Any], field: str) -> Record | None:
    """Return the record, or None if it is refused with the name of the field."""
    try:
        return decode(kind, document)
    except Permanent as error:
        if field in str(error):
            return None
        raise


def work_on(record: Record, limits: Limits = SETTINGS.limits) -> Iterator[Record]:
    """Yield what the flows would store after having worked on the record."""
    match record:
        case SliceRecord():
            yield from work_on_slice(record, SETTINGS)
        case WorkloadRecord():
            made = report(record, [WHOLE], QueueState(), NOW)
            yield replace(record, report=made, announced_count=record.announced_count + 1)
            yield called_for(record, NOW) or record
            questions(LISTED, [record])
            with_current_desire(WHOLE, record)
            found(WHOLE, record, NOW, BRAKE)
        case Slot():
            admit([candidate_of(WHOLE, AWAITED)], [record], LIMITER, NOW, limits)
        case ConcurrencyLimiter():
            yield lowered(record, NOW, limits)
            yield raised(record, NOW, limits)
            yield ran_out(record, capacity_pool_of(a_spec()), Shortage(at=NOW, reason=Reason.STOCKOUT))
            admit([candidate_of(WHOLE, AWAITED)], [], record, NOW, limits)
        case RelayHeartbeat():
            to_be_listed(record, NOW)
            yield with_heartbeat(record, BEAT, BEAT.digests, NOW)
            yield with_listed(record, LISTED, NOW)
        case Brake():
            record.counted_since(None, NOW)
            why_kept(record, "research", NOW)
            why_not_bought(record, "research", 16, Held(in_namespace=1, in_cluster=2))
            assert all(stops_told(record))
            yield record.confirmed(None, NOW)
            yield record.pulled("research", STOP)
        case Budget():
            yield replace(record, creations=record.creations + 1)


def work_on_slice(record: SliceRecord, settings_: ClusterSettings) -> Iterator[Record]:
    pools = [PoolSeen(name=pool_name(WHOLE.maker, 9), slice_id=record.maker, attempt=9, job=record.job)]
    findings = check_inventory(Records(workloads={JOBSET.owner.uid: JOBSET}, slices={record.id: record}), pools, NOW)
    yield from (*findings.strays, *(after for _, after in findings.mended))
    report(JOBSET, [record], QueueState(), NOW)
    record = with_current_desire(record, JOBSET)
    for current in SEEN if record.current.create_requested_at else SEEN[:1]:
        decision = decide(record, Observed(current), NOW, settings_, heard())
        for action in decision.actions:
            record.pool_of(action.attempt)
        yield from (each for each in (decision.record, decision.let_go) if each is not None)


def assert_can_be_worked_on(record: Record) -> None:
    for after in work_on(record):
        assert decode(type(after), encode(after)) == after, record


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORDS)
def test_an_edited_record_is_refused_by_its_field_or_can_be_worked_on(name: str) -> None:
    original = RECORDS[name]
    assert_can_be_worked_on(original)
    document = encode(original)
    accepted = refused = 0
    for way in paths_of(document):
        for edit in (*EDITS, REMOVED):
            record = decoded_or_refused(type(original), edited(document, way, edit), str(way[0]))
            if record is None:
                refused += 1
                continue
            accepted += 1
            if record != original:  # an edit of what is derived, or of a value to itself, changes nothing
                assert_can_be_worked_on(record)
    assert min(accepted, refused) >= 10


@pytest.mark.parametrize(
    ("field", "edit"),
    [
        ("since", "2026-03-01T12:00:00"),
        ("claim.demand_confirmed_at", "2026-03-01"),
        ("claim.retry_at", datetime(9999, 12, 31, 23, 59, tzinfo=UTC)),
        ("current.number", 0),
        ("current.number", -1),
        ("current.number", 10_000),
        ("claim.failures", -1),
        ("current.hosts.usable", -4),
        ("transition_count", 2**63 - 1),
        ("job_index", 10**30),
        ("owner.uid", "a/b"),
        ("spec.hosts", 0),
        ("claim.earlier.0", -1),
        ("claimed_by", claim_id(a_job(job_index=7))),
        ("claimed_by", WHOLE.id),
        ("let_go", None),
        ("transitions.0.at", "2026-03-01T12:00:00"),
    ],
)
def test_an_edit_that_no_flow_could_work_on_is_named_by_its_field(field: str, edit: object) -> None:
    way = tuple(int(part) if part.isdigit() else part for part in field.split("."))
    with pytest.raises(Permanent, match=f"^SliceRecord: {field}: "):
        decode(SliceRecord, edited(encode(WHOLE), way, edit))


@pytest.mark.parametrize("field", ["spec.topology", "current.ordered.topology"])
def test_an_edited_topology_that_is_none_is_named_by_its_field(field: str) -> None:
    way = tuple(int(part) if part.isdigit() else part for part in field.split("."))
    with pytest.raises(Permanent, match=f" {field}: "):
        decode(SliceRecord, edited(encode(WHOLE), way, "4x"))


def test_attempt_0_is_that_of_an_adopted_pool() -> None:
    assert decode(SliceRecord, encode(ADOPTED)) == ADOPTED


def test_a_report_with_a_time_without_zone_is_left_out() -> None:
    document = edited(encode(JOBSET), ("report", "since"), "2026-03-01T12:00:00")
    assert decode(WorkloadRecord, document) == replace(JOBSET, report=None)


@pytest.mark.parametrize("field", ["since", "next_reconcile_at", "created_at"])
def test_an_edited_slice_stops_neither_another_nor_the_sweep(field: str) -> None:
    world = World()
    edited_one, other = world.jobset_appears("llama"), world.jobset_appears("gemma")
    world.settle(minutes=1)
    record = world.record(edited_one)
    world.store.edit_slice(CLUSTER, record.id, **{field: "2026-03-01T12:00:00"})
    with pytest.raises(Permanent, match=f"SliceRecord: {field}: must be a time with its zone"):
        reconcile(CLUSTER, record.name, world.deps)
    sweep(CLUSTER, world.deps)
    assert world.record(other).phase is not Phase.QUEUED


def test_a_demand_for_what_cannot_be_a_slice_is_refused_by_its_name() -> None:
    with pytest.raises(Permanent, match=r"^WorkloadRecord: demand\.a/b: must be the ID of a claim"):
        decode(WorkloadRecord, edited(encode(JOBSET), ("demand",), {"a/b": NOW}))


def test_a_uid_that_is_no_document_id_is_refused() -> None:
    document = encode(a_jobset(uid=WorkloadUid("uid-llama")))
    with pytest.raises(Permanent, match=r"owner\.uid: must be a name"):
        decode(WorkloadRecord, edited(document, ("owner", "uid"), "x/y"))
