from typing import Any

from relay.objects import Kind
from tests.relay.objects import node
from tests.relay.watched import Watched, counts, nodes
from tpu_slices.domain.model.facts import HostsChanged


def test_the_first_host_is_reported_at_once_the_next_within_fifteen_seconds(watched: Watched) -> None:
    watched.see(node(0))
    assert counts(watched.said()) == [(1, 1)]
    watched.see(node(1))
    watched.pass_time(14)
    watched.see(node(2, ready=False))
    assert counts(watched.said()) == []
    watched.pass_time(1)
    assert counts(watched.said()) == [(2, 3)]


def test_the_last_host_is_reported_at_once(watched: Watched) -> None:
    watched.see(*nodes(3))
    watched.said()
    watched.see(node(3, ready=False))
    assert counts(watched.said()) == []
    watched.see(node(3))
    assert counts(watched.said()) == [(4, 4)]


def test_the_first_host_that_is_lost_is_reported_at_once(watched: Watched) -> None:
    watched.see(*nodes(4))
    watched.said()
    watched.see(node(2, ready=False))
    assert counts(watched.said()) == [(3, 4)]
    watched.lose(node(2))
    assert counts(watched.said()) == []
    watched.pass_time(15)
    assert counts(watched.said()) == [(3, 3)]


def test_a_count_after_a_loss_is_newer_than_the_one_before(watched: Watched) -> None:
    watched.see(*(node(number, metadata={"resourceVersion": str(40 + number)}) for number in range(4)))
    (before,) = (fact for fact in watched.said() if isinstance(fact, HostsChanged))
    watched.lose(node(3), version=60)
    (after,) = (fact for fact in watched.said() if isinstance(fact, HostsChanged))
    assert (before.sequence, after.sequence) == (43, 60)


def test_a_list_from_a_server_that_lags_does_not_turn_the_sequence_back(watched: Watched) -> None:
    watched.see(node(0, metadata={"resourceVersion": "60"}))
    watched.said()
    watched.relist(Kind.HOSTS, version=50)
    watched.pass_time(15)
    (fact,) = (fact for fact in watched.said() if isinstance(fact, HostsChanged))
    assert (fact.joined, fact.sequence) == (0, 60)


def test_a_host_missing_from_a_new_list_is_gone(watched: Watched) -> None:
    watched.see(*nodes(4))
    watched.said()
    watched.relist(Kind.HOSTS, *nodes(3), version=500)
    (fact,) = (fact for fact in watched.said() if isinstance(fact, HostsChanged))
    assert (fact.usable, fact.joined, fact.sequence) == (3, 3, 500)


def test_a_pool_without_hosts_is_reported_once_and_never_whole(watched: Watched) -> None:
    single = nodes(1, labels={"cloud.google.com/gke-tpu-topology": "2x2x1"})
    watched.see(*single)
    assert counts(watched.said()) == [(1, 1)]
    watched.lose(single[0])
    assert counts(watched.said()) == [(0, 0)]
    watched.pass_time(1000)
    assert counts(watched.said()) == []


def test_a_count_is_said_again_every_five_minutes(watched: Watched) -> None:
    watched.see(*nodes(1))
    watched.said()
    watched.pass_time(300)
    assert counts(watched.said()) == [(1, 1)]


def test_attempts_are_counted_apart(watched: Watched) -> None:
    watched.see(node(0, attempt=1), node(0, attempt=2), node(1, attempt=2))
    facts = [fact for fact in watched.said() if isinstance(fact, HostsChanged)]
    assert sorted((fact.attempt, fact.joined) for fact in facts) == [(1, 1), (2, 2)]


def test_hosts_without_a_topology_are_all_when_each_is_usable(watched: Watched) -> None:
    unlabelled: dict[str, Any] = {"labels": {"cloud.google.com/gke-tpu-topology": None}}
    watched.see(node(0, **unlabelled), node(1, ready=False, **unlabelled))
    watched.said()
    watched.see(node(1, **unlabelled))
    assert counts(watched.said()) == [(2, 2)]
