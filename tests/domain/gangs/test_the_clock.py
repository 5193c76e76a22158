"""The clock of a gang whose slices are held counts the time in which others could not be made, and no other."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from tests.builders import MINUTE, NOW
from tests.domain.gangs.test_deciding import FORMING, HOUR, a_case, a_gang, being_made, standing, stuck
from tpu_slices.domain.gangs.deciding import decided
from tpu_slices.domain.gangs.members import Members
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import ClaimId
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.transitions import Transition


def made_after_a_stockout(at: datetime) -> tuple[SliceRecord, ...]:
    before = Transition(at=at - MINUTE, phase=Phase.WAITING, reason=Reason.STOCKOUT, message="None left.")
    after = Transition(at=at, phase=Phase.PROVISIONING, reason=Reason.CREATION_STARTED, message="Creating.")
    return tuple(replace(each, transitions=(before, after)) for each in being_made(1, 2))


def test_slices_are_not_let_go_while_the_others_are_made_though_these_were_stuck_for_long_before() -> None:
    gang = a_gang(**FORMING, held_since=NOW - 70 * MINUTE, stuck_since=NOW - 61 * MINUTE)
    after = decided(a_case(gang, Members(standing=standing(2), made=made_after_a_stockout(NOW - MINUTE))))
    assert (after.forms, after.stuck_for, after.stuck_since) == (True, 60 * MINUTE, None)
    assert decided(a_case(after, Members(standing=standing(2), stuck=stuck(1, 2)))).waits


def test_the_clock_stopped_when_the_last_of_the_others_could_be_made_again() -> None:
    gang = a_gang(**FORMING, held_since=NOW - HOUR, stuck_since=NOW - 10 * MINUTE)
    made = (*made_after_a_stockout(NOW - 6 * MINUTE), *made_after_a_stockout(NOW - 2 * MINUTE))
    assert decided(a_case(gang, Members(standing=standing(1), made=made))).stuck_for == 8 * MINUTE
    without_history = Members(standing=standing(1), made=being_made(2, 1))
    assert decided(a_case(gang, without_history)).stuck_for == 10 * MINUTE


def test_what_ceased_to_be_stuck_before_others_were_stuck_does_not_stop_the_clock() -> None:
    gang = a_gang(**FORMING, held_since=NOW - HOUR, stuck_since=NOW - 10 * MINUTE)
    made = made_after_a_stockout(NOW - 20 * MINUTE)
    assert decided(a_case(gang, Members(standing=standing(1), made=made))).stuck_for == 10 * MINUTE
    unread = Members(standing=made_after_a_stockout(NOW - 20 * MINUTE), unread=(ClaimId("llama-slice-1"),))
    assert decided(a_case(gang, unread)).stuck_for == 10 * MINUTE
