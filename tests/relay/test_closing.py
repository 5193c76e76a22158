"""Closing hosts to new pods before their pool is deleted, opening them again, and answering."""

from typing import Any

import pytest

from relay.objects import Kind
from tests.relay.closing import SLICE, Site, closed_site, leader, question
from tests.relay.objects import jobset, node
from tests.relay.watched import occupants, states
from tpu_slices.domain.model.facts import HostsChanged, WorkloadChanged, WorkloadState

OPEN = (False, None)
CLOSED_BY_US = (True, "1")


def test_hosts_are_closed_and_reported_once_pods_under_way_have_arrived(site: Site) -> None:
    assert site.ask() == []
    assert len(site.patch()) == 4
    assert site.ours() == dict.fromkeys("0123", CLOSED_BY_US)
    assert site.answers() == []
    assert site.after(4) == []
    (fact,) = site.after(1)
    assert (fact.usable, fact.joined, fact.closed, fact.occupants, fact.answers) == (0, 4, 4, (), 1)
    assert site.after(300) == []


def test_the_answer_waits_for_the_last_host(site: Site) -> None:
    site.ask()
    for number in range(3):
        site.cordon(number)
    site.watched.pass_time(4)
    site.reports()
    site.patch()
    assert [fact.answers for fact in site.after(4)] == []
    assert [fact.answers for fact in site.after(1)] == [1]


def test_the_state_of_the_jobset_is_published_before_the_hosts(site: Site) -> None:
    for seen in (leader(), jobset(metadata={"labels": {"kueue.x-k8s.io/queue-name": "team-b"}})):
        site.watched.see(seen)
        site.watched.due_facts()
    site.watched.queue.ask(question(), site.watched.now)
    first, second = site.watched.due_facts()
    assert isinstance(first, WorkloadChanged)
    assert (first.workload.owner.uid, first.state) == ("u-1", WorkloadState.ACTIVE)
    assert isinstance(second, HostsChanged)


@pytest.mark.parametrize(
    "parts",
    [{"conditions": ["Completed"]}, {"conditions": ["Failed"]}, {"spec": {"suspend": True}}],
    ids=["completed", "failed", "suspended"],
)
def test_the_state_of_a_jobset_that_is_not_active_is_not_repeated_with_its_hosts(
    site: Site, parts: dict[str, Any]
) -> None:
    site.watched.see(jobset(**parts))
    site.watched.due_facts()
    site.watched.queue.ask(question(), site.watched.now)
    assert states(site.watched.due_facts()) == []


def test_the_state_is_published_at_once_although_the_hosts_have_to_be_closed_first(site: Site) -> None:
    site.watched.queue.ask(question(), site.watched.now)
    assert states(site.watched.due_facts()) == [("u-1", WorkloadState.ACTIVE)]


def test_hosts_with_a_leader_are_not_closed(site: Site) -> None:
    site.watched.see(leader())
    site.reports()
    (fact,) = site.ask()
    assert ([each.pod_uid for each in fact.occupants], fact.closed, fact.answers) == (["pod-0"], 0, 1)
    assert site.needed() == []
    site.watched.lose(leader())
    assert ([each.answers for each in site.after(5)], site.needed()) == ([None], [])


def test_a_leader_that_arrives_while_its_hosts_are_being_closed_is_reported_at_once(site: Site) -> None:
    site.ask()
    site.cordon(3)
    site.reports()
    site.watched.see(leader())
    assert site.needed() == []
    (fact,) = site.reports()
    assert ([each.pod_uid for each in fact.occupants], fact.closed, fact.answers) == (["pod-0"], 0, 1)
    assert site.needed() == []
    assert [each.answers for each in site.after(60)] == [None]


def test_a_leader_that_was_under_way_when_its_hosts_were_closed_is_reported_at_once(site: Site) -> None:
    site.ask()
    site.patch()
    site.reports()
    site.watched.pass_time(4.9)
    site.watched.see(leader())
    (fact,) = site.reports()
    assert ([each.pod_uid for each in fact.occupants], fact.answers) == (["pod-0"], 1)


