"""Transitions: which are kept in a slice's record, and which are still to be announced."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import MINUTE, NOW, a_record, a_spec, an_occupant, some_hosts, unclaimed
from tpu_slices.domain.model.facts import Occupant
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import LAST_ATTEMPT, WorkloadUid, slice_id
from tpu_slices.domain.records.awaited import PoolOperation, SlotAwaited
from tpu_slices.domain.records.hosts import digest_of
from tpu_slices.domain.records.slices import Desire, SliceRecord
from tpu_slices.domain.records.transitions import HISTORY

courses = st.lists(st.sampled_from(Reason), max_size=3 * HISTORY)


def after(course: list[Reason]) -> SliceRecord:
    record = a_record()
    for number, reason in enumerate(course):
        record = record.transitioned(NOW + number * MINUTE, reason, f"transition {number}")
    return record


def test_the_first_transition_counts_even_if_it_changes_nothing() -> None:
    record = a_record()
    transitioned = record.transitioned(NOW, record.reason, "Heard of.")
    assert (transitioned.transition_count, len(transitioned.transitions)) == (1, 1)


def test_a_new_message_alone_is_no_transition() -> None:
    once = after([Reason.HOSTS_JOINING])
    again = once.transitioned(NOW + MINUTE, Reason.HOSTS_JOINING, "3 of 4 hosts.")
    assert again.message == "3 of 4 hosts."
    assert (again.transitions, again.transition_count, again.since) == (
        once.transitions,
        once.transition_count,
        once.since,
    )


def test_a_new_reason_is_a_transition_and_keeps_since() -> None:
    once = after([Reason.CREATING])
    again = once.transitioned(NOW + MINUTE, Reason.HOSTS_JOINING, "")
    assert (again.transition_count, again.since) == (2, once.since)


def test_a_new_phase_sets_since() -> None:
    once = after([Reason.CREATING])
    assert once.transitioned(NOW + MINUTE, Reason.READY, "").since == NOW + MINUTE


@given(courses)
def test_no_two_consecutive_transitions_are_equal(course: list[Reason]) -> None:
    kept = [transition.reason for transition in after(course).transitions]
    assert all(one != other for one, other in itertools.pairwise(kept))


@given(courses, st.sampled_from(Reason))
def test_a_record_expires_only_while_it_is_gone(course: list[Reason], reason: Reason) -> None:
    gone = replace(after([*course, Reason.RELEASED]), expire_at=NOW)
    told = gone.transitioned(NOW + MINUTE, reason, "")
    assert told.expire_at == (NOW if told.phase is Phase.GONE else None)


@given(courses)
def test_the_last_twenty_transitions_are_kept_and_all_are_counted(course: list[Reason]) -> None:
    record = after(course)
    changes = [reason for place, reason in enumerate(course) if place == 0 or reason is not course[place - 1]]
    assert record.transition_count == len(changes)
    assert [each.reason for each in record.transitions] == changes[-HISTORY:]


@given(courses, st.data())
def test_the_unannounced_transitions_are_the_newest_that_are_kept(course: list[Reason], data: st.DataObject) -> None:
    record = after(course)
    announced_count = data.draw(st.integers(0, record.transition_count))
    assert record.transitions_after(announced_count) == (
        record.transitions[-(record.transition_count - announced_count) :]
        if announced_count < record.transition_count
        else ()
    )
    assert len(record.transitions_after(announced_count)) == min(record.transition_count - announced_count, HISTORY)


def test_the_pool_is_named_by_slice_and_attempt() -> None:
    record = a_record(attempt=3)
    assert f"{record.pool}" == record.id == f"{record.maker}-3"


def test_a_slice_that_no_claim_has_is_named_by_its_claim_and_its_number_as_its_pool_is() -> None:
    claim = a_record(attempt=3)
    before = unclaimed(claim)
    assert (claim.unclaimed, before.unclaimed) == (False, True)
    assert (before.id, before.maker, before.name) == (slice_id(claim.maker, 3), claim.maker, before.id)
    assert (claim.id, claim.claimed_by, claim.name) == (before.id, claim.maker, claim.maker)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        pytest.param({}, "", id="it stays"),
        pytest.param({"let_go": "nobody used it"}, "nobody used it", id="it was let go"),
        pytest.param({"desire": Desire.ABSENT, "desire_message": "it ended"}, "it ended", id="it is not needed"),
        pytest.param(
            {"desire": Desire.ABSENT, "desire_message": "it ended", "let_go": "nobody used it"},
            "it ended",
            id="it was let go, and is not needed either",
        ),
        pytest.param({"desire": Desire.ABSENT}, "no longer in demand", id="nobody says why"),
    ],
)
def test_a_slice_goes_once_it_was_let_go_or_is_not_needed(changes: dict[str, Any], why: str) -> None:
    record = a_record(**changes)
    assert record.goes is bool(why)
    assert not record.goes or record.why_it_goes == why


def test_attempts_beyond_the_last_have_no_pool() -> None:
    record = a_record(attempt=LAST_ATTEMPT + 1)
    with pytest.raises(ValueError, match="is not within"):
        _ = record.pool


@pytest.mark.parametrize(("desire", "wanted"), [(Desire.PRESENT, True), (Desire.ABSENT, False)])
def test_a_slices_demand_follows_from_its_desire(desire: Desire, wanted: bool) -> None:
    assert a_record(desire=desire).wanted is wanted


@given(st.sampled_from(Reason))
def test_a_reason_implies_the_phase_or_leaves_it(reason: Reason) -> None:
    record = a_record(phase=Phase.READY).transitioned(NOW, reason, "")
    assert record.phase is (reason.phase or Phase.READY)


@pytest.mark.parametrize(
    ("occupants", "lent"),
    [
        pytest.param((), False, id="nobody"),
        pytest.param((an_occupant(),), False, id="its own Job"),
        pytest.param((an_occupant("other"),), True, id="a Job of another JobSet"),
        pytest.param((an_occupant(job_index=3),), True, id="a sibling Job of its template"),
        pytest.param((an_occupant(replicated_job="driver"),), True, id="a sibling Job of another template"),
        pytest.param((an_occupant(uid=WorkloadUid("uid-recreated")),), True, id="of a JobSet of the same name"),
        pytest.param((an_occupant(), an_occupant("other")), False, id="its own and another"),
    ],
)
def test_hosts_are_lent_while_only_other_jobs_are_on_them(occupants: tuple[Occupant, ...], *, lent: bool) -> None:
    record = a_record(create_requested_at=NOW, hosts=some_hosts(occupants=occupants))
    assert (record.lent, record.chips_bought) == (lent, 16)


@pytest.mark.parametrize(
    ("changes", "bought"),
    [
        pytest.param({"create_requested_at": None}, 0, id="never ordered"),
        pytest.param({}, 16, id="it stands"),
        pytest.param({"ordered": a_spec(hosts=2)}, 8, id="as it was ordered"),
        pytest.param({"phase": Phase.GONE}, 0, id="it is gone"),
        pytest.param({"empty": True}, 0, id="its creation failed before any host was there"),
        pytest.param({"empty": True, "hosts": some_hosts()}, 16, id="hosts came all the same"),
    ],
)
def test_the_chips_of_a_slice_are_bought_until_it_is_gone_whether_a_claim_has_it_or_not(
    changes: dict[str, Any], bought: int
) -> None:
    record = a_record(**{"create_requested_at": NOW, **changes})
    for slice_ in (record, replace(record, let_go="nobody used it"), unclaimed(record)):
        assert slice_.chips_bought == bought


def test_a_slice_holds_the_slot_of_its_operation_and_the_one_that_was_handed_on_to_it() -> None:
    awaited = SlotAwaited(operation=PoolOperation.DELETE, attempt=1, since=NOW, number=5)
    assert a_record(slot=0, slot_awaited=awaited).slots == {0, 5}
    assert a_record(slot_awaited=replace(awaited, number=None)).slots == set()


def test_the_digest_of_a_slice_is_that_of_its_pool_by_the_claim_that_it_was_made_for() -> None:
    record = a_record(attempt=2, hosts=some_hosts(occupants=(an_occupant("guest"),)))
    expected = digest_of(record.maker, 2, record.current.hosts)
    assert record.hosts_digest == unclaimed(record).hosts_digest == expected
