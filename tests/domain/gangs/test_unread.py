"""A gang some of whose records cannot be read: they are taken for standing if it stood, and for nothing otherwise."""

from __future__ import annotations

from tests.builders import NOW
from tests.domain.gangs.test_deciding import HOUR, a_case, a_gang, standing, stuck
from tpu_slices.domain.gangs.deciding import decided
from tpu_slices.domain.gangs.members import Members
from tpu_slices.domain.model.slices import ClaimId
from tpu_slices.domain.records.gangs import GangState

UNREAD = (ClaimId("llama-slice-2"),)
STOOD = a_gang(state=GangState.STANDS, ran=True, state_since=NOW - HOUR, claims=3)


def test_a_gang_stands_on_while_nothing_is_known_to_be_missing() -> None:
    assert decided(a_case(STOOD, Members(standing=standing(2), unread=UNREAD))).state is GangState.STANDS


def test_a_gang_of_which_a_slice_was_lost_forms_though_another_cannot_be_read() -> None:
    after = decided(a_case(STOOD, Members(standing=standing(1), stuck=stuck(1, 1), unread=UNREAD)))
    assert (after.state, after.held_since) == (GangState.FORMS, NOW)
