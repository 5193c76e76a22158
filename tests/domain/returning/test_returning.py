"""What is known of hosts that are away and come back: one row per row of the table, and laws."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import MINUTE, NOW, heard, self_managed, settings, some_hosts, with_fields
from tests.domain.cases import FLEX, HOUR, OURS, OWN, SILENT, STOCKOUT, lasting, moments, ready, situations
from tpu_slices.domain.model.clusters import ClusterSettings, Limits
from tpu_slices.domain.model.observations import (
    Broken,
    Busy,
    Cause,
    Deleting,
    FailureKind,
    Observation,
    Observed,
    Running,
)
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.vendors import COMPUTE_ENGINE, GKE
from tpu_slices.domain.reconciling.case import Known, Situation
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.giving_up import giving_up
from tpu_slices.domain.reconciling.returning import AWAY, reason_of, returning
from tpu_slices.domain.records.returning import LATE_AFTER, Returning
from tpu_slices.domain.records.slices import SliceRecord

LIMITS = Limits()
REFILLS = replace(OURS, refills=True)
TRIES_ON = replace(OURS, awaiting="stockout")
GONE, THREE_LEFT, NOT_READY = some_hosts(usable=0, joined=0), some_hosts(usable=3, joined=3), some_hosts(usable=3)
MAINTAINED = some_hosts(usable=3, maintained=1)


def known(
    record: SliceRecord, seen: Observation, at: datetime = NOW, of_cluster: ClusterSettings | None = None
) -> Returning | None:
    return returning(Situation(record, Observed(seen), at, of_cluster or settings(), heard()))


def since(cause: Cause, lasting: timedelta = HOUR, **changes: Any) -> Returning:
    """Return what has been known for so long."""
    return Returning(**{"cause": cause, "since": NOW - lasting, "counts_from": NOW - lasting, **changes})


@pytest.mark.parametrize(
    ("record", "seen", "cause"),
    [
        # who works on it
        pytest.param(ready(hosts=GONE), Busy("", Cause.UPGRADE), Cause.UPGRADE, id="an upgrade"),
        pytest.param(ready(hosts=NOT_READY), Busy("", Cause.REPAIR), Cause.REPAIR, id="a repair"),
        pytest.param(ready(hosts=GONE), Busy("resize"), Cause.WORK, id="work of which nothing is said"),
        pytest.param(
            ready(hosts=GONE, returning=since(Cause.UPGRADE)), Busy(""), Cause.UPGRADE, id="what is on record is known"
        ),
        pytest.param(
            ready(hosts=GONE, returning=since(Cause.PREEMPTED)), Busy(""), Cause.WORK, id="work after a preemption"
        ),
        pytest.param(
            ready(hosts=GONE, returning=since(Cause.REPAIR)),
            Busy("", Cause.UPGRADE),
            Cause.UPGRADE,
            id="an upgrade after a repair",
        ),
        pytest.param(
            lasting(Reason.HOSTS_JOINING, MINUTE, hosts=NOT_READY),
            Busy("", Cause.REPAIR),
            Cause.REPAIR,
            id="a repair before it was ever ready",
        ),
        pytest.param(ready(), Busy("", Cause.UPGRADE), None, id="an upgrade that has taken no host yet"),
        # maintenance
        pytest.param(ready(hosts=MAINTAINED), OURS, Cause.MAINTENANCE, id="a host has the label"),
        pytest.param(
            ready(hosts=THREE_LEFT, returning=since(Cause.MAINTENANCE)), OURS, Cause.MAINTENANCE, id="its Node is gone"
        ),
        pytest.param(ready(hosts=some_hosts(maintained=1)), OURS, None, id="a host that is usable yet"),
        pytest.param(
            ready(hosts=MAINTAINED), Busy("", Cause.REPAIR), Cause.REPAIR, id="the vendor's work comes before labels"
        ),
        # preemption
        pytest.param(ready(hosts=GONE), REFILLS, Cause.PREEMPTED, id="spot hosts"),
        pytest.param(ready(hosts=THREE_LEFT), REFILLS, Cause.PREEMPTED, id="one spot host of four"),
        pytest.param(ready(hosts=NOT_READY), REFILLS, None, id="a spot host that is not Ready: nobody says why"),
        pytest.param(ready(hosts=GONE), OURS, None, id="other hosts: nobody says why"),
        pytest.param(
            lasting(Reason.HOSTS_JOINING, MINUTE, hosts=GONE), REFILLS, None, id="spot hosts that were never there"
        ),
        pytest.param(ready(hosts=THREE_LEFT), TRIES_ON, Cause.WORK, id="Compute Engine tries on"),
        # nothing is known
        pytest.param(ready(hosts=GONE), Broken(STOCKOUT), None, id="broken"),
        pytest.param(ready(hosts=GONE), Deleting(), None, id="being deleted"),
        pytest.param(ready(hosts=GONE, spec=None), Busy("", Cause.UPGRADE), None, id="a pool without a request"),
        pytest.param(ready(hosts=GONE, spec=FLEX), Busy("", Cause.UPGRADE), None, id="flex-start, which waits anyhow"),
        pytest.param(
            ready(hosts=THREE_LEFT, spec=FLEX), Busy("", Cause.UPGRADE), Cause.UPGRADE, id="flex-start, some left"
        ),
    ],
)
def test_each_row_says_who_brings_hosts_back(record: SliceRecord, seen: Observation, cause: Cause | None) -> None:
    found = known(record, seen)
    assert (found.cause if found else None, found.over_at if found else None) == (cause, None)


@pytest.mark.parametrize("cause", Cause)
def test_what_is_over_is_over_since_it_was_first_seen_to_be(cause: Cause) -> None:
    before = since(cause)
    record = ready(hosts=NOT_READY, returning=before)
    assert known(record, OURS) == replace(before, over_at=NOW)
    again = with_fields(record, returning=replace(before, over_at=NOW - MINUTE))
    assert known(again, OURS) == again.current.returning
    assert known(with_fields(record, hosts=some_hosts()), OURS) is None


def test_work_has_the_vendors_own_beginning_and_no_later_one_than_now() -> None:
    record = ready(hosts=GONE)
    began = known(record, Busy("", Cause.UPGRADE, NOW - HOUR))
    assert began == since(Cause.UPGRADE)
    ahead = known(record, Busy("", Cause.UPGRADE, NOW + MINUTE))
    assert ahead == since(Cause.UPGRADE, timedelta())


def test_causes_in_a_row_share_one_patience() -> None:
    record = ready(hosts=GONE, returning=since(Cause.PREEMPTED, 3 * HOUR))
    upgraded = known(record, Busy("", Cause.UPGRADE, NOW - MINUTE))
    assert upgraded == since(Cause.UPGRADE, MINUTE, counts_from=NOW - 3 * HOUR)
    over = with_fields(record, returning=since(Cause.REPAIR, HOUR, over_at=NOW - MINUTE))
    assert known(over, Busy("", Cause.REPAIR)) == since(Cause.REPAIR, timedelta(), counts_from=NOW - HOUR)


@pytest.mark.parametrize("cause", Cause)
def test_hosts_are_late_after_what_is_normal_for_the_cause_and_before_they_are_given_up(cause: Cause) -> None:
    seen: Observation = Busy("", cause) if cause in {Cause.UPGRADE, Cause.REPAIR, Cause.WORK} else REFILLS
    record = ready(hosts=GONE, returning=since(cause, LATE_AFTER[cause] - MINUTE))
    early, late = known(record, seen), known(record, seen, NOW + MINUTE)
    assert (early and early.late, late and late.late) == (False, True)
    assert LATE_AFTER[cause] < LIMITS.patience[cause]


def given_up(record: SliceRecord, seen: Observation, at: datetime = NOW, of: Known | None = None) -> str | None:
    """Return why the slice is given up for its hosts; None: it is not."""
    ended = giving_up(Situation(record, Observed(seen), at, settings(), of or heard()))
    if ended is None:
        return None
    assert ended.failure is not None
    assert ended.failure.kind is FailureKind.HOSTS
    assert not ended.fits
    assert not ended.unneeded
    return ended.failure.message


@pytest.mark.parametrize("cause", Cause)
def test_each_cause_has_a_patience_of_its_own_after_which_the_pool_is_given_up(cause: Cause) -> None:
    seen: Observation = Busy("", cause) if cause in {Cause.UPGRADE, Cause.REPAIR, Cause.WORK} else REFILLS
    patience = LIMITS.patience[cause]
    reason = reason_of(cause, GKE)
    record = lasting(reason, patience, hosts=GONE, returning=since(cause, patience))
    assert given_up(record, seen, NOW - MINUTE) is None
    message = given_up(record, seen)
    assert message is not None
    assert "0 of 4 hosts are usable" in message
    assert f"since {NOW - patience:%Y-%m-%d %H:%M} UTC" in message
    assert given_up(record, seen, of=SILENT) is None
    assert given_up(with_fields(record, hosts=replace(GONE, occupants=(OWN,))), seen) is None


def test_hosts_that_are_back_have_the_time_to_be_usable_that_new_ones_have() -> None:
    over = since(Cause.UPGRADE, 5 * HOUR, over_at=NOW - LIMITS.hosts_timeout)
    record = lasting(Reason.HOSTS_JOINING, 5 * HOUR, hosts=NOT_READY, returning=over)
    assert given_up(record, OURS, NOW - MINUTE) is None
    assert given_up(record, OURS) == "3 of 4 hosts became usable within 30 minutes."


def test_on_compute_engine_a_group_that_recreates_instances_is_waited_for_as_a_repair() -> None:
    of_cluster = self_managed()
    record = ready(hosts=NOT_READY)
    seen = Busy("1 of 4 instances are recreated or restarted.", Cause.REPAIR)
    decision = decide(record, Observed(seen), NOW, of_cluster, heard())
    assert decision.record.reason is Reason.POOL_BUSY is reason_of(Cause.REPAIR, COMPUTE_ENGINE)
    assert "Compute Engine repairs the instance group" in decision.record.message
    assert decision.record.current.returning == since(Cause.REPAIR, timedelta())


def test_a_pool_of_a_tpunodegroup_is_told_no_end_since_it_is_never_given_up() -> None:
    group = replace(ready(hosts=GONE).owner, kind=type(ready().owner.kind).TPU_NODE_GROUP)
    record = ready(10 * HOUR, hosts=GONE, owner=group, returning=since(Cause.UPGRADE, 10 * HOUR))
    decision = decide(record, Observed(Busy("", Cause.UPGRADE)), NOW, settings(), heard())
    assert (decision.record.reason, decision.actions) == (Reason.GKE_UPGRADES, ())
    assert "replaced" not in decision.record.message
    assert "longer than usual" in decision.record.message


@given(situations(), st.sampled_from(Cause), moments)
def test_a_pool_is_neither_given_up_for_its_hosts_nor_deleted_while_its_patience_lasts(
    case: Situation, cause: Cause, began: datetime
) -> None:
    """Began at most an hour and a half ago: no patience is over."""
    record = with_fields(case.record, returning=Returning(cause=cause, since=began, counts_from=began))
    ended = giving_up(replace(case, record=record, seen=Observed(Busy("", cause))))
    assert ended is None or ended.failure is None or ended.failure.kind is not FailureKind.HOSTS


@given(situations())
def test_what_is_known_of_the_way_back_lasts_only_while_hosts_are_missing(case: Situation) -> None:
    after = decide(case.record, case.seen, case.now, case.settings, case.known).record
    if after.reason in AWAY and after.current.returning is not None:
        assert after.current.hosts.usable < (after.made_as.hosts if after.made_as else 1)
        assert isinstance(case.seen.pool, Busy | Running) or after.attempt != case.record.attempt
