"""Which slices are kept warm, for how long, and which of them go first."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import MINUTE, NOW, a_job, a_jobset, a_record, a_spec, an_owner, settings, some_hosts
from tests.domain.cases import BARE, FLEX, OURS, situations
from tests.domain.gangs.test_deciding import a_gang
from tpu_slices.domain.capacity.warmth import (
    Around,
    Kept,
    Needed,
    Short,
    in_the_way,
    kept_after,
    kept_warm,
    short_of,
    told,
)
from tpu_slices.domain.model.capacity import Warm
from tpu_slices.domain.model.clusters import Allowed, Policy
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.hosts import HostKey, Upcoming
from tpu_slices.domain.model.observations import Busy, Creating, Observation
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.domain.reconciling.case import Situation
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.decisions import DeletePool
from tpu_slices.domain.records.attempts import Hindrance
from tpu_slices.domain.records.gangs import GangState
from tpu_slices.domain.records.slices import Desire, SliceRecord
from tpu_slices.domain.records.warmth import Warmth
from tpu_slices.domain.records.workloads import WorkloadRecord

QUARTER = Warm(lasts=timedelta(minutes=15))
CLOSED = some_hosts(usable=0, closed=4, sound=4, keys=(HostKey("u-1.j0", 4),), vacant_since=NOW - timedelta(hours=1))
COMPLETED = a_jobset(state=WorkloadState.COMPLETED)
CHIPS = 16


def let_go(**changes: Any) -> SliceRecord:
    """Return a slice whose JobSet has completed, closed and with nobody on it."""
    fields = {"create_requested_at": NOW - timedelta(hours=2), "ordered": a_spec(), "hosts": CLOSED}
    going = {"desire": Desire.ABSENT, "phase": Phase.RELEASING, "reason": Reason.CLOSING_HOSTS}
    return a_record(**{**fields, **going, **changes})


def since(minutes: int, **changes: Any) -> Warmth:
    began = NOW - minutes * MINUTE
    return Warmth(since=began, until=began + QUARTER.lasts, kept_by="", **changes)


def kept(
    record: SliceRecord,
    found: Observation = OURS,
    own: WorkloadRecord | None = COMPLETED,
    warm: Warm = QUARTER,
    beside: Kept | None = None,
) -> Warmth | None:
    around = Around(settings=settings(warm=warm), own=own, beside=beside or Kept())
    return kept_warm(record, found, around, NOW)


def test_a_slice_that_nobody_uses_is_kept_for_as_long_as_the_settings_say() -> None:
    assert kept(let_go()) == since(0)
    assert kept(let_go(warm=since(14))) == since(14)


def test_it_is_kept_until_an_hour_before_the_maintenance_of_a_host_and_says_so() -> None:
    announced = replace(CLOSED, announced=Upcoming(begins=NOW + 70 * MINUTE))
    warm = kept(let_go(hosts=announced, warm=since(2)))
    assert warm == replace(since(2), until=NOW + 10 * MINUTE)
    assert told(warm, let_go(hosts=announced), settings(warm=QUARTER), NOW) == (
        "Kept warm until 12:10 UTC for the next slice of namespace research (at an unknown price). Google has "
        "announced maintenance of its hosts from 13:10 UTC: nobody is given it from 12:10 UTC."
    )
    tomorrow = replace(CLOSED, announced=Upcoming(begins=NOW + timedelta(days=1)))
    assert kept(let_go(hosts=tomorrow)) == since(0)


def test_a_slice_of_a_gang_that_let_it_go_is_not_kept_as_others_may_wait_for_its_hosts() -> None:
    waits = a_gang(state=GangState.WAITS, let_go="the others did not come")
    assert kept(let_go(), own=a_jobset(gangs={"all": waits})) is None
    assert kept(let_go(), own=a_jobset(gangs={"all": replace(waits, let_go="")})) is not None


@pytest.mark.parametrize(
    ("record", "found"),
    [
        pytest.param(let_go(warm=since(15)), OURS, id="its time is over"),
        pytest.param(let_go(warm=since(1, ended="its chips are needed")), OURS, id="its chips are needed"),
        pytest.param(let_go(desire=Desire.PRESENT), OURS, id="it stays"),
        pytest.param(let_go(delete_requested_at=NOW), OURS, id="it is being deleted"),
        pytest.param(let_go(release_requested=True), OURS, id="an operator released it"),
        pytest.param(let_go(hold=True), OURS, id="an operator holds it"),
        pytest.param(let_go(attempt=0, legacy_pool="llama"), OURS, id="it was adopted"),
        pytest.param(let_go(ordered=FLEX), OURS, id="its hosts leave by themselves"),
        pytest.param(let_go(ordered=a_spec(exclusive_nodes=True)), OURS, id="its hosts are labelled for one Job"),
        pytest.param(let_go(job=a_job(owner=an_owner(kind=OwnerKind.TPU_NODE_GROUP))), OURS, id="of a node group"),
        pytest.param(let_go(hosts=replace(CLOSED, joined=3, sound=3)), OURS, id="it lost a host"),
        pytest.param(let_go(hosts=replace(CLOSED, sound=3)), OURS, id="a host does not work"),
        pytest.param(let_go(hosts=replace(CLOSED, maintained=1)), OURS, id="a machine is maintained"),
        pytest.param(
            let_go(hosts=replace(CLOSED, announced=Upcoming(begins=NOW + 60 * MINUTE))),
            OURS,
            id="a machine is to be maintained within the hour",
        ),
        pytest.param(let_go(hosts=replace(CLOSED, announced=Upcoming(stopping=1))), OURS, id="a host is stopped soon"),
        pytest.param(let_go(), BARE, id="its labels were replaced"),
        pytest.param(let_go(), Busy("REPAIR"), id="the vendor works on it"),
        pytest.param(let_go(), Creating(), id="it is being made"),
        pytest.param(let_go(refused="forbidden"), OURS, id="it was to be deleted, and that was refused"),
        pytest.param(
            let_go(hindered=Hindrance(at=NOW, times=1, message="busy")), OURS, id="it was to be deleted, and is not yet"
        ),
        pytest.param(
            a_record(hosts=CLOSED, create_requested_at=NOW, ordered=a_spec())
            .transitioned(NOW - MINUTE, Reason.PODS_NOT_RUNNING, "")
            .with_changes(desire=Desire.ABSENT),
            OURS,
            id="pods of its last Job did not run",
        ),
    ],
)
def test_others_are_not_kept(record: SliceRecord, found: Observation) -> None:
    assert kept(record, found) is None


@pytest.mark.parametrize("own", [None, a_jobset(state=WorkloadState.MISSING)], ids=["not on record", "missing"])
def test_the_slice_of_a_workload_that_may_still_be_there_is_not_kept(own: WorkloadRecord | None) -> None:
    assert kept(let_go(), own=own) is None


def test_no_slice_of_a_cluster_that_is_retired_is_kept() -> None:
    around = Around(settings=settings(warm=QUARTER, retired="it moves"), own=COMPLETED)
    assert kept_warm(let_go(), OURS, around, NOW) is None


@given(situation=situations(), lasted=st.integers(0, 60))
def test_none_is_kept_for_longer_than_the_settings_say(situation: Situation, lasted: int) -> None:
    record = situation.record.with_current(warm=since(lasted))
    of_cluster = replace(situation.settings, warm=QUARTER)
    decision = decide(record, situation.seen, NOW, of_cluster, situation.known)
    if decision.reason is Reason.WARM and situation.record.reason is not Reason.WARM:
        assert lasted < 15
        assert not any(isinstance(action, DeletePool) for action in decision.actions)
        assert decision.record.next_reconcile_at is not None
        assert decision.record.next_reconcile_at <= since(lasted).until


def warm_slices(*minutes: int) -> list[SliceRecord]:
    """Return slices that have been warm for so long."""
    return [
        let_go(job=a_job(job_index=index), reason=Reason.WARM, warm=since(each, cents_an_hour=1000))
        for index, each in enumerate(minutes)
    ]


@given(minutes=st.lists(st.integers(0, 14), max_size=8), most=st.integers(0, 8))
def test_what_is_kept_is_within_the_limit_and_younger_than_what_goes(minutes: list[int], most: int) -> None:
    every = warm_slices(*minutes)
    limited = replace(QUARTER, most_chips=most * CHIPS)
    beside = {it.id: kept_after(it, [each for each in every if each is not it], NOW) for it in every}
    stay = [it for it in every if kept(it, warm=limited, beside=beside[it.id])]
    assert len(stay) == min(most, len(every))
    gone = [it.current.warm.since for it in every if it not in stay and it.current.warm]
    assert not gone or max(gone) <= min((it.current.warm.since for it in stay if it.current.warm), default=NOW)


def test_a_limit_in_dollars_counts_known_prices_alone() -> None:
    assert kept(let_go(), warm=replace(QUARTER, most_usd_an_hour=1_000.0)) is None


def short(namespace: str, lacks: int, in_cluster: int = 0) -> Short:
    """Return that so many chips lack for those who wait in a namespace, each of whom one chip serves."""
    return Short(needed={namespace: Needed(100, 1, 0)}, in_namespaces={namespace: lacks}, in_cluster=in_cluster)


def test_as_many_go_as_chips_are_needed_the_longest_warm_first() -> None:
    every = warm_slices(1, 9, 5)
    assert in_the_way(short("research", 17), every) == (every[1], every[2])
    assert in_the_way(short("research", 0), every) == ()
    assert in_the_way(short("vision", 17), every) == ()
    assert in_the_way(short("vision", 0, in_cluster=1), every) == (every[1],)


@pytest.mark.parametrize(
    ("needed", "least", "held", "in_cluster", "goes"),
    [
        pytest.param(16, 16, 48, 80, 0, id="its namespace's limit keeps it out whatever goes in others"),
        pytest.param(16, 16, 0, 80, 1, id="the cluster's alone"),
        pytest.param(48, 48, 0, 80, 0, id="more than all that is warm has"),
        pytest.param(48, 16, 0, 80, 2, id="some of those who wait are served by it"),
        pytest.param(64, 16, 32, 80, 1, id="one of them is, as the namespace has room for no more"),
    ],
)
def test_none_goes_for_those_who_are_not_served_by_it(
    needed: int, least: int, held: int, in_cluster: int, goes: int
) -> None:
    policy = Policy(everyone=Allowed(chips_per_namespace=48), chips_per_cluster=80)
    lacks = short_of({"vision": Needed(needed, least, held)}, in_cluster, policy)
    assert len(in_the_way(lacks, warm_slices(5, 9))) == goes


def test_none_goes_for_one_whose_namespace_has_too_few_warm_chips() -> None:
    policy = Policy(everyone=Allowed(chips_per_namespace=64))
    lacks = short_of({"research": Needed(48, 48, 64)}, 64, policy)
    assert in_the_way(lacks, warm_slices(5, 9)) == ()
    assert len(in_the_way(lacks, warm_slices(5, 9, 1))) == 3


def test_chips_of_slices_that_are_being_deleted_will_be_free_without_that() -> None:
    closing = let_go(job=a_job(job_index=7), reason=Reason.CLOSING_HOSTS)
    every = [*warm_slices(1, 9), closing.with_current(delete_requested_at=NOW)]
    assert in_the_way(short("research", 16), every) == ()
    ended = let_go(job=a_job(job_index=8), reason=Reason.WARM, warm=since(2, ended="its chips are needed"))
    assert in_the_way(short("research", 33), [*every, ended]) == (every[1],)


def test_chips_of_a_slice_whose_hosts_cannot_be_closed_will_not() -> None:
    every = [*warm_slices(1), let_go(job=a_job(job_index=7), reason=Reason.CLOSING_HOSTS)]
    assert in_the_way(short("research", 16), every) == (every[0],)


def test_what_lacks_is_what_lies_beyond_the_limits() -> None:
    policy = Policy(everyone=Allowed(chips_per_namespace=64), chips_per_cluster=100)
    needed = {"research": Needed(32, 16, 64), "vision": Needed(16, 16, 16)}
    found = short_of(needed, 90, policy)
    assert found == Short(needed=needed, in_namespaces={"research": 32, "vision": -32}, in_cluster=38)
    assert not short_of({"research": Needed(1, 1, 1)}, 1, Policy())
