"""The decision table: one row per cell, named by the reason that it must give."""

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
ASKED = {"create_requested_at": NOW - MINUTE, "creating": True, "slot": 0, "phase": Phase.PROVISIONING}
SERVING = {"create_requested_at": NOW - 60 * MINUTE, "phase": Phase.READY, "reason": Reason.READY, "hosts_usable": 4}
BLOCKED = {"phase": Phase.BLOCKED, "reason": Reason.CONFIGURATION}
OURS = Running(a_spec().fingerprint)


def wanted(**changes: object) -> SliceRecord:
    return a_record(**changes)


def unwanted(**changes: object) -> SliceRecord:
    return a_record(desire=Desire.ABSENT, desire_message="the JobSet completed", **changes)


CREATE, DELETE = CreatePool(1), DeletePool(1)

TABLE: list[tuple[str, SliceRecord, Observation, Phase, Reason, tuple[Action, ...]]] = [
    # Absent, PRESENT
    ("first create", wanted(slot=0), Absent(), Phase.PROVISIONING, Reason.CREATION_STARTED, (CREATE,)),
    ("no slot", wanted(), Absent(), Phase.QUEUED, Reason.OPERATION_LIMIT, ()),
    ("no want", wanted(demand_confirmed_at=None), Absent(), Phase.QUEUED, Reason.DEMAND_STALE, ()),
    (
        "old want",
        wanted(demand_confirmed_at=NOW - 16 * MINUTE, slot=0),
        Absent(),
        Phase.QUEUED,
        Reason.DEMAND_STALE,
        (),
    ),
    ("order lost", wanted(**ASKED), Absent(), Phase.PROVISIONING, Reason.CREATION_STARTED, (CREATE,)),
    (
        "impossible",
        wanted(spec=None, refusal=Refusal(reason=Reason.IMPOSSIBLE_SHAPE, message="no 3x5x7")),
        Absent(),
        Phase.REFUSED,
        Reason.IMPOSSIBLE_SHAPE,
        (),
    ),
    (
        "waiting for its retry",
        wanted(phase=Phase.WAITING, reason=Reason.STOCKOUT, retry_at=NOW + MINUTE, slot=0),
        Absent(),
        Phase.WAITING,
        Reason.STOCKOUT,
        (),
    ),
    (
        "retry has come",
        wanted(phase=Phase.WAITING, reason=Reason.STOCKOUT, retry_at=NOW, slot=0, attempt=2),
        Absent(),
        Phase.PROVISIONING,
        Reason.CREATION_STARTED,
        (CreatePool(2),),
    ),
    (
        "blocked under these settings",
        wanted(**BLOCKED, blocked_settings_version="settings-1", retry_at=NOW + MINUTE, slot=0),
        Absent(),
        Phase.BLOCKED,
        Reason.CONFIGURATION,
        (),
    ),
    (
        "blocked under earlier settings",
        wanted(**BLOCKED, blocked_settings_version="settings-0", retry_at=NOW + MINUTE, slot=0),
        Absent(),
        Phase.PROVISIONING,
        Reason.CREATION_STARTED,
        (CREATE,),
    ),
    (
        "blocked long ago",
        wanted(**BLOCKED, blocked_settings_version="settings-1", retry_at=NOW, slot=0),
        Absent(),
        Phase.PROVISIONING,
        Reason.CREATION_STARTED,
        (CREATE,),
    ),
    ("used up", wanted(attempt=LAST_ATTEMPT + 1, slot=0), Absent(), Phase.BLOCKED, Reason.ATTEMPTS_EXHAUSTED, ()),
    # Absent, ABSENT
    ("never bought", unwanted(), Absent(), Phase.GONE, Reason.NEVER_MADE, ()),
    ("bought long ago", unwanted(create_requested_at=NOW - 60 * MINUTE), Absent(), Phase.GONE, Reason.RELEASED, ()),
    ("just ordered", unwanted(**ASKED), Absent(), Phase.RELEASING, Reason.CREATE_MAY_BE_UNDER_WAY, ()),
    # Creating
    ("creating", wanted(**ASKED), Creating(), Phase.PROVISIONING, Reason.CREATING, ()),
    (
        "creating without an operation, not yet long",
        wanted(**ASKED),
        Creating(operation_runs=False),
        Phase.PROVISIONING,
        Reason.CREATING,
        (),
    ),
    (
        "creating without an operation for long",
        wanted(**{**ASKED, "create_requested_at": NOW - 21 * MINUTE}),
        Creating(operation_runs=False),
        Phase.WAITING,
        Reason.CREATION_FAILED,
        (DELETE,),
    ),
    ("creating, unwanted", unwanted(**ASKED), Creating(), Phase.RELEASING, Reason.DELETION_STARTED, (DELETE,)),
    # Running
    ("no host yet", wanted(**ASKED), OURS, Phase.PROVISIONING, Reason.HOSTS_JOINING, ()),
    ("three of four", wanted(**ASKED, hosts_usable=3), OURS, Phase.PROVISIONING, Reason.HOSTS_JOINING, ()),
    ("all hosts", wanted(**ASKED, hosts_usable=4), OURS, Phase.READY, Reason.READY, ()),
    ("a host was lost", wanted(**{**SERVING, "hosts_usable": 3}), OURS, Phase.PROVISIONING, Reason.HOSTS_LOST, ()),
    ("serving", wanted(**SERVING, occupants=(an_occupant(),)), OURS, Phase.READY, Reason.READY, ()),
    (
        "ready, and the leader still waits",
        wanted(**SERVING, since=NOW - 10 * MINUTE),
        OURS,
        Phase.READY,
        Reason.LEADER_STILL_WAITING,
        (),
    ),
    (
        "ready, and its last leader left a moment ago",
        wanted(**SERVING, since=NOW - 10 * MINUTE, vacant_since=NOW),
        OURS,
        Phase.READY,
        Reason.READY,
        (),
    ),
    ("found without a record", wanted(spec=None, **SERVING), OURS, Phase.READY, Reason.ADOPTED, ()),
    ("finished", unwanted(**SERVING), OURS, Phase.RELEASING, Reason.DELETION_STARTED, (DELETE,)),
    (
        "another's leader is on it",
        unwanted(**SERVING, occupants=(an_occupant("other"),)),
        OURS,
        Phase.RELEASING,
        Reason.OCCUPIED,
        (),
    ),
    (
        "another took it first: the next attempt is bought",
        wanted(**SERVING, occupants=(an_occupant("other"),), slot=0),
        OURS,
        Phase.PROVISIONING,
        Reason.CREATION_STARTED,
        (CreatePool(2),),
    ),
    (
        "another request, changed while suspended",
        wanted(**SERVING, rebuild_allowed=True, slot=0),
        Running("v1-other"),
        Phase.PROVISIONING,
        Reason.CREATION_STARTED,
        (DELETE, CreatePool(2)),
    ),
    (
        "another request, changed while suspended, occupied",
        wanted(**SERVING, rebuild_allowed=True, occupants=(an_occupant(),)),
        Running("v1-other"),
        Phase.READY,
        Reason.SPEC_DRIFTED,
        (),
    ),
    ("another request", wanted(**SERVING), Running("v1-other"), Phase.READY, Reason.SPEC_DRIFTED, ()),
    ("a fingerprint of another version", wanted(**SERVING), Running("v0-other"), Phase.READY, Reason.READY, ()),
    ("no fingerprint", wanted(**SERVING), Running(None), Phase.READY, Reason.READY, ()),
    # Busy
    ("repair", wanted(**SERVING), Busy("repair"), Phase.PROVISIONING, Reason.POOL_BUSY, ()),
    ("repair, unwanted", unwanted(**SERVING), Busy("repair"), Phase.RELEASING, Reason.DELETION_STARTED, (DELETE,)),
    # Broken
    ("stockout", wanted(**ASKED), Broken(STOCKOUT), Phase.WAITING, Reason.STOCKOUT, (DELETE,)),
    (
        "permissions",
        wanted(**ASKED),
        Broken(Failure(FailureKind.CONFIGURATION, "no such service account")),
        Phase.BLOCKED,
        Reason.CONFIGURATION,
        (DELETE,),
    ),
    (
        "a shape that GKE never makes",
        wanted(**ASKED),
        Broken(Failure(FailureKind.IMPOSSIBLE, "Unsupported TPU configuration")),
        Phase.REFUSED,
        Reason.IMPOSSIBLE_SHAPE,
        (DELETE,),
    ),
    (
        "broken under its Job",
        wanted(**SERVING, occupants=(an_occupant(),)),
        Broken(STOCKOUT),
        Phase.PROVISIONING,
        Reason.POOL_BROKEN,
        (),
    ),
    (
        "broken under another's Job",
        unwanted(**SERVING, occupants=(an_occupant("other"),)),
        Broken(STOCKOUT),
        Phase.RELEASING,
        Reason.OCCUPIED,
        (),
    ),
    ("broken, unwanted", unwanted(**ASKED), Broken(STOCKOUT), Phase.RELEASING, Reason.DELETION_STARTED, (DELETE,)),
    # Deleting
    (
        "somebody deletes it: a new attempt need not wait",
        wanted(**SERVING, slot=0),
        Deleting(),
        Phase.PROVISIONING,
        Reason.CREATION_STARTED,
        (CreatePool(2),),
    ),
    ("somebody deletes it, unwanted", unwanted(**SERVING), Deleting(), Phase.RELEASING, Reason.DELETION_STARTED, ()),
    # Foreign
    ("not ours", wanted(**ASKED), Unowned("no owner label."), Phase.BLOCKED, Reason.UNOWNED_POOL, ()),
    ("not ours, unwanted", unwanted(**ASKED), Unowned("no owner label."), Phase.GONE, Reason.NEVER_MADE, ()),
    # Unreadable
    (
        "cannot see",
        wanted(**SERVING, next_reconcile_at=NOW),
        Unreadable("503"),
        Phase.READY,
        Reason.POOL_UNREADABLE,
        (),
    ),
    ("cannot see, unwanted", unwanted(**SERVING), Unreadable("503"), Phase.READY, Reason.POOL_UNREADABLE, ()),
]


