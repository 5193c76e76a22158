from typing import Any

import pytest

from relay.objects import Kind
from tests.relay.objects import node
from tests.relay.watched import Watched, counts, nodes, reports

OTHERS = 2
"""The versions of the watches of JobSets and leaders, together."""


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
    (before,) = reports(watched.due_facts())
    watched.lose(node(3), version=60)
    (after,) = reports(watched.due_facts())
    assert (before.sequence, after.sequence) == (43 + OTHERS, 60 + OTHERS)


@pytest.mark.parametrize("kind", [Kind.JOBSETS, Kind.LEADERS])
def test_every_watch_raises_the_sequence_and_none_lowers_it(watched: Watched, kind: Kind) -> None:
    watched.see(node(0))
    (before,) = reports(watched.due_facts())
    for version in ("90", "80", "not a number"):
        watched.queue.bookmarked(kind, version, watched.now)
    watched.pass_time(300)
    (after,) = reports(watched.due_facts())
    assert (before.sequence, after.sequence) == (30 + OTHERS, 30 + 90 + 1)


def test_a_list_from_a_lagging_server_does_not_lower_the_sequence(watched: Watched) -> None:
    watched.see(node(0, metadata={"resourceVersion": "60"}))
    watched.due_facts()
    watched.relist(Kind.HOSTS, version=50)
    watched.pass_time(15)
    (fact,) = reports(watched.due_facts())
    assert (fact.joined, fact.sequence) == (0, 60 + OTHERS)


def test_a_host_missing_from_a_new_list_is_gone(watched: Watched) -> None:
    watched.see(*nodes(4))
    watched.due_facts()
    watched.relist(Kind.HOSTS, *nodes(3), version=500)
    (fact,) = reports(watched.due_facts())
    assert (fact.usable, fact.joined, fact.sequence) == (3, 3, 500 + OTHERS)


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
    facts = reports(watched.due_facts())
    assert sorted((fact.attempt, fact.joined) for fact in facts) == [(1, 1), (2, 2)]


def test_without_a_topology_the_last_usable_host_is_reported_at_once(watched: Watched) -> None:
    unlabelled: dict[str, Any] = {"labels": {"cloud.google.com/gke-tpu-topology": None}}
    watched.see(node(0, **unlabelled), node(1, ready=False, **unlabelled))
    watched.due_facts()
    watched.see(node(1, **unlabelled))
    assert counts(watched.due_facts()) == [(2, 2)]


def cordoned(count: int) -> list[dict[str, Any]]:
    return nodes(count, spec={"unschedulable": True})


def test_cordoned_hosts_are_closed_once_pods_under_way_have_arrived(watched: Watched) -> None:
    watched.see(*nodes(4))
    watched.due_facts()
    watched.see(*cordoned(4))
    (fact,) = reports(watched.due_facts())
    assert (fact.usable, fact.joined, fact.closed) == (0, 4, 0)
    watched.pass_time(4)
    watched.see(*cordoned(4))
    assert reports(watched.due_facts()) == []
    watched.pass_time(1)
    (fact,) = reports(watched.due_facts())
    assert (fact.usable, fact.joined, fact.closed) == (0, 4, 4)


def test_a_pool_is_closed_when_its_last_host_is(watched: Watched) -> None:
    watched.see(*cordoned(3), node(3))
    watched.pass_time(4)
    watched.due_facts()
    watched.see(*cordoned(4))
    watched.pass_time(4)
    assert [fact.closed for fact in reports(watched.due_facts())] == []
    watched.pass_time(1)
    assert [fact.closed for fact in reports(watched.due_facts())] == [4]


def test_an_open_host_that_joins_a_closed_pool_is_reported_at_once(watched: Watched) -> None:
    watched.see(*cordoned(3))
    watched.pass_time(5)
    watched.due_facts()
    watched.see(node(3))
    assert [(fact.joined, fact.closed) for fact in reports(watched.due_facts())] == [(4, 3)]


def test_a_host_that_is_cordoned_again_settles_again(watched: Watched) -> None:
    watched.see(*cordoned(1))
    watched.pass_time(4)
    watched.see(node(0))
    watched.see(*cordoned(1))
    watched.pass_time(4)
    assert [fact.closed for fact in reports(watched.due_facts())] == [0]
    watched.pass_time(1)
    assert [fact.closed for fact in reports(watched.due_facts())] == [1]


def test_a_closed_host_that_is_gone_is_not_counted(watched: Watched) -> None:
    watched.see(*cordoned(1))
    watched.due_facts()
    watched.lose(node(0))
    assert counts(watched.due_facts()) == [(0, 0)]
    watched.pass_time(300)
    assert reports(watched.due_facts()) == []
