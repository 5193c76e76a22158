"""The decision table: one row per case, with the phase, the reason and the actions that it must lead to."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import MINUTE, NOW, a_record, a_spec, an_occupant, settings
from tpu_slices.domain.model.decisions import Action, CreatePool, DeletePool
from tpu_slices.domain.model.observations import (
    Absent,
    Broken,
    Busy,
    Creating,
    Deleting,
    Failure,
    FailureKind,
    Observation,
    PoolObservations,
    Running,
    Unowned,
    Unreadable,
)
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.records import Desire, Phase, Refusal, SliceRecord, TerminatingAttempt
from tpu_slices.domain.model.slices import LAST_ATTEMPT
from tpu_slices.domain.reconciling.decide import decide

STOCKOUT = Failure(FailureKind.STOCKOUT, "[GCE_STOCKOUT] not enough resources")
REQUESTED = {"create_requested_at": NOW - MINUTE, "creating": True, "slot": 0, "phase": Phase.PROVISIONING}
SERVING = {"create_requested_at": NOW - 60 * MINUTE, "phase": Phase.READY, "reason": Reason.READY, "hosts_usable": 4}
BLOCKED = {"phase": Phase.BLOCKED, "reason": Reason.INVALID_CONFIGURATION}
OURS = Running(a_spec().fingerprint)


def in_demand(**changes: object) -> SliceRecord:
    return a_record(**changes)


def unneeded(**changes: object) -> SliceRecord:
    return a_record(desire=Desire.ABSENT, desire_message="the JobSet completed", **changes)


CREATE, DELETE = CreatePool(1), DeletePool(1)

TABLE: list[tuple[str, SliceRecord, Observation, Phase, Reason, tuple[Action, ...]]] = [
    # Absent, PRESENT
    ("first create", in_demand(slot=0), Absent(), Phase.PROVISIONING, Reason.CREATION_STARTED, (CREATE,)),
    ("no slot", in_demand(), Absent(), Phase.QUEUED, Reason.OPERATION_LIMIT, ()),
    ("no demand", in_demand(demand_confirmed_at=None), Absent(), Phase.QUEUED, Reason.DEMAND_STALE, ()),
    (
        "stale demand",
        in_demand(demand_confirmed_at=NOW - 16 * MINUTE, slot=0),
        Absent(),
        Phase.QUEUED,
        Reason.DEMAND_STALE,
        (),
    ),
    ("create lost", in_demand(**REQUESTED), Absent(), Phase.PROVISIONING, Reason.CREATION_STARTED, (CREATE,)),
    (
        "impossible",
        in_demand(spec=None, refusal=Refusal(reason=Reason.IMPOSSIBLE_SHAPE, message="no 3x5x7")),
        Absent(),
        Phase.REFUSED,
        Reason.IMPOSSIBLE_SHAPE,
        (),
    ),
    (
        "waiting for its retry",
        in_demand(phase=Phase.WAITING, reason=Reason.STOCKOUT, retry_at=NOW + MINUTE, slot=0),
        Absent(),
        Phase.WAITING,
        Reason.STOCKOUT,
        (),
    ),
    (
        "retry has come",
        in_demand(phase=Phase.WAITING, reason=Reason.STOCKOUT, retry_at=NOW, slot=0, attempt=2),
        Absent(),
        Phase.PROVISIONING,
        Reason.CREATION_STARTED,
        (CreatePool(2),),
    ),
    (
        "blocked under these settings",
        in_demand(**BLOCKED, blocked_settings_version="settings-1", retry_at=NOW + MINUTE, slot=0),
        Absent(),
        Phase.BLOCKED,
        Reason.INVALID_CONFIGURATION,
        (),
    ),
    (
        "blocked under earlier settings",
        in_demand(**BLOCKED, blocked_settings_version="settings-0", retry_at=NOW + MINUTE, slot=0),
        Absent(),
        Phase.PROVISIONING,
        Reason.CREATION_STARTED,
        (CREATE,),
    ),
    (
        "blocked long ago",
        in_demand(**BLOCKED, blocked_settings_version="settings-1", retry_at=NOW, slot=0),
        Absent(),
        Phase.PROVISIONING,
        Reason.CREATION_STARTED,
        (CREATE,),
    ),
    ("used up", in_demand(attempt=LAST_ATTEMPT + 1, slot=0), Absent(), Phase.BLOCKED, Reason.ATTEMPTS_EXHAUSTED, ()),
    # Absent, ABSENT
    ("never created", unneeded(), Absent(), Phase.GONE, Reason.NEVER_CREATED, ()),
    ("created long ago", unneeded(create_requested_at=NOW - 60 * MINUTE), Absent(), Phase.GONE, Reason.RELEASED, ()),
    ("just requested", unneeded(**REQUESTED), Absent(), Phase.RELEASING, Reason.CREATION_IN_DOUBT, ()),
    # Creating
    ("creating", in_demand(**REQUESTED), Creating(), Phase.PROVISIONING, Reason.CREATING, ()),
    (
        "creating without an operation, not yet long",
        in_demand(**REQUESTED),
        Creating(operation_runs=False),
        Phase.PROVISIONING,
        Reason.CREATING,
        (),
    ),
    (
        "creating without an operation for long",
        in_demand(**{**REQUESTED, "create_requested_at": NOW - 21 * MINUTE}),
        Creating(operation_runs=False),
        Phase.WAITING,
        Reason.CREATION_FAILED,
        (DELETE,),
    ),
    ("creating, unneeded", unneeded(**REQUESTED), Creating(), Phase.RELEASING, Reason.DELETION_STARTED, (DELETE,)),
    # Running
    ("no host yet", in_demand(**REQUESTED), OURS, Phase.PROVISIONING, Reason.HOSTS_JOINING, ()),
    ("three of four", in_demand(**REQUESTED, hosts_usable=3), OURS, Phase.PROVISIONING, Reason.HOSTS_JOINING, ()),
    ("all hosts", in_demand(**REQUESTED, hosts_usable=4), OURS, Phase.READY, Reason.READY, ()),
    ("a host was lost", in_demand(**{**SERVING, "hosts_usable": 3}), OURS, Phase.PROVISIONING, Reason.HOSTS_LOST, ()),
    ("serving", in_demand(**SERVING, occupants=(an_occupant(),)), OURS, Phase.READY, Reason.READY, ()),
    (
        "ready, and the leader still waits",
        in_demand(**SERVING, since=NOW - 10 * MINUTE),
        OURS,
        Phase.READY,
        Reason.LEADER_STILL_WAITING,
        (),
    ),
    (
        "ready, and its last leader left a moment ago",
        in_demand(**SERVING, since=NOW - 10 * MINUTE, vacant_since=NOW),
        OURS,
        Phase.READY,
        Reason.READY,
        (),
    ),
    ("found without a record", in_demand(spec=None, **SERVING), OURS, Phase.READY, Reason.ADOPTED, ()),
    ("finished", unneeded(**SERVING), OURS, Phase.RELEASING, Reason.DELETION_STARTED, (DELETE,)),
    (
        "occupied by another JobSet",
        unneeded(**SERVING, occupants=(an_occupant("other"),)),
        OURS,
        Phase.RELEASING,
        Reason.OCCUPIED,
        (),
    ),
    (
        "another JobSet occupies it first: the next attempt is created",
        in_demand(**SERVING, occupants=(an_occupant("other"),), slot=0),
        OURS,
        Phase.PROVISIONING,
        Reason.CREATION_STARTED,
        (CreatePool(2),),
    ),
    (
        "another request, changed while suspended",
        in_demand(**SERVING, rebuild_allowed=True, slot=0),
        Running("v1-other"),
        Phase.PROVISIONING,
        Reason.CREATION_STARTED,
        (DELETE, CreatePool(2)),
    ),
    (
        "another request, changed while suspended, occupied",
        in_demand(**SERVING, rebuild_allowed=True, occupants=(an_occupant(),)),
        Running("v1-other"),
        Phase.READY,
        Reason.SPEC_DRIFTED,
        (),
    ),
    ("another request", in_demand(**SERVING), Running("v1-other"), Phase.READY, Reason.SPEC_DRIFTED, ()),
    ("a fingerprint of another version", in_demand(**SERVING), Running("v0-other"), Phase.READY, Reason.READY, ()),
    ("no fingerprint", in_demand(**SERVING), Running(None), Phase.READY, Reason.READY, ()),
    # Busy
    ("repair", in_demand(**SERVING), Busy("repair"), Phase.PROVISIONING, Reason.POOL_BUSY, ()),
    ("repair, unneeded", unneeded(**SERVING), Busy("repair"), Phase.RELEASING, Reason.DELETION_STARTED, (DELETE,)),
    # Broken
    ("stockout", in_demand(**REQUESTED), Broken(STOCKOUT), Phase.WAITING, Reason.STOCKOUT, (DELETE,)),
    (
        "permissions",
        in_demand(**REQUESTED),
        Broken(Failure(FailureKind.CONFIGURATION, "no such service account")),
        Phase.BLOCKED,
        Reason.INVALID_CONFIGURATION,
        (DELETE,),
    ),
    (
        "a shape that GKE never makes",
        in_demand(**REQUESTED),
        Broken(Failure(FailureKind.IMPOSSIBLE, "Unsupported TPU configuration")),
        Phase.REFUSED,
        Reason.IMPOSSIBLE_SHAPE,
        (DELETE,),
    ),
    (
        "broken under its Job",
        in_demand(**SERVING, occupants=(an_occupant(),)),
        Broken(STOCKOUT),
        Phase.PROVISIONING,
        Reason.POOL_BROKEN,
        (),
    ),
    (
        "broken under another JobSet",
        unneeded(**SERVING, occupants=(an_occupant("other"),)),
        Broken(STOCKOUT),
        Phase.RELEASING,
        Reason.OCCUPIED,
        (),
    ),
    ("broken, unneeded", unneeded(**REQUESTED), Broken(STOCKOUT), Phase.RELEASING, Reason.DELETION_STARTED, (DELETE,)),
    # Deleting
    (
        "somebody deletes it: a new attempt need not wait",
        in_demand(**SERVING, slot=0),
        Deleting(),
        Phase.PROVISIONING,
        Reason.CREATION_STARTED,
        (CreatePool(2),),
    ),
    ("somebody deletes it, unneeded", unneeded(**SERVING), Deleting(), Phase.RELEASING, Reason.DELETION_STARTED, ()),
    # Unowned
    ("not ours", in_demand(**REQUESTED), Unowned("no owner label."), Phase.BLOCKED, Reason.UNOWNED_POOL, ()),
    ("not ours, unneeded", unneeded(**REQUESTED), Unowned("no owner label."), Phase.GONE, Reason.NEVER_CREATED, ()),
    # Unreadable
    (
        "unreadable",
        in_demand(**SERVING, next_reconcile_at=NOW),
        Unreadable("503"),
        Phase.READY,
        Reason.POOL_UNREADABLE,
        (),
    ),
    ("unreadable, unneeded", unneeded(**SERVING), Unreadable("503"), Phase.READY, Reason.POOL_UNREADABLE, ()),
]


@pytest.mark.parametrize(
    ("record", "seen", "phase", "reason", "actions"),
    [pytest.param(*row, id=f"{row[3]}: {name}".replace(" ", "-")) for name, *row in TABLE],
)
def test_each_case_leads_to_its_phase_reason_and_actions(
    record: SliceRecord, seen: Observation, phase: Phase, reason: Reason, actions: tuple[Action, ...]
) -> None:
    decision = decide(record, PoolObservations(seen, {}), NOW, settings())
    assert (decision.record.phase, decision.reason, decision.actions) == (phase, reason, actions)


@pytest.mark.parametrize(("name", "record", "seen"), [row[:3] for row in TABLE], ids=[row[0] for row in TABLE])
def test_a_slice_on_hold_has_no_actions(name: str, record: SliceRecord, seen: Observation) -> None:
    decision = decide(replace(record, hold=True), PoolObservations(seen, {}), NOW, settings())
    assert (decision.actions, decision.reason) == ((), Reason.HELD), name
    transitioned = decision.record.transitions != record.transitions
    assert transitioned is (decision.record.phase is not record.phase)
    assert transitioned is (record.phase is Phase.QUEUED and record.wanted and isinstance(seen, Absent)), name


@pytest.mark.parametrize(("record", "seen"), [row[1:3] for row in TABLE], ids=[row[0] for row in TABLE])
def test_a_slice_in_a_paused_cluster_has_no_actions(record: SliceRecord, seen: Observation) -> None:
    decision = decide(record, PoolObservations(seen, {}), NOW, settings(paused="upgrade of the cluster, until noon."))
    assert (decision.actions, decision.reason) == ((), Reason.PAUSED)
    assert decision.message.endswith("upgrade of the cluster, until noon.")


def test_a_slice_blocked_by_a_pause_is_created_when_the_pause_is_over() -> None:
    paused = decide(in_demand(), PoolObservations(Absent(), {}), NOW, settings(paused="upgrade.")).record
    assert (paused.phase, paused.next_reconcile_at) == (Phase.BLOCKED, NOW + MINUTE)
    after = decide(replace(paused, slot=0), PoolObservations(Absent(), {}), NOW, settings())
    assert after.actions == (CREATE,)


def test_a_deleted_attempts_name_is_never_used_again() -> None:
    decision = decide(in_demand(**REQUESTED), PoolObservations(Broken(STOCKOUT), {}), NOW, settings())
    assert decision.record.attempt == 2
    assert [each.attempt for each in decision.record.terminating] == [1]


def test_a_failed_attempt_waits_longer_each_time() -> None:
    first = decide(in_demand(**REQUESTED), PoolObservations(Broken(STOCKOUT), {}), NOW, settings()).record
    again = decide(in_demand(**REQUESTED, failures=3), PoolObservations(Broken(STOCKOUT), {}), NOW, settings()).record
    assert (first.retry_at, again.retry_at) == (NOW + MINUTE, NOW + 8 * MINUTE)


def test_settings_are_pinned_at_the_first_create_and_kept() -> None:
    first = decide(in_demand(slot=0), PoolObservations(Absent(), {}), NOW, settings()).record
    assert first.pinned_settings == settings().pools
    edited = settings(pools=replace(settings().pools, boot_disk_gb=500))
    assert decide(first, PoolObservations(Absent(), {}), NOW, edited).record.pinned_settings == first.pinned_settings


def test_the_next_attempt_uses_the_settings_of_its_time() -> None:
    first = decide(in_demand(slot=0), PoolObservations(Absent(), {}), NOW, settings()).record
    failed = decide(first, PoolObservations(Broken(STOCKOUT), {}), NOW, settings()).record
    edited = settings(pools=replace(settings().pools, boot_disk_gb=500))
    second = decide(replace(failed, slot=0), PoolObservations(Absent(), {}), NOW + 5 * MINUTE, edited).record
    assert second.pinned_settings == edited.pools


def test_a_slot_is_freed_when_the_creation_ends() -> None:
    assert decide(in_demand(**REQUESTED), PoolObservations(Creating(), {}), NOW, settings()).record.slot == 0
    assert decide(in_demand(**REQUESTED), PoolObservations(OURS, {}), NOW, settings()).record.slot is None
    assert decide(in_demand(**REQUESTED), PoolObservations(Broken(STOCKOUT), {}), NOW, settings()).record.slot is None


TERMINATING = TerminatingAttempt(attempt=1, delete_requested_at=NOW - timedelta(seconds=5))
OVERDUE = replace(TERMINATING, delete_requested_at=NOW - MINUTE)


@pytest.mark.parametrize(
    ("earlier", "seen", "stays", "repeated"),
    [
        pytest.param(TERMINATING, Absent(), False, False, id="absent: removed from the record"),
        pytest.param(TERMINATING, Unowned("x"), False, False, id="unowned: never touched"),
        pytest.param(TERMINATING, Deleting(), True, False, id="deleting: kept"),
        pytest.param(OVERDUE, Deleting(), True, False, id="deleting for long: kept"),
        pytest.param(TERMINATING, OURS, True, False, id="running, just requested: kept"),
        pytest.param(OVERDUE, OURS, True, True, id="running: deletion repeated"),
        pytest.param(OVERDUE, Creating(), True, True, id="creating: deletion repeated"),
        pytest.param(OVERDUE, Busy("repair"), True, True, id="busy: deletion repeated"),
        pytest.param(OVERDUE, Broken(STOCKOUT), True, True, id="broken: deletion repeated"),
        pytest.param(OVERDUE, Unreadable("503"), True, False, id="unreadable: kept"),
        pytest.param(
            replace(OVERDUE, occupants=(an_occupant("other"),)), OURS, True, False, id="occupied by another: kept"
        ),
    ],
)
@pytest.mark.parametrize("desire", list(Desire))
def test_earlier_attempts_are_deleted_whatever_the_desire(
    earlier: TerminatingAttempt, seen: Observation, stays: bool, repeated: bool, desire: Desire
) -> None:
    record = a_record(
        attempt=2, terminating=(earlier,), desire=desire, phase=Phase.RELEASING, reason=Reason.DELETION_STARTED
    )
    decision = decide(record, PoolObservations(Absent(), {1: seen}), NOW, settings())
    assert [kept.attempt for kept in decision.record.terminating] == ([1] if stays else [])
    assert (DeletePool(1) in decision.actions) is repeated


def test_a_slice_is_not_gone_while_an_earlier_attempt_is_terminating() -> None:
    record = unneeded(attempt=2, terminating=(TERMINATING,))
    assert decide(record, PoolObservations(Absent(), {1: Deleting()}), NOW, settings()).record.phase is Phase.RELEASING
    assert decide(record, PoolObservations(Absent(), {1: Absent()}), NOW, settings()).record.phase is Phase.GONE


def test_a_gone_slice_in_demand_again_gets_the_next_attempts_name() -> None:
    record = unneeded(**SERVING)
    terminating = decide(record, PoolObservations(OURS, {}), NOW, settings()).record
    gone = decide(terminating, PoolObservations(Absent(), {1: Absent()}), NOW + MINUTE, settings()).record
    assert (gone.phase, gone.expire_at) == (Phase.GONE, NOW + MINUTE + settings().limits.gone_ttl)
    back = decide(
        replace(gone, desire=Desire.PRESENT, slot=0), PoolObservations(Absent(), {}), NOW + 2 * MINUTE, settings()
    )
    assert back.actions == (CreatePool(2),)
    assert back.record.expire_at is None
