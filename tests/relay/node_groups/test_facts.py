"""What the relay publishes of TPUNodeGroups, and how it closes the hosts of one that was deleted."""

from __future__ import annotations

from datetime import timedelta

import pytest

from relay.node_groups.evictor import evictions
from relay.notices.unserved_pod import unserved
from relay.objects import PoolKey
from tests.builders import NOW
from tests.relay.closing import SLICE, Site
from tests.relay.node_groups.objects import OWNER, group
from tests.relay.objects import SELECTOR, bound_pod, jobset, pod
from tests.relay.watched import Watched, demand, states
from tpu_slices.domain.model.facts import Family, SliceDeclared, WorkloadChanged, WorkloadState
from tpu_slices.domain.model.questions import HostsQuestion, RepeatQuestion
from tpu_slices.domain.planning.host_labels import GROUP_KEYS, GROUP_NAME
from tpu_slices.wire.node_groups import group_of

MINUTE = timedelta(minutes=1)


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_a_group_that_is_held_is_declared_at_once_and_once(watched: Watched) -> None:
    watched.see(group())
    (fact,) = watched.due_facts()
    assert isinstance(fact, SliceDeclared)
    assert (fact.workload.owner, fact.group) == (OWNER, group_of(group()))
    watched.see(group(8))
    watched.pass_time(3600)
    assert not [each for each in watched.due_facts() if isinstance(each, SliceDeclared)]


def test_a_group_that_is_not_held_is_neither_told_nor_counted(watched: Watched) -> None:
    watched.see(group(held=False))
    watched.pass_time(60)
    assert watched.due_facts() == []
    assert watched.listed() == []


def test_it_is_told_once_it_is_held(watched: Watched) -> None:
    watched.see(group(held=False))
    watched.see(group(8))
    assert [type(fact) for fact in watched.due_facts()] == [SliceDeclared]
    assert watched.listed() == ["u-7"]


def test_another_spec_is_told_again(watched: Watched) -> None:
    watched.see(group())
    watched.due_facts()
    watched.see(group(8, spec={"topology": "2x2x4", "nodeCount": 4}, metadata={"generation": 2}))
    (fact,) = watched.due_facts()
    assert isinstance(fact, SliceDeclared)
    assert fact.group.topology == "2x2x4"


def test_it_is_repeated_on_request(watched: Watched) -> None:
    watched.see(group())
    watched.due_facts()
    watched.queue.ask(RepeatQuestion(family=Family.WORKLOADS, keys=(OWNER.uid,)), watched.now)
    assert [type(fact) for fact in watched.due_facts()] == [SliceDeclared]


def test_one_that_cannot_be_parsed_is_told_with_the_reason(watched: Watched) -> None:
    watched.see(group(spec={"topology": 4}))
    (fact,) = watched.due_facts()
    assert isinstance(fact, WorkloadChanged)
    assert (fact.state, "spec.topology" in fact.template_error) == (WorkloadState.ACTIVE, True)


def test_a_deletion_is_told_and_repeated_until_its_object_is_gone(watched: Watched) -> None:
    watched.see(group())
    watched.due_facts()
    watched.see(group(8, deleted=True))
    assert states(watched.due_facts()) == [("u-7", WorkloadState.DELETED)]
    for _ in range(3):
        watched.pass_time(300)
        assert states(watched.due_facts()) == [("u-7", WorkloadState.DELETED)]
    watched.lose(group(9, deleted=True))
    watched.due_facts()
    watched.pass_time(3600)
    assert states(watched.due_facts()) == []


def test_one_that_was_deleted_before_it_was_seen_is_told_as_ended(watched: Watched) -> None:
    watched.see(group(deleted=True))
    assert states(watched.due_facts()) == [("u-7", WorkloadState.DELETED)]


def test_a_group_counts_as_live_until_it_is_deleted(watched: Watched) -> None:
    watched.see(group())
    assert watched.listed() == ["u-7"]
    watched.see(group(8, deleted=True))
    assert watched.listed() == []


@pytest.mark.parametrize("key", sorted(GROUP_KEYS))
def test_a_leader_that_selects_the_hosts_of_a_group_waits_for_no_slice(watched: Watched, key: str) -> None:
    watched.see(jobset(), pod(spec={"nodeSelector": {**SELECTOR, key: "my-group"}}))
    watched.pass_time(10)
    assert demand(watched.due_facts()) == []


def test_a_pod_that_selects_the_hosts_of_a_group_is_not_told_that_it_gets_no_slice() -> None:
    waiting = pod(spec={"nodeSelector": {**SELECTOR, GROUP_NAME: "my-group"}})
    for label in [each for each in waiting["metadata"]["labels"] if each.startswith("jobset")]:
        del waiting["metadata"]["labels"][label]
    assert unserved(waiting) is None
    del waiting["spec"]["nodeSelector"][GROUP_NAME]
    assert unserved(waiting) is not None


# closing hosts, with pods to be evicted


@pytest.fixture
def site() -> Site:
    return Site()


def closing(site: Site, minutes: int = 10) -> None:
    question = HostsQuestion(
        slice_id=SLICE, attempt=1, number=1, asked_at=NOW, close=True, evict_by=site.watched.now + minutes * MINUTE
    )
    site.watched.queue.ask(question, site.watched.now)


def to_evict(site: Site) -> list[tuple[int, bool]]:
    queue = site.watched.queue
    return [(len(each.nodes), each.whole) for each in evictions(queue.cache, queue.closing)]


def occupied(site: Site) -> None:
    site.watched.see(jobset(), bound_pod(0, f"{SLICE}-1-0"))
    site.watched.due_facts()


def test_hosts_are_closed_though_a_job_is_on_them(site: Site) -> None:
    occupied(site)
    closing(site)
    assert len(site.watched.patches()) == 4


def test_without_an_eviction_a_job_keeps_its_hosts_open(site: Site) -> None:
    occupied(site)
    site.ask()
    assert site.watched.patches() == ()


def test_pods_are_evicted_from_hosts_that_are_closed(site: Site) -> None:
    closing(site)
    assert to_evict(site) == []
    site.patch()
    assert to_evict(site) == [(4, True)]


def test_it_is_answered_once_every_pod_is_gone(site: Site) -> None:
    closing(site)
    site.patch()
    assert [fact.answers for fact in site.after(30)] in ([], [None])
    site.watched.queue.evicted(PoolKey(SLICE, 1), site.watched.now)
    assert [(fact.answers, fact.closed) for fact in site.reports()] == [(1, 4)]
    assert to_evict(site) == []


def test_it_is_answered_at_the_deadline_whoever_is_left(site: Site) -> None:
    occupied(site)
    closing(site, minutes=10)
    site.patch()
    reports = [fact for _ in range(11) for fact in site.after(60)]
    assert [(fact.answers, len(fact.occupants)) for fact in reports][-1] == (1, 1)


def test_a_pool_without_hosts_is_answered_at_once(site: Site) -> None:
    site.leave(0, 1, 2, 3)
    site.after(10)
    closing(site)
    assert [fact.answers for fact in site.reports()] == [1]
