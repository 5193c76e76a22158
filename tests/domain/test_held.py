"""What is told of a slice that an operator holds: who holds it since when, whether it is needed, and what stands."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import MINUTE, NOW, a_record, had, settings, some_hosts
from tests.domain.cases import HOUR, OURS, going, lasting, ready, requested, unneeded
from tpu_slices.domain.model.observations import (
    Absent,
    Begun,
    Creating,
    Deleting,
    Observation,
    Observed,
    Unowned,
    Unreadable,
)
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.reconciling.case import Known
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.records.slices import Desire, SliceRecord

BY_ADA: dict[str, Any] = {"hold": True, "held_by": "ada@example.com", "held_since": NOW - HOUR}
HELD = "Held by ada@example.com since 2026-03-01 11:00 UTC: nothing is created or deleted. "
POOL = a_record().pool
UNNEEDED = "It is not needed: the JobSet completed. "


def decided(record: SliceRecord, found: Observation) -> SliceRecord:
    decision = decide(record, Observed(found), NOW, settings(), Known())
    assert (decision.actions, decision.let_go) == ((), None)
    assert decision.reason is Reason.HELD
    return decision.record


@pytest.mark.parametrize(
    ("record", "found", "reason", "said"),
    [
        (ready(), OURS, Reason.READY, "All 4 hosts are ready and offer their chips."),
        (lasting(Reason.READY, MINUTE, hosts=some_hosts(usable=3)), OURS, Reason.HOSTS_LOST, "3 of 4 hosts are ready"),
        (requested(), Creating(), Reason.CREATING, "GKE is creating 4 hosts"),
        (ready(), Absent(), Reason.HELD, "No node pool of it stands."),
        (ready(), Deleting(), Reason.HELD, f"There is node pool {POOL}."),
        (requested(), Begun("a policy"), Reason.HELD, f"There is node pool {POOL}."),
        (ready(), Unowned("not ours"), Reason.HELD, "No node pool of it stands."),
        (a_record(), Absent(), Reason.HELD, "No node pool of it stands."),
        (a_record(phase=Phase.WAITING, retry_at=NOW + HOUR), Absent(), Reason.HELD, "No node pool of it stands."),
        (unneeded(ready()), OURS, Reason.HELD, f"{UNNEEDED}There is node pool {POOL} with 4 usable hosts."),
        (unneeded(requested()), Creating(), Reason.HELD, f"{UNNEEDED}There is node pool {POOL}."),
        (unneeded(ready()), Absent(), Reason.HELD, f"{UNNEEDED}No node pool of it stands."),
        (unneeded(a_record(phase=Phase.RELEASING)), Absent(), Reason.HELD, f"{UNNEEDED}No node pool of it stands."),
        (ready(let_go="unused"), OURS, Reason.HELD, f"There is node pool {POOL} with 4 usable hosts."),
        (ready(let_go="unused"), Absent(), Reason.HELD, "No node pool of it stands."),
    ],
)
def test_a_held_slice_says_who_holds_it_whether_it_is_needed_and_what_stands(
    record: SliceRecord, found: Observation, reason: Reason, said: str
) -> None:
    after = decided(replace(record, **BY_ADA), found)
    assert (after.reason, after.phase) == (reason, reason.phase)
    assert after.message.startswith(HELD + said)
    assert after.claim.retry_at is None


def test_a_slice_that_no_claim_has_is_held_like_any_other() -> None:
    record, why = going(**BY_ADA), "It is not needed: its creation failed. "
    assert decided(record, OURS).message == f"{HELD}{why}There is node pool {POOL} with 0 usable hosts."
    assert decided(record, Creating()).message == f"{HELD}{why}There is node pool {POOL}."
    assert decided(record, Absent()).message == f"{HELD}{why}No node pool of it stands."


def test_a_pool_that_is_gone_is_no_longer_counted_as_bought() -> None:
    gone = decided(unneeded(ready(**BY_ADA)), Absent())
    assert (ready().chips_bought, gone.chips_bought) == (16, 0)


@pytest.mark.parametrize("phase", [Phase.READY, Phase.WAITING])
def test_what_cannot_be_read_is_told_as_it_was(phase: Phase) -> None:
    record = a_record(phase=phase, message="As before.", **BY_ADA)
    assert decided(record, Unreadable("503")).message == "As before."


def test_a_slice_that_is_gone_stays_so() -> None:
    assert decided(unneeded(a_record(phase=Phase.GONE, **BY_ADA)), Absent()).phase is Phase.GONE


def test_a_hold_that_was_set_in_the_console_has_the_time_when_it_was_first_seen() -> None:
    seen = decided(ready(hold=True), OURS)
    assert (seen.held_by, seen.held_since) == ("", NOW)
    assert seen.message.startswith("Held by an operator since 2026-03-01 12:00 UTC: ")
    again = decide(seen, Observed(OURS), NOW + HOUR, settings(), Known()).record
    assert again.held_since == NOW


def test_a_hold_that_was_ended_in_the_console_is_told_no_more() -> None:
    held = decided(unneeded(ready(**BY_ADA)), OURS)
    freed = decide(replace(held, hold=False), Observed(OURS), NOW, settings(), Known()).record
    assert (freed.held_by, freed.held_since, freed.phase) == ("", None, Phase.RELEASING)
    assert "eld by" not in freed.message


def test_a_slice_that_waited_is_tried_at_once_when_its_hold_ends() -> None:
    waiting = a_record(phase=Phase.WAITING, retry_at=NOW + HOUR, demand_confirmed_at=NOW, **BY_ADA)
    freed = replace(decided(waiting, Absent()), hold=False)
    known = Known(slots={1: 0})
    assert decide(freed, Observed(Absent()), NOW, settings(), known).creates


def test_the_name_of_a_slice_that_was_to_go_and_went_while_it_was_held_is_not_used_again() -> None:
    held = decided(unneeded(requested(delete_requested_at=NOW - MINUTE, **BY_ADA)), Absent())
    assert (held.attempt, held.current.gone, had(held)) == (1, True, ())
    needed = replace(held, desire=Desire.PRESENT, hold=False)
    assert decide(needed, Observed(Absent()), NOW, settings(), Known()).record.attempt == 2
    assert decided(requested(**BY_ADA), Absent()).attempt == 1, "one that is needed is made again under its name"