@pytest.mark.parametrize(
    ("record", "seen", "phase", "reason", "actions"),
    [pytest.param(*row, id=f"{row[3]}: {name}".replace(" ", "-")) for name, *row in TABLE],
)
def test_each_cell_gives_its_phase_reason_and_actions(
    record: SliceRecord, seen: Observation, phase: Phase, reason: Reason, actions: tuple[Action, ...]
) -> None:
    decision = decide(record, PoolObservations(seen, {}), NOW, settings())
    assert (decision.record.phase, decision.reason, decision.actions) == (phase, reason, actions)


@pytest.mark.parametrize(("name", "record", "seen"), [row[:3] for row in TABLE], ids=[row[0] for row in TABLE])
def test_nothing_is_done_about_a_slice_on_hold(name: str, record: SliceRecord, seen: Observation) -> None:
    decision = decide(replace(record, hold=True), PoolObservations(seen, {}), NOW, settings())
    assert (decision.actions, decision.reason) == ((), Reason.HELD), name
    told = decision.record.transitions != record.transitions
    assert told is (decision.record.phase is not record.phase)
    assert told is (record.phase is Phase.QUEUED and record.wanted and isinstance(seen, Absent)), name


@pytest.mark.parametrize(("record", "seen"), [row[1:3] for row in TABLE], ids=[row[0] for row in TABLE])
def test_nothing_is_done_in_a_cluster_that_is_paused(record: SliceRecord, seen: Observation) -> None:
    decision = decide(record, PoolObservations(seen, {}), NOW, settings(paused="upgrade of the cluster, until noon."))
    assert (decision.actions, decision.reason) == ((), Reason.PAUSED)
    assert decision.message.endswith("upgrade of the cluster, until noon.")