def test_a_leader_on_closed_hosts_is_reported_and_no_more_hosts_are_closed() -> None:
    site = closed_site()
    site.watched.see(leader())
    assert occupants(site.reports()) == [["pod-0"]]
    site.join(4)
    assert site.needed() == []


def test_a_strangers_pod_does_not_keep_hosts_open(site: Site) -> None:
    stranger = leader()
    del stranger["metadata"]["ownerReferences"]
    site.watched.see(stranger)
    site.ask()
    site.patch()
    assert [(fact.closed, fact.answers) for fact in site.after(5)] == [(4, 1)]


def test_a_pool_without_hosts_is_answered_at_once_and_hosts_that_join_later_are_closed(site: Site) -> None:
    (fact,) = site.ask(attempt=2)
    assert (fact.attempt, fact.usable, fact.joined, fact.closed, fact.occupants) == (2, 0, 0, 0, ())
    assert (fact.answers, fact.sequence) == (1, site.version + 17)
    site.join(0, attempt=2)
    assert site.needed() == [f"{SLICE}-2-0"]


def test_hosts_that_a_person_cordoned_count_and_are_left_alone(site: Site) -> None:
    site.cordon(2)
    site.reports()
    site.ask()
    assert len(site.patch()) == 3
    assert [(fact.closed, fact.answers) for fact in site.after(5)] == [(4, 1)]
    assert site.ours()["2"] == (True, None)
    site.ask(close=False, number=2)
    site.patch()
    assert site.ours() == {"0": OPEN, "1": OPEN, "2": (True, None), "3": OPEN}
    assert site.answers() == [2]


def test_hosts_are_opened_again_and_then_the_question_is_answered() -> None:
    site = closed_site()
    assert site.ask(close=False, number=2) == []
    assert len(site.patch()) == 4
    assert site.ours() == dict.fromkeys("0123", OPEN)
    (fact,) = site.reports()
    assert (fact.usable, fact.closed, fact.answers) == (4, 0, 2)


def test_open_hosts_need_no_opening(site: Site) -> None:
    assert [fact.answers for fact in site.ask(close=False)] == [1]
    assert site.needed() == []


def test_hosts_whose_cordon_is_seen_after_they_were_to_be_opened_are_opened(site: Site) -> None:
    site.ask()
    before = dict(site.nodes)
    site.patch()
    late, site.nodes = site.nodes, before
    site.watched.see(*before.values())
    assert [fact.answers for fact in site.ask(close=False, number=2)] == [2]
    site.nodes = late
    site.watched.see(*late.values())
    assert len(site.patch()) == 4
    assert site.ours() == dict.fromkeys("0123", OPEN)


@pytest.mark.parametrize("seen_to_go", [True, False])
def test_a_host_that_joins_a_closed_pool_is_closed_too(seen_to_go: bool) -> None:
    site = closed_site()
    if seen_to_go:
        site.watched.lose(node(1))
    site.join(1, metadata={"uid": "another"})
    assert site.needed() == [f"{SLICE}-1-1"]
    site.patch()
    site.reports()
    assert [(fact.closed, fact.answers) for fact in site.after(5)] == [(4, None)]


def test_a_closed_pool_whose_only_host_is_repaired_is_closed_again() -> None:
    site = closed_site()
    for made in list(site.nodes.values()):
        site.watched.lose(made)
    site.reports()
    site.watched.pass_time(500)
    site.join(0)
    assert site.needed() == [f"{SLICE}-1-0"]


def test_a_question_about_hosts_that_are_gone_for_long_is_forgotten() -> None:
    site = closed_site()
    for made in list(site.nodes.values()):
        site.watched.lose(made)
    site.after(600)
    site.join(0)
    assert site.needed() == []
    assert site.watched.queue.closing.pools == ()


