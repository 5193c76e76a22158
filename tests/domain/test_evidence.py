"""What is known of pools without asking GKE, and how what was seen of them is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from tests.builders import (
    MINUTE,
    NOW,
    a_record,
    a_spec,
    asked_to_close,
    heard,
    self_managed,
    settings,
    some_hosts,
)
from tests.domain.cases import (
    LOST,
    OTHERS,
    OURS,
    every_record,
    going,
    observations,
    requested,
    seen,
    situations,
    was_seen,
)
from tpu_slices.domain.model.observations import (
    Absent,
    Begun,
    Broken,
    Busy,
    Creating,
    Deleting,
    Failure,
    FailureKind,
    Observation,
    Observed,
    Running,
    Unowned,
    Unreadable,
    Visible,
    Witness,
)
from tpu_slices.domain.reconciling.case import Situation
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.decisions import CloseHosts, CreatePool
from tpu_slices.domain.reconciling.evidence import contradicts, on_record, seen_so
from tpu_slices.domain.records.attempts import Attempt
from tpu_slices.domain.records.hosts import NO_HOSTS, Hosts
from tpu_slices.domain.records.slices import SliceRecord

CREATION = "operation-1"
REPAIR = Busy("repair")
NOT_KNOWN: list[Visible] = [
    *(Absent(), Begun("its workload policy"), LOST, Broken(Failure(FailureKind.UNKNOWN, "why"))),
    *(Deleting(), Unowned("not ours")),
]


def stands(pool: Visible = OURS, by: Witness = Witness.LOOK, **changes: Any) -> SliceRecord:
    """Return a slice whose pool was requested an hour ago, and of which this was seen."""
    return requested(**{"seen": was_seen(pool, by), **changes})


def is_created(by: Witness = Witness.REQUEST, **changes: Any) -> SliceRecord:
    return stands(Creating(), by, **{"operation": CREATION, "ordered": a_spec(), **changes})


# what is known


@pytest.mark.parametrize("pool", [OURS, OTHERS, Running(), REPAIR, Creating()], ids=str)
def test_a_pool_that_was_seen_to_stand_or_to_be_made_is_known_to(pool: Visible) -> None:
    known = Observed(pool, Witness.RECORD)
    assert on_record(stands(pool), NOW) == on_record(going(seen=was_seen(pool)), NOW) == known


@pytest.mark.parametrize("pool", NOT_KNOWN, ids=str)
def test_of_a_pool_that_was_seen_otherwise_the_vendor_is_asked(pool: Visible) -> None:
    assert on_record(stands(pool), NOW) is None
    assert on_record(going(seen=was_seen(pool)), NOW) is None


def test_what_was_never_requested_is_absent_as_if_it_were_looked_at() -> None:
    assert on_record(a_record(), NOW) == Observed(Absent(), Witness.LOOK)
    assert on_record(a_record(attempt=2, earlier=(1,)), NOW) == Observed(Absent(), Witness.LOOK)


@pytest.mark.parametrize(
    "changes",
    [{"look_at": NOW}, {"look_at": NOW - MINUTE}, {"unreadable_since": NOW - MINUTE}, {"seen": None}],
    ids=["it is time to", "it was time to", "it could not be read last", "nothing was seen"],
)
def test_the_vendor_is_asked_of_a_pool_about_which_there_is_a_doubt(changes: dict[str, Any]) -> None:
    assert on_record(stands(**changes), NOW) is None


def test_the_vendor_is_asked_of_a_pool_whose_deletion_was_requested() -> None:
    assert on_record(going(seen=was_seen(OURS), delete_requested_at=NOW), NOW) is None


def test_the_vendor_is_asked_of_a_pool_whose_creation_may_not_have_been_requested_after_all() -> None:
    """A function that ends between the save and the request leaves such a record."""
    assert on_record(is_created(operation=None), NOW) is None
    assert on_record(is_created(Witness.LOOK, operation=None), NOW) is not None


# what the vendor's log tells


def test_a_pool_whose_creation_is_said_to_have_ended_well_is_known_to_run() -> None:
    runs = Observed(Running(a_spec().fingerprint), Witness.EVENT)
    for by in (Witness.REQUEST, Witness.LOOK):
        assert on_record(is_created(by), NOW, CREATION) == runs
    assert on_record(is_created(look_at=NOW), NOW, CREATION) == runs, "it need not be asked for that"


@pytest.mark.parametrize(
    "record",
    [is_created(operation="operation-2"), is_created(pinned_settings=self_managed().pools)],
    ids=["of an earlier creation under its name", "one step of several"],
)
def test_another_operation_says_nothing_of_it(record: SliceRecord) -> None:
    assert on_record(record, NOW, CREATION) == on_record(record, NOW)


def test_of_a_pool_that_is_made_in_steps_the_vendor_is_asked_at_each_of_them() -> None:
    assert on_record(is_created(Witness.LOOK, pinned_settings=self_managed().pools), NOW) is None
    assert on_record(stands(pinned_settings=self_managed().pools), NOW) is not None


def test_a_pool_that_was_seen_to_run_or_to_be_broken_before_is_not_known_by_the_log() -> None:
    for pool in (OURS, NOT_KNOWN[3]):
        record = stands(pool, operation=CREATION)
        assert on_record(record, NOW, CREATION) == on_record(record, NOW)


# what is kept


@given(every_record, observations)
def test_what_is_seen_is_kept_unless_it_is_that_the_pool_could_not_be_read(
    record: SliceRecord, found: Observation
) -> None:
    before, after = record.current, seen_so(record.current, found, NOW, Witness.LOOK)
    if before.create_requested_at is None:
        assert after == before
    elif isinstance(found, Unreadable):
        assert after == replace(before, unreadable_since=before.unreadable_since or NOW)
    else:
        assert after == replace(before, seen=after.seen, unreadable_since=None)
        assert after.seen is not None
        assert after.seen.pool == found
        assert after.seen == before.seen or (after.seen.since, after.seen.by) == (NOW, Witness.LOOK)


@given(situations())
def test_a_decision_keeps_what_it_saw_but_for_a_creation_that_it_requests(case: Situation) -> None:
    decision = decide(case.record, case.seen, NOW, case.settings, case.known)
    for record in [decision.record, *([decision.let_go] if decision.let_go else [])]:
        each, kept = record.current, record.current.seen.pool if record.current.seen else None
        if CreatePool(each.number) in decision.actions:
            assert kept == Creating()
        elif each.create_requested_at is not None and not isinstance(case.seen.pool, Unreadable):
            assert (each.number, kept) == (case.record.attempt, case.seen.pool)


@given(situations())
def test_a_decision_by_the_record_postpones_no_look(case: Situation) -> None:
    look_at = NOW + MINUTE
    by_record = replace(case.seen, by=Witness.RECORD)
    after = decide(replace(case.record, look_at=look_at), by_record, NOW, case.settings, case.known).record
    if after.phase is case.record.phase and after.look_at is not None:
        assert after.look_at <= look_at


def test_what_the_relay_answered_while_a_pool_was_created_counts_no_more_once_that_was_seen_to_have_ended() -> None:
    record = going(create_requested_at=NOW - MINUTE, seen=was_seen(Creating()), operation=CREATION, hosts=NO_HOSTS)
    asked = decide(record, seen(Creating()), NOW, settings(), heard()).record
    assert asked.current.hosts.closing is not None
    ended = decide(asked, seen(OURS), NOW, settings(), heard())
    assert ended.actions == (CloseHosts(1, 2),)


# what is contradicted


@pytest.mark.parametrize(
    ("pool", "before", "after", "contradicted"),
    [
        (OURS, some_hosts(), some_hosts(usable=3), True),
        (OURS, some_hosts(), some_hosts(usable=3, joined=3), True),
        (OURS, some_hosts(usable=1, joined=1), some_hosts(usable=3, joined=3), False),
        (OURS, some_hosts(usable=3), some_hosts(), False),
        (OURS, some_hosts(asked=asked_to_close()), some_hosts(usable=0), False),
        (OURS, some_hosts(asked=asked_to_close()), some_hosts(usable=0, joined=3), True),
        (OURS, some_hosts(), some_hosts(usable=0, closed=4), False),
        (Creating(), some_hosts(usable=3, joined=3), some_hosts(), True),
        (Creating(), some_hosts(usable=1, joined=1), some_hosts(usable=3, joined=3), False),
        (REPAIR, some_hosts(usable=0), some_hosts(), True),
        (REPAIR, some_hosts(usable=3), some_hosts(usable=0), False),
        (Absent(), some_hosts(), some_hosts(usable=0), False),
        (None, some_hosts(), some_hosts(usable=0), False),
    ],
    ids=[
        *("a host is not usable any more", "a host is gone", "hosts join", "a host is usable again"),
        *("hosts are being closed", "a host goes while they are closed", "hosts were closed"),
        *("all hosts are there before the end of the creation", "hosts join during the creation"),
        *("all hosts are back from a repair", "hosts go for a repair", "it is looked at anyway", "nothing was seen"),
    ],
)
def test_a_count_of_hosts_contradicts_what_was_seen_of_their_pool(
    pool: Visible | None, before: Hosts, after: Hosts, contradicted: bool
) -> None:
    each = Attempt(number=1, create_requested_at=NOW, seen=was_seen(pool) if pool else None, hosts=before)
    assert contradicts(each, after, whole=after.usable == 4) is contradicted
