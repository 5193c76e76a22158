"""Attempts whose pools are to be deleted: each reconcile brings them a step nearer to their end."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import MINUTE, NOW, a_record, asked_to_close, heard, settings, some_hosts
from tests.domain.cases import GUEST, GUEST_LEFT, LOST, OURS, STOCKOUT, in_use, owned, seen, terminating, with_hosts
from tests.domain.deleting import ENDED, GRANTED, UNASKED, followed
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.observations import (
    Absent,
    Broken,
    Busy,
    Creating,
    Deleting,
    Observation,
    PoolObservations,
    Running,
    Unowned,
    Unreadable,
)
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.reconciling.case import Known, Situation
from tpu_slices.domain.reconciling.decisions import Action, CancelCreation, CloseHosts, DeletePool, OpenHosts
from tpu_slices.domain.reconciling.terminating import Followed, follow
from tpu_slices.domain.records.attempts import Attempt
from tpu_slices.domain.records.heartbeats import NEVER_HEARD
from tpu_slices.domain.records.slices import PoolOperation, SlotAwaited

SECOND = timedelta(seconds=1)
FREE = terminating()
"""Nobody uses it, and no new pod can come."""
ASKED = terminating(hosts=some_hosts(asked=asked_to_close(NOW - 30 * SECOND)))
DELETING = replace(FREE, slot=3, delete_requested_at=NOW - 5 * SECOND)
JUST_REQUESTED = replace(FREE, create_requested_at=NOW - 119 * SECOND)


@pytest.mark.parametrize(
    ("attempt", "found", "reason", "actions"),
    [
        pytest.param(FREE, Absent(), None, (), id="absent: removed from the record"),
        pytest.param(in_use(GUEST), Absent(), None, (), id="absent, whoever was on it: removed"),
        pytest.param(JUST_REQUESTED, Absent(), Reason.CREATION_IN_DOUBT, (), id="absent, but just requested"),
        pytest.param(FREE, Unowned("x"), None, (), id="not ours: never touched"),
        pytest.param(FREE, Unreadable("503"), Reason.POOL_UNREADABLE, (), id="unreadable"),
        pytest.param(FREE, Deleting(), Reason.DELETION_STARTED, (), id="being deleted"),
        pytest.param(in_use(GUEST), Deleting(), Reason.DELETION_STARTED, (), id="being deleted by somebody"),
        pytest.param(FREE, OURS, Reason.DELETION_STARTED, (DeletePool(1),), id="running"),
        pytest.param(FREE, Busy("repair"), Reason.DELETION_STARTED, (DeletePool(1),), id="busy"),
        pytest.param(FREE, Broken(STOCKOUT), Reason.DELETION_STARTED, (DeletePool(1),), id="broken"),
        pytest.param(FREE, LOST, Reason.DELETION_STARTED, (DeletePool(1),), id="in creation without an operation"),
        pytest.param(FREE, Creating(), Reason.CREATION_IN_DOUBT, (CancelCreation(1),), id="in creation: cancelled"),
        pytest.param(
            replace(FREE, not_cancellable=True),
            Creating(),
            Reason.CREATION_IN_DOUBT,
            (),
            id="in creation: not cancellable",
        ),
        pytest.param(DELETING, Creating(), Reason.CREATION_IN_DOUBT, (), id="in creation: cancelled a moment ago"),
        pytest.param(DELETING, OURS, Reason.DELETION_STARTED, (), id="deleted a moment ago"),
        pytest.param(
            replace(DELETING, delete_requested_at=NOW - 20 * SECOND),
            OURS,
            Reason.DELETION_STARTED,
            (DeletePool(1),),
            id="deleted a while ago: repeated",
        ),
        pytest.param(
            replace(DELETING, refused="missing permission"),
            OURS,
            Reason.DELETION_REFUSED,
            (),
            id="refused a moment ago",
        ),
        pytest.param(
            replace(DELETING, refused="missing permission", delete_requested_at=NOW - MINUTE),
            OURS,
            Reason.DELETION_REFUSED,
            (DeletePool(1),),
            id="refused a while ago: repeated",
        ),
        pytest.param(UNASKED, OURS, Reason.CLOSING_HOSTS, (CloseHosts(1, 1),), id="to be closed"),
        pytest.param(UNASKED, Creating(), Reason.CLOSING_HOSTS, (CloseHosts(1, 1),), id="to be closed, in creation"),
        pytest.param(ASKED, OURS, Reason.CLOSING_HOSTS, (), id="being closed"),
        pytest.param(
            with_hosts(ASKED, asked=asked_to_close(NOW - MINUTE)),
            OURS,
            Reason.CLOSING_HOSTS,
            (CloseHosts(1, 1),),
            id="being closed for a minute: the same question again",
        ),
        pytest.param(
            with_hosts(ASKED, answered=1, vacant_since=NOW - MINUTE),
            OURS,
            Reason.CLOSING_HOSTS,
            (),
            id="answered before all hosts could be closed",
        ),
        pytest.param(
            with_hosts(ASKED, answered=1, vacant_since=NOW - SECOND),
            OURS,
            Reason.CLOSING_HOSTS,
            (CloseHosts(1, 2),),
            id="answered that a Job was there, which has left since: asked anew",
        ),
        pytest.param(in_use(GUEST), OURS, Reason.OCCUPIED, (), id="in use"),
        pytest.param(
            with_hosts(ASKED, occupants=(GUEST,)),
            OURS,
            Reason.OCCUPIED,
            (OpenHosts(1, 2),),
            id="in use after all",
        ),
        pytest.param(
            with_hosts(ASKED, departures=GUEST_LEFT),
            OURS,
            Reason.RESTART_POSSIBLE,
            (OpenHosts(1, 2),),
            id="a Job may restart on it: it is opened for it",
        ),
        pytest.param(replace(ASKED, spared_until=NOW + MINUTE), OURS, Reason.USERS_UNKNOWN, (), id="spared"),
    ],
)
def test_each_row_has_its_reason_and_actions(
    attempt: Attempt, found: Observation, reason: Reason | None, actions: tuple[Action, ...]
) -> None:
    after = followed(attempt, found)
    assert [each.reason for each in after.assessments] == ([] if reason is None else [reason])
    assert [each.number for each in after.attempts] == ([] if reason is None else [1])
    assert after.actions == actions


def test_an_attempt_that_was_not_observed_is_kept_and_left_alone() -> None:
    case = Situation(a_record(attempt=2, terminating=(FREE,)), PoolObservations(Absent(), {}), NOW, settings(), GRANTED)
    after = follow(case)
    assert (after.attempts, after.actions) == ((FREE,), ())


@pytest.mark.parametrize("known", [heard(slots={1: 7}), owned(WorkloadState.SUSPENDED)], ids=["unknown", "suspended"])
def test_a_creation_is_only_cancelled_once_its_jobset_has_no_use_for_it(known: Known) -> None:
    assert followed(FREE, Creating(), known).actions == ()
    assert followed(FREE, Creating(), known, release_requested=True).actions == (CancelCreation(1),)


def test_a_deletion_waits_for_a_slot_and_keeps_its_place() -> None:
    first = followed(FREE, OURS, ENDED)
    assert (first.attempts, first.actions, first.assessments[0].reason) == ((FREE,), (), Reason.DELETION_QUEUED)
    assert first.slot_awaited == SlotAwaited(operation=PoolOperation.DELETE, attempt=1, since=NOW)
    fresh = with_hosts(FREE, asked=asked_to_close(NOW))
    later = followed(fresh, OURS, ENDED, NOW + MINUTE, slot_awaited=first.slot_awaited)
    assert later.slot_awaited == first.slot_awaited


def test_only_the_attempt_that_is_in_line_waits_for_a_slot_before_its_hosts_are_closed() -> None:
    """Another that comes first takes its place, and its hosts may be closed as well."""
    waits = SlotAwaited(operation=PoolOperation.DELETE, attempt=2, since=NOW - MINUTE)
    record = a_record(attempt=3, slot_awaited=waits, terminating=(FREE, replace(UNASKED, number=2)))
    after = follow(Situation(record, seen(Absent(), a1=OURS, a2=OURS), NOW, settings(), ENDED))
    assert after.actions == (CloseHosts(2, 1),)
    assert after.slot_awaited == SlotAwaited(operation=PoolOperation.DELETE, attempt=1, since=NOW)


def test_hosts_that_may_be_open_again_are_closed_once_the_deletion_has_a_slot_which_it_keeps_meanwhile() -> None:
    waits = SlotAwaited(operation=PoolOperation.DELETE, attempt=1, since=NOW - MINUTE)
    unsure = with_hosts(FREE, joined=0, closed=0, asked=asked_to_close(NOW))
    at = NOW + 3 * MINUTE

    queued = followed(unsure, OURS, ENDED, at, slot_awaited=waits)
    assert (queued.attempts, queued.actions, queued.slot_awaited) == ((unsure,), (), waits)
    assert queued.assessments[0].reason is Reason.DELETION_QUEUED

    in_hand = replace(waits, number=9)
    for known, awaited in ((ENDED, in_hand), (replace(ENDED, slots={1: 9}), waits)):
        asked = followed(unsure, OURS, known, at, slot_awaited=awaited)
        assert (asked.actions, asked.slot_awaited) == ((CloseHosts(1, 2),), in_hand)
        waiting = followed(asked.attempts[0], OURS, ENDED, at + SECOND, slot_awaited=in_hand)
        assert (waiting.actions, waiting.slot_awaited) == ((), in_hand)
        answered = with_hosts(asked.attempts[0], answered=2)
        deleted = followed(answered, OURS, ENDED, at + SECOND, slot_awaited=in_hand)
        assert (deleted.actions, deleted.slot_awaited, deleted.attempts[0].slot) == ((DeletePool(1),), None, 9)


def test_one_slot_is_awaited_at_a_time() -> None:
    record = a_record(attempt=3, terminating=(FREE, replace(FREE, number=2)))
    after = follow(Situation(record, seen(Absent(), a1=OURS, a2=OURS), NOW, settings(), ENDED))
    assert after.slot_awaited is not None
    assert after.slot_awaited.attempt == 1
    assert [each.reason for each in after.assessments] == [Reason.DELETION_QUEUED] * 2


def test_a_requested_deletion_has_its_slot_and_its_time() -> None:
    assert followed(FREE, OURS).attempts == (replace(FREE, slot=7, delete_requested_at=NOW),)
    repeated = replace(DELETING, delete_requested_at=NOW - MINUTE / 2)
    assert followed(repeated, OURS, ENDED).attempts == (replace(repeated, delete_requested_at=NOW),)


@pytest.mark.parametrize(
    ("attempt", "found", "held"),
    [
        pytest.param(replace(FREE, slot=3), Creating(), True, id="its creation runs"),
        pytest.param(replace(JUST_REQUESTED, slot=3), Absent(), True, id="its creation may still take effect"),
        pytest.param(replace(FREE, slot=3, not_cancellable=True), LOST, False, id="its creation ended unseen"),
        pytest.param(replace(ASKED, slot=3), OURS, False, id="its creation ended"),
        pytest.param(DELETING, Deleting(), True, id="its deletion runs"),
        pytest.param(DELETING, OURS, True, id="its deletion was requested a moment ago"),
        pytest.param(replace(DELETING, delete_requested_at=NOW - 61 * SECOND), Unreadable("503"), True, id="not known"),
        pytest.param(
            replace(ASKED, slot=3, delete_requested_at=NOW - 61 * SECOND),
            OURS,
            False,
            id="its deletion came to nothing",
        ),
    ],
)
def test_an_attempt_holds_its_slot_as_long_as_an_operation_may_run(
    attempt: Attempt, found: Observation, held: bool
) -> None:
    (after,) = followed(attempt, found, ENDED).attempts
    assert (after.slot == 3) is held


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        pytest.param(Creating(), True, id="it runs"),
        pytest.param(Unreadable("503"), True, id="not known"),
        pytest.param(LOST, False, id="it runs no more"),
        pytest.param(OURS, False, id="created"),
        pytest.param(Broken(STOCKOUT), False, id="failed"),
        pytest.param(Deleting(), False, id="being deleted"),
    ],
)
def test_the_operation_that_creates_a_pool_is_kept_until_it_is_seen_to_have_ended(
    found: Observation, kept: bool
) -> None:
    (after,) = followed(replace(FREE, operation="operation-1"), found).attempts
    assert after.operation == ("operation-1" if kept else None)


def test_a_deletion_that_gke_accepted_is_no_longer_refused() -> None:
    (after,) = followed(replace(DELETING, refused="missing permission"), Deleting()).attempts
    assert after.refused == ""


def test_a_deletion_is_repeated_at_intervals_until_the_pool_is_absent() -> None:
    attempt, requests = FREE, []
    for second in range(61):
        after = followed(attempt, Running(), at=NOW + second * SECOND)
        (attempt,) = after.attempts
        requests += [second] if after.actions else []
    assert requests == [0, 20, 40, 60]
    assert followed(attempt, Absent(), at=NOW + 2 * MINUTE) == Followed()


@pytest.mark.parametrize(
    ("attempt", "found", "known"),
    [
        pytest.param(FREE, OURS, ENDED, id="its deletion waits for a slot"),
        pytest.param(FREE, Deleting(), ENDED, id="it is being deleted"),
        pytest.param(FREE, Unreadable("503"), ENDED, id="it cannot be read"),
        pytest.param(UNASKED, OURS, ENDED, id="its hosts are being closed"),
    ],
)
def test_a_pool_that_nobody_is_known_to_use_lingers_since_that_was_seen_first(
    attempt: Attempt, found: Observation, known: Known
) -> None:
    new, old = (replace(attempt, lingers_since=since) for since in (None, NOW - MINUTE))
    assert [each.lingers_since for each in followed(new, found, known).attempts] == [NOW]
    assert [each.lingers_since for each in followed(old, found, known).attempts] == [NOW - MINUTE]


@pytest.mark.parametrize(
    ("attempt", "known"),
    [
        pytest.param(in_use(GUEST, lingers_since=NOW - MINUTE), owned(WorkloadState.ACTIVE), id="somebody uses it"),
        pytest.param(FREE, replace(ENDED, relay=NEVER_HEARD), id="the relay is silent"),
        pytest.param(UNASKED, replace(ENDED, stopped="Too many are missing."), id="releases are stopped"),
    ],
)
def test_a_pool_that_something_explains_does_not_linger(attempt: Attempt, known: Known) -> None:
    (after,) = followed(attempt, OURS, known).attempts
    assert after.lingers_since is None