@pytest.mark.parametrize(("close", "usable"), [(True, 4), (False, 0)])
def test_after_a_minute_the_hosts_are_reported_as_they_are(close: bool, usable: int) -> None:
    """As when the API server refuses every patch."""
    site = Site() if close else closed_site()
    site.ask(close=close, number=2)
    assert site.after(59) == []
    (fact,) = site.after(1)
    assert (fact.usable, fact.joined, fact.answers) == (usable, 4, 2)
    assert len(site.needed()) == 4
    assert site.after(61) == []
    site.patch()
    facts = site.reports() + site.after(5)
    assert facts[-1].answers == 2
    assert (facts[-1].usable, facts[-1].closed) == ((0, 4) if close else (4, 0))


def test_hosts_that_are_reported_as_they_are_are_not_an_answer_twice(site: Site) -> None:
    site.ask()
    assert [fact.answers for fact in site.after(60)] == [1]
    site.join(0, ready=False)
    assert site.answers() == [None]


def test_questions_about_two_pools_do_not_meet(site: Site) -> None:
    site.join(0, slice_id="tpu-llama-1-bbbbbbbbbbbbb")
    site.reports()
    site.ask()
    assert len(site.patch()) == 4
    assert not site.nodes["tpu-llama-1-bbbbbbbbbbbbb-1-0"]["spec"].get("unschedulable")


def test_a_jobset_that_is_gone_does_not_hold_up_the_answer(site: Site) -> None:
    site.watched.lose(jobset())
    site.watched.due_facts()
    site.ask()
    site.patch()
    assert [(fact.closed, fact.answers) for fact in site.after(5)] == [(4, 1)]


def test_a_host_that_leaves_while_the_others_are_closed_is_not_waited_for(site: Site) -> None:
    site.ask()
    site.patch()
    site.join(4)
    site.reports()
    assert [fact.answers for fact in site.after(5)] == []
    site.watched.lose(node(4))
    assert [(fact.joined, fact.closed, fact.answers) for fact in site.reports()] == [(4, 4, 1)]


def test_a_repeated_question_is_answered_again() -> None:
    site = closed_site()
    for _ in range(2):
        (fact,) = site.ask()
        assert (fact.closed, fact.answers) == (4, 1)


def test_a_repeated_question_is_answered_no_later_than_the_first(site: Site) -> None:
    site.ask()
    site.after(40)
    site.ask()
    assert [fact.answers for fact in site.after(20)] == [1]
    assert [fact.answers for fact in site.ask()] == [1]


def test_only_the_latest_of_two_questions_is_answered(site: Site) -> None:
    site.ask()
    site.ask(number=2)
    site.patch()
    assert [fact.answers for fact in site.after(5)] == [2]


def test_nothing_is_answered_while_a_watch_is_interrupted() -> None:
    """Somebody may be on the hosts by now."""
    site = closed_site()
    site.watched.queue.failed(Kind.LEADERS)
    assert site.ask() == []
    site.watched.queue.bookmarked(Kind.HOSTS, "1", site.watched.now)
    assert site.reports() == []
    site.watched.relist(Kind.LEADERS, leader())
    (fact,) = site.reports()
    assert ([each.pod_uid for each in fact.occupants], fact.answers) == (["pod-0"], 1)


def test_a_host_that_somebody_opened_is_not_closed_again_for_the_same_question() -> None:
    """Another relay may have been asked to open it, or a person needs it."""
    site = closed_site()
    site.cordon(2, cordoned=False)
    site.join(3)
    assert site.needed() == []
    assert [fact.closed for fact in site.reports()] == [2]
    site.ask(number=2)
    assert len(site.patch()) == 2


def test_hosts_that_were_just_opened_as_asked_are_closed_when_that_is_asked_again() -> None:
    site = closed_site()
    site.ask(close=False, number=2)
    patches = site.watched.patches()
    site.ask(number=3)
    site.apply(patches)
    assert len(site.patch()) == 4


def test_a_question_is_answered_although_somebody_opens_the_hosts(site: Site) -> None:
    site.ask()
    site.patch()
    site.cordon(2, cordoned=False)
    assert site.answers() == []
    assert [(fact.closed, fact.answers) for fact in site.after(60)] == [(3, 1)]
