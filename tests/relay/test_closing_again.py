"""Questions about hosts that are late, doubled or out of order, and relays that restart or lose a watch meanwhile."""

import pytest

from relay.closing import CLOSED
from relay.node_patches import needed_patches
from relay.objects import Kind
from tests.builders import NOW
from tests.relay.closing import SECOND, SLICE, Site, closed_site, leader


def test_an_older_question_is_ignored() -> None:
    site = closed_site()
    assert site.ask(close=False, at=-1) == []
    assert site.needed() == []
    site.ask(close=False, at=2)
    site.patch()
    site.reports()
    assert site.ask(close=True, at=1) == []
    assert site.needed() == []


def test_a_repeated_question_is_answered_again() -> None:
    site = closed_site()
    for _ in range(2):
        (fact,) = site.ask()
        assert (fact.closed, fact.answers) == (4, NOW)


def test_a_repeated_question_is_answered_no_later_than_the_first(site: Site) -> None:
    site.ask()
    site.after(40)
    site.ask()
    assert [fact.answers for fact in site.after(20)] == [NOW]
    assert [fact.answers for fact in site.ask()] == [NOW]


def test_only_the_latest_of_two_questions_is_answered(site: Site) -> None:
    site.ask()
    site.ask(at=1)
    site.patch()
    assert [fact.answers for fact in site.after(5)] == [NOW + SECOND]


def test_a_relay_that_restarts_knows_closed_hosts_by_their_annotation() -> None:
    site = closed_site()
    site.restart()
    assert [fact.closed for fact in site.reports()] == [0]
    assert [fact.closed for fact in site.after(5)] == [4]
    assert [(fact.closed, fact.answers) for fact in site.ask()] == [(4, NOW)]
    site.ask(close=False, at=1)
    assert len(site.patch()) == 4


def test_a_relay_that_restarts_ignores_questions_older_than_the_annotation() -> None:
    site = closed_site()
    site.restart()
    site.after(5)
    assert site.ask(close=False, at=-1) == []
    assert site.needed() == []


def test_closing_that_a_restart_interrupted_goes_on_when_it_is_asked_for_again(site: Site) -> None:
    site.ask()
    half = [{**made, "metadata": dict(made["metadata"])} for made in list(site.nodes.values())[:2]]
    site.patch()
    site.nodes.update({made["metadata"]["name"]: made for made in half})
    site.restart()
    assert [fact.closed for fact in site.reports() + site.after(15)] == [0, 2]
    assert site.needed() == []
    assert site.ask() == []
    assert len(site.patch()) == 2
    assert [(fact.closed, fact.answers) for fact in site.reports() + site.after(5)][-1] == (4, NOW)


@pytest.mark.parametrize("text", ["soon", "2026-11-01T12:00:00"])
def test_a_host_whose_annotation_cannot_be_read_is_opened_too(text: str) -> None:
    site = Site()
    site.join(0, metadata={"annotations": {CLOSED: text}}, spec={"unschedulable": True})
    site.ask(close=False)
    assert site.patch() == [f"{SLICE}-1-0"]


def test_nothing_is_answered_while_a_watch_is_interrupted() -> None:
    """Somebody may be on the hosts by now."""
    site = closed_site()
    site.watched.queue.failed(Kind.LEADERS)
    assert site.ask() == []
    site.watched.queue.bookmarked(Kind.HOSTS, "1", site.watched.now)
    assert site.reports() == []
    site.watched.relist(Kind.LEADERS, leader())
    (fact,) = site.reports()
    assert ([each.pod_uid for each in fact.occupants], fact.answers) == (["pod-0"], NOW)


def test_a_host_that_somebody_opened_is_not_closed_again_for_the_same_question() -> None:
    """Another relay may have been asked to open it, or a person needs it."""
    site = closed_site()
    site.cordon(2, cordoned=False)
    site.join(3)
    assert site.needed() == []
    assert [fact.closed for fact in site.reports()] == [2]
    site.ask(at=1)
    assert len(site.patch()) == 2


def test_hosts_that_were_just_opened_as_asked_are_closed_when_that_is_asked_again() -> None:
    site = closed_site()
    site.ask(close=False, at=1)
    patches = needed_patches(site.watched.queue.cache, site.watched.queue.closing)
    site.ask(at=2)
    site.apply(patches)
    assert len(site.patch()) == 4


def test_a_question_is_answered_although_somebody_opens_the_hosts(site: Site) -> None:
    site.ask()
    site.patch()
    site.cordon(2, cordoned=False)
    assert site.answers() == [None]
    assert [(fact.closed, fact.answers) for fact in site.after(60)] == [(3, NOW)]


def test_hosts_that_another_relay_closed_for_a_later_question_are_not_opened(site: Site) -> None:
    site.ask(close=False)
    for number in range(4):
        annotations = {CLOSED: (NOW + SECOND).isoformat()}
        site.join(number, metadata={"annotations": annotations}, spec={"unschedulable": True})
    assert site.needed() == []