def test_who_waits_in_a_paused_cluster_goes_on_when_the_pause_is_over() -> None:
    paused = decide(wanted(), PoolObservations(Absent(), {}), NOW, settings(paused="upgrade.")).record
    assert (paused.phase, paused.next_reconcile_at) == (Phase.BLOCKED, NOW + MINUTE)
    after = decide(replace(paused, slot=0), PoolObservations(Absent(), {}), NOW, settings())
    assert after.actions == (CREATE,)


def test_a_deleted_attempts_name_is_never_used_again() -> None:
    decision = decide(wanted(**ASKED), PoolObservations(Broken(STOCKOUT), {}), NOW, settings())
    assert decision.record.attempt == 2
    assert [left.attempt for left in decision.record.terminating] == [1]


def test_a_failed_attempt_waits_longer_each_time() -> None:
    first = decide(wanted(**ASKED), PoolObservations(Broken(STOCKOUT), {}), NOW, settings()).record
    again = decide(wanted(**ASKED, failures=3), PoolObservations(Broken(STOCKOUT), {}), NOW, settings()).record
    assert (first.retry_at, again.retry_at) == (NOW + MINUTE, NOW + 8 * MINUTE)


def test_settings_are_pinned_at_the_first_create_and_kept() -> None:
    first = decide(wanted(slot=0), PoolObservations(Absent(), {}), NOW, settings()).record
    assert first.pinned_settings == settings().pools
    edited = settings(pools=replace(settings().pools, boot_disk_gb=500))
    assert decide(first, PoolObservations(Absent(), {}), NOW, edited).record.pinned_settings == first.pinned_settings


