from typing import Any

from relay.objects import Kind
from tests.relay.objects import node
from tests.relay.watched import Watched, counts, nodes
from tpu_slices.domain.model.facts import HostsChanged


def test_the_first_host_is_reported_at_once_and_the_next_within_fifteen_seconds(watched: Watched) -> None:
    watched.see(node(0))
    assert counts(watched.due_facts()) == [(1, 1)]
    watched.see(node(1))
    watched.pass_time(14)
    watched.see(node(2, ready=False))
    assert counts(watched.due_facts()) == []
    watched.pass_time(1)
    assert counts(watched.due_facts()) == [(2, 3)]


def test_the_last_host_is_reported_at_once(watched: Watched) -> None:
    watched.see(*nodes(3))
    watched.due_facts()
    watched.see(node(3, ready=False))
    assert counts(watched.due_facts()) == []
    watched.see(node(3))
    assert counts(watched.due_facts()) == [(4, 4)]


def test_the_first_lost_host_is_reported_at_once(watched: Watched) -> None:
    watched.see(*nodes(4))
    watched.due_facts()
    watched.see(node(2, ready=False))
    assert counts(watched.due_facts()) == [(3, 4)]
    watched.lose(node(2))
    assert counts(watched.due_facts()) == []
    watched.pass_time(15)
    assert counts(watched.due_facts()) == [(3, 3)]


def test_a_count_after_a_loss_has_a_higher_sequence(watched: Watched) -> None:
    watched.see(*(node(number, metadata={"resourceVersion": str(40 + number)}) for number in range(4)))
    (before,) = (fact for fact in watched.due_facts() if isinstance(fact, HostsChanged))
    watched.lose(node(3), version=60)
    (after,) = (fact for fact in watched.due_facts() if isinstance(fact, HostsChanged))
    assert (before.sequence, after.sequence) == (43, 60)


def test_a_list_from_a_lagging_server_does_not_lower_the_sequence(watched: Watched) -> None:
    watched.see(node(0, metadata={"resourceVersion": "60"}))
    watched.due_facts()
    watched.relist(Kind.HOSTS, version=50)
    watched.pass_time(15)
    (fact,) = (fact for fact in watched.due_facts() if isinstance(fact, HostsChanged))
    assert (fact.joined, fact.sequence) == (0, 60)


def test_a_host_missing_from_a_new_list_is_gone(watched: Watched) -> None:
    watched.see(*nodes(4))
    watched.due_facts()
    watched.relist(Kind.HOSTS, *nodes(3), version=500)
    (fact,) = (fact for fact in watched.due_facts() if isinstance(fact, HostsChanged))
    assert (fact.usable, fact.joined, fact.sequence) == (3, 3, 500)


def test_a_pool_that_lost_all_its_hosts_is_reported_once(watched: Watched) -> None:
    single = nodes(1, labels={"cloud.google.com/gke-tpu-topology": "2x2x1"})
    watched.see(*single)
    assert counts(watched.due_facts()) == [(1, 1)]
    watched.lose(single[0])
    assert counts(watched.due_facts()) == [(0, 0)]
    watched.pass_time(1000)
    assert counts(watched.due_facts()) == []


def test_a_count_is_repeated_every_five_minutes(watched: Watched) -> None:
    watched.see(*nodes(1))
    watched.due_facts()
    watched.pass_time(300)
    assert counts(watched.due_facts()) == [(1, 1)]


def test_the_hosts_of_each_attempt_are_counted_separately(watched: Watched) -> None:
    watched.see(node(0, attempt=1), node(0, attempt=2), node(1, attempt=2))
    facts = [fact for fact in watched.due_facts() if isinstance(fact, HostsChanged)]
    assert sorted((fact.attempt, fact.joined) for fact in facts) == [(1, 1), (2, 2)]


def test_without_a_topology_the_last_usable_host_is_reported_at_once(watched: Watched) -> None:
    unlabelled: dict[str, Any] = {"labels": {"cloud.google.com/gke-tpu-topology": None}}
    watched.see(node(0, **unlabelled), node(1, ready=False, **unlabelled))
    watched.due_facts()
    watched.see(node(1, **unlabelled))
    assert counts(watched.due_facts()) == [(2, 2)]
