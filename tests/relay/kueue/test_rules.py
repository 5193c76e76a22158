"""When a check may be written, and what: never what Kueue would take for another time, or never be rid of."""

from __future__ import annotations

from typing import Any

import pytest

from relay.kueue.objects import CheckState
from relay.kueue.rules import NO_QUOTA, TELL_EVERY, Finding, applied, to_write
from tests.builders import NOW
from tests.relay.kueue.objects import OURS, check, read

PENDING = Finding(state=CheckState.PENDING, message="0 of 2 slices stand.")
READY = Finding(state=CheckState.READY, message="2 of 2 slices stand.")
RETRY = Finding(state=CheckState.RETRY, message="They were let go.")
REJECTED = Finding(state=CheckState.REJECTED, message="There is no such shape.")
EVERY = (PENDING, READY, RETRY, REJECTED, None)
GONE: tuple[dict[str, Any], ...] = (
    {"conditions": {"Evicted": "True"}},
    {"conditions": {"Finished": "True"}},
    {"spec": {"active": False}},
    {"metadata": {"deletionTimestamp": "2026-11-01T12:00:00Z"}},
)


@pytest.mark.parametrize("found", EVERY)
@pytest.mark.parametrize("state", CheckState)
@pytest.mark.parametrize("parts", GONE, ids=str)
def test_of_one_that_goes_nothing_is_written(parts: dict[str, Any], state: CheckState, found: Finding | None) -> None:
    assert to_write(read(check(state), **parts), OURS, found, NOW) is None


@pytest.mark.parametrize("found", EVERY)
def test_a_check_that_was_ready_is_not_once_the_quota_is_gone(found: Finding | None) -> None:
    without = read(check("Ready"), conditions={"QuotaReserved": "False"})
    assert to_write(without, OURS, found, NOW) == Finding(state=CheckState.PENDING, message=NO_QUOTA)
    assert to_write(read(check(), conditions={"QuotaReserved": "False"}), OURS, found, NOW) is None


@pytest.mark.parametrize("found", EVERY)
@pytest.mark.parametrize("state", ["Retry", "Rejected"])
def test_after_retry_nothing_is_written_until_kueue_has_reset_it(state: str, found: Finding | None) -> None:
    assert to_write(read(check(state)), OURS, found, NOW) is None


@pytest.mark.parametrize("found", [PENDING, READY, RETRY, REJECTED])
def test_what_is_found_is_written_where_there_is_quota(found: Finding) -> None:
    assert to_write(read(check()), OURS, found, NOW) == found
    assert to_write(read(check(found.state, message=found.message)), OURS, found, NOW) is None


def test_ready_is_taken_back_before_kueue_has_admitted_by_it() -> None:
    assert to_write(read(check("Ready")), OURS, PENDING, NOW) == PENDING


@pytest.mark.parametrize("found", EVERY)
def test_one_that_runs_is_sent_back_or_left_alone(found: Finding | None) -> None:
    running = read(check("Ready"), conditions={"Admitted": "True"})
    assert to_write(running, OURS, found, NOW) == (found if found in {RETRY, REJECTED} else None)


def test_a_message_is_not_changed_more_often_than_people_read() -> None:
    told = read(check(message="1 of 2 slices stand."))
    assert to_write(told, OURS, PENDING, NOW, NOW - TELL_EVERY / 2) is None
    assert to_write(told, OURS, READY, NOW, NOW - TELL_EVERY / 2) == READY
    assert to_write(told, OURS, PENDING, NOW, NOW - TELL_EVERY) == PENDING


def test_the_checks_of_others_are_left_alone() -> None:
    both = read(check("Retry", name="other"), check("Pending"))
    assert to_write(both, OURS, READY, NOW) == READY
    [written] = applied(both, OURS, READY, NOW)["status"]["admissionChecks"]
    assert written["name"] == "tpu-slices"


def test_all_checks_of_ours_are_written_together() -> None:
    """One that is left out of what a field manager applies is deleted."""
    ours = OURS | {"tpu-slices-spot"}
    both = read(check("Ready"), check("Pending", name="tpu-slices-spot"))
    assert to_write(both, ours, READY, NOW) == READY
    first, second = applied(both, ours, READY, NOW)["status"]["admissionChecks"]
    assert first["lastTransitionTime"] == "2026-11-01T12:00:00Z", "its state did not change"
    assert second["lastTransitionTime"] == NOW.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert first.keys() == second.keys() == {"name", "state", "message", "lastTransitionTime"}


def test_what_is_written_has_the_version_that_was_judged() -> None:
    assert applied(read(check(), version=77), OURS, READY, NOW)["metadata"]["resourceVersion"] == "77"