def test_the_next_attempt_is_made_with_the_settings_of_its_time() -> None:
    first = decide(wanted(slot=0), PoolObservations(Absent(), {}), NOW, settings()).record
    failed = decide(first, PoolObservations(Broken(STOCKOUT), {}), NOW, settings()).record
    edited = settings(pools=replace(settings().pools, boot_disk_gb=500))
    second = decide(replace(failed, slot=0), PoolObservations(Absent(), {}), NOW + 5 * MINUTE, edited).record
    assert second.pinned_settings == edited.pools


def test_a_slot_is_given_back_with_the_end_of_the_creation() -> None:
    assert decide(wanted(**ASKED), PoolObservations(Creating(), {}), NOW, settings()).record.slot == 0
    assert decide(wanted(**ASKED), PoolObservations(OURS, {}), NOW, settings()).record.slot is None
    assert decide(wanted(**ASKED), PoolObservations(Broken(STOCKOUT), {}), NOW, settings()).record.slot is None


LEFT = TerminatingAttempt(attempt=1, delete_requested_at=NOW - timedelta(seconds=5))
OVERDUE = replace(LEFT, delete_requested_at=NOW - MINUTE)


@pytest.mark.parametrize(
    ("left", "seen", "stays", "ordered"),
    [
        pytest.param(LEFT, Absent(), False, False, id="absent: forgotten"),
        pytest.param(LEFT, Unowned("x"), False, False, id="foreign: never touched"),
        pytest.param(LEFT, Deleting(), True, False, id="deleting: waited for"),
        pytest.param(OVERDUE, Deleting(), True, False, id="deleting for long: waited for"),
        pytest.param(LEFT, OURS, True, False, id="running, just ordered: waited for"),
        pytest.param(OVERDUE, OURS, True, True, id="running: ordered again"),
        pytest.param(OVERDUE, Creating(), True, True, id="creating: ordered again"),
        pytest.param(OVERDUE, Busy("repair"), True, True, id="busy: ordered again"),
        pytest.param(OVERDUE, Broken(STOCKOUT), True, True, id="broken: ordered again"),
        pytest.param(OVERDUE, Unreadable("503"), True, False, id="unreadable: nothing"),
        pytest.param(
            replace(OVERDUE, occupants=(an_occupant("other"),)), OURS, True, False, id="occupied by another: kept"
        ),
    ],
)
@pytest.mark.parametrize("desire", list(Desire))
def test_earlier_attempts_are_gone_after_whatever_is_wanted(
    left: TerminatingAttempt, seen: Observation, stays: bool, ordered: bool, desire: Desire
) -> None:
    record = a_record(
        attempt=2, terminating=(left,), desire=desire, phase=Phase.RELEASING, reason=Reason.DELETION_STARTED
    )
    decision = decide(record, PoolObservations(Absent(), {1: seen}), NOW, settings())
    assert [kept.attempt for kept in decision.record.terminating] == ([1] if stays else [])
    assert (DeletePool(1) in decision.actions) is ordered


def test_a_slice_is_not_gone_while_an_earlier_attempt_is_leaving() -> None:
    record = unwanted(attempt=2, terminating=(LEFT,))
    assert decide(record, PoolObservations(Absent(), {1: Deleting()}), NOW, settings()).record.phase is Phase.RELEASING
    assert decide(record, PoolObservations(Absent(), {1: Absent()}), NOW, settings()).record.phase is Phase.GONE


def test_a_slice_that_is_gone_and_wanted_again_goes_on_with_the_next_name() -> None:
    record = unwanted(**SERVING)
    terminating = decide(record, PoolObservations(OURS, {}), NOW, settings()).record
    gone = decide(terminating, PoolObservations(Absent(), {1: Absent()}), NOW + MINUTE, settings()).record
    assert (gone.phase, gone.expire_at) == (Phase.GONE, NOW + MINUTE + settings().limits.gone_ttl)
    back = decide(
        replace(gone, desire=Desire.PRESENT, slot=0), PoolObservations(Absent(), {}), NOW + 2 * MINUTE, settings()
    )
    assert back.actions == (CreatePool(2),)
    assert back.record.expire_at is None
