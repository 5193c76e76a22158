"""What is known of a pool without asking GKE."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import MINUTE, NOW, a_record, an_attempt, asked_to_close, asked_to_open, self_managed, some_hosts
from tests.domain.cases import ELSEWHERE
from tpu_slices.domain.model.observations import Absent, PoolObservations, Running
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.reconciling.presumed import presumed, stands
from tpu_slices.domain.records.slices import Desire, SliceRecord

RUNS = PoolObservations(Running(None), {})
CREATION = "operation-1"


def created(reason: Reason = Reason.CREATION_STARTED, **changes: Any) -> SliceRecord:
    fields = {"phase": Phase.PROVISIONING, "reason": reason, "create_requested_at": NOW, "operation": CREATION}
    return a_record(**{**fields, **changes})


def given_up(**changes: Any) -> SliceRecord:
    """Return a slice whose one pool is to be deleted, and whose relay was asked about its hosts."""
    fields = {"create_requested_at": NOW, "hosts": some_hosts(asked=asked_to_close(NOW)), **changes}
    last = an_attempt(1, **fields)
    return a_record(desire=Desire.ABSENT, attempt=2, phase=Phase.RELEASING, terminating=(last,))


@pytest.mark.parametrize(
    ("record", "runs"),
    [
        (created(), True),
        (created(Reason.CREATING), True),
        (created(Reason.POOL_BROKEN), False),
        (created(Reason.HOSTS_JOINING), False),
        (created(operation="operation-2"), False),
        (created(operation=None), False),
        (created(attempt=2, terminating=(an_attempt(1),)), False),
        (created(rebuild_allowed=True), False),
        (created(pinned_settings=self_managed().pools), False),
        (a_record(reason=Reason.CREATION_STARTED), False),
    ],
    ids=[
        "started",
        "seen",
        "broken",
        "told before",
        "of an earlier creation under its name",
        "not on record",
        "one of two",
        "to be rebuilt",
        "made in steps",
        "none",
    ],
)
def test_a_pool_whose_creation_is_said_to_have_ended_well_is_presumed_to_run(record: SliceRecord, runs: bool) -> None:
    assert presumed(record, CREATION) == (RUNS if runs else None)


@pytest.mark.parametrize(
    ("reason", "desire", "runs"),
    [
        (Reason.READY, Desire.ABSENT, True),
        (Reason.READY, Desire.PRESENT, False),
        (Reason.HOSTS_LOST, Desire.ABSENT, False),
        (Reason.SPEC_DRIFTED, Desire.ABSENT, False),
    ],
)
def test_a_slice_that_is_not_needed_any_more_is_presumed_to_stand_as_it_stood(
    reason: Reason, desire: Desire, runs: bool
) -> None:
    record = created(reason, phase=reason.phase, desire=desire)
    assert presumed(record, None) == (RUNS if runs else None)


@pytest.mark.parametrize(
    ("changes", "runs"),
    [
        ({}, True),
        ({"hosts": some_hosts()}, False),
        ({"hosts": some_hosts(asked=asked_to_open(NOW))}, False),
        ({"delete_requested_at": NOW}, False),
        ({"operation": "operation-1"}, False),
        ({"slot": 0}, False),
        ({"hosts": some_hosts(asked=asked_to_close(NOW, during_creation=True))}, False),
        ({"hosts": some_hosts(usable=0, joined=0, asked=asked_to_close(NOW))}, False),
    ],
    ids=[
        "answered",
        "never asked",
        "asked to open them",
        "being deleted",
        "being created",
        "being created by an operation that is not on record",
        "asked while it was being created",
        "without hosts",
    ],
)
def test_a_pool_whose_hosts_the_relay_answered_about_is_presumed_to_run(changes: dict[str, Any], runs: bool) -> None:
    seen = PoolObservations(Absent(), {1: Running(None)}) if runs else None
    assert presumed(given_up(**changes), None, answered=True) == seen
    assert presumed(given_up(**changes), None) is None


def test_a_pool_whose_release_was_stopped_is_presumed_to_run_once_that_is_confirmed() -> None:
    stopped = replace(given_up(hosts=some_hosts()), reason=Reason.RELEASES_STOPPED)
    assert presumed(stopped, None, stopped=True) is None
    assert presumed(stopped, None) == PoolObservations(Absent(), {1: Running(None)})
    assert presumed(replace(stopped, reason=Reason.CLOSING_HOSTS), None) is None
    for under_way in ({"delete_requested_at": NOW}, {"slot": 0}):
        assert presumed(replace(given_up(**under_way), reason=Reason.RELEASES_STOPPED), None) is None


@pytest.mark.parametrize(
    ("changes", "alone"),
    [
        ({}, True),
        ({"reason": Reason.READY}, True),
        ({"hosts": some_hosts(usable=3)}, True),
        ({"reason": Reason.CREATING}, False),
        ({"reason": Reason.HOSTS_LOST}, False),
        ({"slot": 1}, False),
        ({"rebuild_allowed": True}, False),
        ({"runs_on": ELSEWHERE}, False),
        ({"terminating": (an_attempt(3, delete_requested_at=NOW - MINUTE),)}, False),
        ({"spec": None}, False),
    ],
    ids=str,
)
def test_a_slice_stands_where_its_own_pool_was_seen_to_run_and_nothing_is_under_way(
    changes: dict[str, Any], alone: bool
) -> None:
    assert stands(created(**{"reason": Reason.HOSTS_JOINING, "hosts": some_hosts(), **changes})) is alone
