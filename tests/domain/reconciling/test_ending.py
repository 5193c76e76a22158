"""Slices that go: each reconcile brings them a step nearer to their end."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import MINUTE, NOW, a_record, asked_to_close, heard, settings, some_hosts, with_fields
from tests.domain.cases import GUEST, GUEST_LEFT, LOST, OURS, STOCKOUT, going, in_use, owned, with_hosts
from tests.domain.deleting import ENDED, GRANTED, UNASKED, followed
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.observations import (
    Absent,
    Begun,
    Broken,
    Busy,
    Creating,
    Deleting,
    Observation,
    Observed,
    Running,
    Unowned,
    Unreadable,
)
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.reconciling.case import Known, Situation
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.decisions import Action, CancelCreation, CloseHosts, Decision, DeletePool, OpenHosts
from tpu_slices.domain.reconciling.ending import is_gone
from tpu_slices.domain.records.awaited import PoolOperation, SlotAwaited
from tpu_slices.domain.records.heartbeats import NEVER_HEARD
from tpu_slices.domain.records.hosts import NO_HOSTS
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.reporting.counts import RELEASED_NOW

SECOND = timedelta(seconds=1)
FREE = going()
"""Nobody uses it, and no new pod can come."""
ASKED = going(hosts=some_hosts(asked=asked_to_close(NOW - 30 * SECOND)))
DELETING = with_fields(FREE, slot=3, delete_requested_at=NOW - 5 * SECOND)
JUST_REQUESTED = with_fields(FREE, create_requested_at=NOW - 119 * SECOND)
WAITS = SlotAwaited(operation=PoolOperation.DELETE, attempt=1, since=NOW - MINUTE)


def of_claim(record: SliceRecord) -> SliceRecord:
    """Return a claim that is not needed any more, and that has this slice until it is gone."""
    return with_fields(record, claimed_by=record.maker)


def decided(record: SliceRecord, found: Observation, known: Known = ENDED) -> Decision:
    return decide(record, Observed(found), NOW, settings(), known)


@pytest.mark.parametrize(
    ("record", "found", "expected"),
    [
        pytest.param(a_record(), Absent(), True, id="never requested"),
        pytest.param(FREE, Absent(), True, id="absent"),
        pytest.param(in_use(GUEST), Absent(), True, id="absent, whoever was on it"),
        pytest.param(JUST_REQUESTED, Absent(), False, id="absent, but just requested"),
        pytest.param(
            with_fields(JUST_REQUESTED, delete_requested_at=NOW - MINUTE),
            Absent(),
            True,
            id="absent, just requested, and deleted since",
        ),
        pytest.param(FREE, Unowned("x"), True, id="not ours: never touched"),
        pytest.param(FREE, Begun("its workload policy"), False, id="part of it stands"),
        pytest.param(FREE, Unreadable("503"), False, id="unreadable"),
        pytest.param(FREE, Deleting(), False, id="being deleted"),
        pytest.param(FREE, OURS, False, id="running"),
    ],
)
def test_a_slice_is_gone_once_no_pool_of_it_stands_or_may_come(
    record: SliceRecord, found: Observation, *, expected: bool
) -> None:
    assert is_gone(Situation(record, Observed(found), NOW, settings(), GRANTED)) is expected


@pytest.mark.parametrize(
    ("record", "found", "reason", "actions"),
    [
        pytest.param(JUST_REQUESTED, Absent(), Reason.CREATION_IN_DOUBT, (), id="absent, but just requested"),
        pytest.param(FREE, Deleting(), Reason.DELETION_STARTED, (), id="being deleted"),
        pytest.param(in_use(GUEST), Deleting(), Reason.DELETION_STARTED, (), id="being deleted by somebody"),
        pytest.param(FREE, OURS, Reason.DELETION_STARTED, (DeletePool(1),), id="running"),
        pytest.param(FREE, Busy("repair"), Reason.DELETION_STARTED, (DeletePool(1),), id="busy"),
        pytest.param(FREE, Broken(STOCKOUT), Reason.DELETION_STARTED, (DeletePool(1),), id="broken"),
        pytest.param(FREE, LOST, Reason.DELETION_STARTED, (DeletePool(1),), id="in creation without an operation"),
        pytest.param(FREE, Creating(), Reason.CREATION_IN_DOUBT, (CancelCreation(1),), id="in creation: cancelled"),
        pytest.param(
            with_fields(FREE, not_cancellable=True),
            Creating(),
            Reason.CREATION_IN_DOUBT,
            (),
            id="in creation: not cancellable",
        ),
        pytest.param(DELETING, Creating(), Reason.CREATION_IN_DOUBT, (), id="in creation: cancelled a moment ago"),
        pytest.param(DELETING, OURS, Reason.DELETION_STARTED, (), id="deleted a moment ago"),
        pytest.param(
            with_fields(DELETING, delete_requested_at=NOW - 20 * SECOND),
            OURS,
            Reason.DELETION_STARTED,
            (DeletePool(1),),
            id="deleted a while ago: repeated",
        ),
        pytest.param(
            with_fields(DELETING, refused="missing permission"),
            OURS,
            Reason.DELETION_REFUSED,
            (),
            id="refused a moment ago",
        ),
        pytest.param(
            with_fields(DELETING, refused="missing permission", delete_requested_at=NOW - MINUTE),
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
            (OpenHosts(1, 2, ASKED.key),),
            id="in use after all",
        ),
        pytest.param(
            with_hosts(ASKED, departures=GUEST_LEFT),
            OURS,
            Reason.RESTART_POSSIBLE,
            (OpenHosts(1, 2, ASKED.key),),
            id="a Job may restart on it: it is opened for it",
        ),
        pytest.param(with_fields(ASKED, spared_until=NOW + MINUTE), OURS, Reason.USERS_UNKNOWN, (), id="spared"),
    ],
)
def test_each_row_has_its_reason_and_actions(
    record: SliceRecord, found: Observation, reason: Reason, actions: tuple[Action, ...]
) -> None:
    after = followed(record, found)
    assert (after.why.reason, after.attempt.number, after.actions) == (reason, 1, actions)
    of_a_claim = followed(of_claim(record), found)
    assert (of_a_claim.why, len(of_a_claim.actions)) == (after.why, len(actions))


@pytest.mark.parametrize("record", [FREE, of_claim(FREE)], ids=["no claim has it", "a claim has it"])
def test_a_slice_that_cannot_be_read_is_kept_and_left_alone(record: SliceRecord) -> None:
    after = decided(record, Unreadable("503"), GRANTED)
    assert (after.reason, after.actions, after.let_go) == (Reason.POOL_UNREADABLE, (), None)
    assert after.record.current == replace(record.current, unreadable_since=NOW)


@pytest.mark.parametrize("known", [heard(slots={1: 7}), owned(WorkloadState.SUSPENDED)], ids=["unknown", "suspended"])
def test_a_creation_is_only_cancelled_once_its_jobset_has_no_use_for_it(known: Known) -> None:
    assert followed(FREE, Creating(), known).actions == ()
    assert followed(FREE, Creating(), known, release_requested=True).actions == (CancelCreation(1),)


def test_a_deletion_waits_for_a_slot_and_keeps_its_place() -> None:
    first = followed(FREE, OURS, ENDED)
    assert (first.attempt, first.actions, first.why.reason) == (FREE.current, (), Reason.DELETION_QUEUED)
    assert first.slot_awaited == SlotAwaited(operation=PoolOperation.DELETE, attempt=1, since=NOW)
    fresh = with_hosts(FREE, asked=asked_to_close(NOW))
    later = followed(fresh, OURS, ENDED, NOW + MINUTE, slot_awaited=first.slot_awaited)
    assert later.slot_awaited == first.slot_awaited


def test_only_a_slice_whose_deletion_is_in_line_waits_for_a_slot_before_its_hosts_are_closed() -> None:
    in_line = followed(UNASKED, OURS, ENDED, slot_awaited=WAITS)
    assert (in_line.actions, in_line.slot_awaited) == ((), WAITS)
    for waits in (None, replace(WAITS, operation=PoolOperation.CREATE)):
        after = followed(UNASKED, OURS, ENDED, slot_awaited=waits)
        assert (after.actions, after.slot_awaited) == ((CloseHosts(1, 1),), None)


def test_hosts_that_may_be_open_again_are_closed_once_the_deletion_has_a_slot_which_it_keeps_meanwhile() -> None:
    unsure = with_hosts(FREE, joined=0, closed=0, asked=asked_to_close(NOW))
    at = NOW + 3 * MINUTE

    queued = followed(unsure, OURS, ENDED, at, slot_awaited=WAITS)
    assert (queued.attempt, queued.actions, queued.slot_awaited) == (unsure.current, (), WAITS)
    assert queued.why.reason is Reason.DELETION_QUEUED

    in_hand = replace(WAITS, number=9)
    for known, awaited in ((ENDED, in_hand), (replace(ENDED, slots={1: 9}), WAITS)):
        asked = followed(unsure, OURS, known, at, slot_awaited=awaited)
        assert (asked.actions, asked.slot_awaited) == ((CloseHosts(1, 2),), in_hand)
        closing = replace(unsure, current=asked.attempt)
        waiting = followed(closing, OURS, ENDED, at + SECOND, slot_awaited=in_hand)
        assert (waiting.actions, waiting.slot_awaited) == ((), in_hand)
        answered = with_hosts(closing, answered=2)
        deleted = followed(answered, OURS, ENDED, at + SECOND, slot_awaited=in_hand)
        assert (deleted.actions, deleted.slot_awaited, deleted.attempt.slot) == ((DeletePool(1),), None, 9)


UNTIL = JUST_REQUESTED.current.create_requested_at + settings().limits.orders_arrive_within  # type: ignore[operator]


@pytest.mark.parametrize(
    ("record", "found", "message"),
    [
        pytest.param(JUST_REQUESTED, Absent(), "it is not there, and a late request may create it", id="not there yet"),
        pytest.param(JUST_REQUESTED, Begun("its template"), "it is not there, and a late request", id="begun"),
        pytest.param(
            with_fields(JUST_REQUESTED, delete_requested_at=NOW, hosts=NO_HOSTS),
            Absent(),
            "it is gone, and a late request may create it",
            id="gone",
        ),
    ],
)
def test_what_a_late_request_may_still_create_is_waited_for_until_none_can_come(
    record: SliceRecord, found: Observation, message: str
) -> None:
    waits = followed(record, found)
    assert waits.why.message.startswith(message)
    assert (waits.why.reason, waits.why.until, waits.actions) == (Reason.CREATION_IN_DOUBT, UNTIL, ())
    assert f"{UNTIL:%H:%M:%S} UTC" in waits.why.message


def test_what_the_vendor_deletes_is_named_if_it_is_a_part() -> None:
    assert followed(DELETING, Deleting()).why.message == "GKE is deleting it"
    assert followed(DELETING, Deleting("its policy")).why.message == "GKE is deleting its policy"


def test_a_deletion_that_was_requested_a_moment_ago_is_looked_at_when_it_would_be_repeated() -> None:
    assert followed(DELETING, OURS).why.until == NOW + settings().limits.delete_retry_after


def test_a_requested_deletion_has_its_slot_and_its_time() -> None:
    assert followed(FREE, OURS).attempt == replace(FREE.current, slot=7, delete_requested_at=NOW)
    repeated = with_fields(DELETING, delete_requested_at=NOW - MINUTE / 2)
    assert followed(repeated, OURS, ENDED).attempt == replace(repeated.current, delete_requested_at=NOW)


@pytest.mark.parametrize(
    ("record", "found", "held"),
    [
        pytest.param(with_fields(FREE, slot=3), Creating(), True, id="its creation runs"),
        pytest.param(with_fields(JUST_REQUESTED, slot=3), Absent(), True, id="its creation may still take effect"),
        pytest.param(with_fields(FREE, slot=3, not_cancellable=True), LOST, False, id="its creation ended unseen"),
        pytest.param(with_fields(ASKED, slot=3), OURS, False, id="its creation ended"),
        pytest.param(DELETING, Deleting(), True, id="its deletion runs"),
        pytest.param(DELETING, OURS, True, id="its deletion was requested a moment ago"),
        pytest.param(
            with_fields(DELETING, delete_requested_at=NOW - 61 * SECOND), Unreadable("503"), True, id="not known"
        ),
        pytest.param(
            with_fields(ASKED, slot=3, delete_requested_at=NOW - 61 * SECOND),
            OURS,
            False,
            id="its deletion came to nothing",
        ),
        pytest.param(DELETING, Absent(), False, id="it is gone"),
    ],
)
def test_a_slice_that_goes_holds_its_slot_as_long_as_an_operation_may_run(
    record: SliceRecord, found: Observation, *, held: bool
) -> None:
    assert (decided(record, found).record.current.slot == 3) is held


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
    found: Observation, *, kept: bool
) -> None:
    after = decided(with_fields(FREE, operation="operation-1"), found).record
    assert after.current.operation == ("operation-1" if kept else None)


def test_a_deletion_that_gke_accepted_is_no_longer_refused() -> None:
    assert followed(with_fields(DELETING, refused="missing permission"), Deleting()).attempt.refused == ""


def test_a_deletion_is_repeated_at_intervals_until_the_pool_is_absent() -> None:
    record, requests = FREE, []
    for second in range(61):
        after = followed(record, Running(), at=NOW + second * SECOND)
        record = replace(record, current=after.attempt)
        requests += [second] if after.actions else []
    assert requests == [0, 20, 40, 60]
    assert is_gone(Situation(record, Observed(Absent()), NOW + 2 * MINUTE, settings(), GRANTED))


@pytest.mark.parametrize(
    ("record", "found", "known"),
    [
        pytest.param(FREE, OURS, ENDED, id="its deletion waits for a slot"),
        pytest.param(FREE, Deleting(), ENDED, id="it is being deleted"),
        pytest.param(UNASKED, OURS, ENDED, id="its hosts are being closed"),
    ],
)
def test_a_slice_that_nobody_is_known_to_use_is_counted_among_those_that_should_be_gone(
    record: SliceRecord, found: Observation, known: Known
) -> None:
    assert decided(record, found, known).record.reason in RELEASED_NOW


@pytest.mark.parametrize(
    ("record", "known"),
    [
        pytest.param(in_use(GUEST), owned(WorkloadState.ACTIVE), id="somebody uses it"),
        pytest.param(FREE, replace(ENDED, relay=NEVER_HEARD), id="the relay is silent"),
        pytest.param(UNASKED, replace(ENDED, stopped="Too many are missing."), id="releases are stopped"),
    ],
)
def test_a_slice_that_something_explains_is_not_counted_among_those_that_should_be_gone(
    record: SliceRecord, known: Known
) -> None:
    assert decided(record, OURS, known).record.reason not in RELEASED_NOW
