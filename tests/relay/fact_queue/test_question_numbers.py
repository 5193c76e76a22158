"""Which question about a pool's hosts counts, by its number, and what others are told: late, doubled, once more."""

from collections.abc import Sequence

import pytest

from relay.hosts.closing import CLOSED
from relay.objects import Kind
from tests.relay.closing import SLICE, Site, closed_site, leader
from tpu_slices.domain.model.facts import HostsChanged
from tpu_slices.domain.records.hosts import MOST_BELIEVED

CLOSE_OR_OPEN = pytest.mark.parametrize("close", [True, False], ids=["close", "open"])
OPEN = (False, None)


def told(facts: Sequence[HostsChanged]) -> list[tuple[int, int | None, int]]:
    """Return of each report how many hosts are closed, the number of what it answers, and the highest."""
    return [(fact.closed, fact.answers, fact.highest) for fact in facts]


def cordoned_for(site: Site, text: str, *numbers: int) -> None:
    """Let hosts be cordoned, with this text as our annotation."""
    site.join(*numbers, metadata={"annotations": {CLOSED: text}}, spec={"unschedulable": True})
    site.reports()


# beside the latest question


@CLOSE_OR_OPEN
def test_a_question_that_counts_no_more_is_told_the_highest_number_at_once(close: bool) -> None:
    site = closed_site(number=3)
    assert told(site.ask(close=close, number=2)) == [(4, None, 3)]
    assert [*site.needed(), *site.after(60)] == []
    site.ask(close=False, number=4)
    site.patch()
    site.reports()
    assert told(site.ask(close=close, number=1)) == [(0, None, 4)]
    assert [*site.needed(), *site.after(60)] == []


@CLOSE_OR_OPEN
def test_the_hosts_of_the_latest_question_go_on_being_closed_when_an_earlier_one_comes(site: Site, close: bool) -> None:
    assert site.ask(number=3) == []
    assert told(site.ask(close=close, number=2)) == [(0, None, 3)]
    assert len(site.patch()) == 4
    assert site.ours() == dict.fromkeys("0123", (True, "3"))
    assert told(site.after(5)) == [(4, 3, 3)]


@CLOSE_OR_OPEN
def test_the_hosts_of_the_latest_question_go_on_being_opened_when_an_earlier_one_comes(close: bool) -> None:
    site = closed_site()
    site.ask(close=False, number=3)
    assert told(site.ask(close=close, number=2)) == [(4, None, 3)]
    assert len(site.patch()) == 4
    assert site.ours() == dict.fromkeys("0123", OPEN)
    assert told(site.reports()) == [(0, 3, 3)]


@pytest.mark.parametrize("number", [1, 2])
def test_hosts_are_opened_by_a_later_question_only(number: int) -> None:
    site = closed_site(number=2)
    site.ask(close=False, number=number)
    assert site.needed() == []
    site.ask(close=False, number=3)
    assert len(site.needed()) == 4


def test_the_number_of_the_latest_counts_no_more_for_another_kind_of_question_which_is_told_to_ask_by_another() -> None:
    site = closed_site()
    assert told(site.ask(close=False)) == [(4, None, 2)]
    assert site.needed() == []


def test_open_hosts_are_not_closed_by_the_number_that_opened_them(site: Site) -> None:
    assert told(site.ask(close=False)) == [(0, 1, 1)]
    assert told(site.ask()) == [(0, None, 2)]
    assert [*site.needed(), *site.after(60)] == []


def test_an_earlier_question_closes_no_hosts_that_the_latest_left_open(site: Site) -> None:
    site.watched.see(leader())
    site.reports()
    assert [fact.answers for fact in site.ask(number=2)] == [2]
    site.watched.lose(leader())
    site.after(5)
    assert told(site.ask(number=1)) == [(0, None, 2)]
    assert [*site.needed(), *site.after(60)] == []


def test_an_earlier_question_does_not_close_again_what_somebody_opened(site: Site) -> None:
    site.ask(number=2)
    site.patch()
    site.reports()
    site.cordon(1, cordoned=False)
    site.ask(number=1)
    assert site.needed() == []


def test_an_earlier_question_leaves_the_latest_one_the_time_that_it_had(site: Site) -> None:
    site.ask(number=2)
    site.after(40)
    assert told(site.ask()) == [(0, None, 2)]
    assert [fact.answers for fact in site.after(20)] == [2]


def test_a_question_that_comes_twice_out_of_order_is_told_twice_that_it_counts_no_more() -> None:
    site = closed_site(number=3)
    for number in (1, 2, 1):
        assert told(site.ask(number=number)) == [(4, None, 3)]
    assert told(site.ask(number=3)) == [(4, 3, 3)]


def test_numbers_may_be_left_out(site: Site) -> None:
    site.ask(number=7)
    site.patch()
    assert told(site.after(5)) == [(4, 7, 7)]
    assert site.ask(close=False, number=100) == []
    assert len(site.patch()) == 4
    assert told(site.reports()) == [(0, 100, 100)]


def test_whoever_asks_by_numbers_that_were_used_already_is_answered_by_the_next_that_is_told() -> None:
    """As the functions do if their database was set back."""
    site = closed_site(number=3)
    site.ask(close=False, number=4)
    site.patch()
    site.reports()
    (fact,) = site.ask(number=2)
    assert (fact.answers, fact.highest) == (None, 4)
    assert site.ask(number=fact.highest + 1) == []
    assert len(site.patch()) == 4
    assert told(site.after(5)) == [(4, 5, 5)]


def test_what_is_told_of_hosts_without_a_question_has_the_highest_number_too(site: Site) -> None:
    site.cordon(0)
    assert told(site.after(15)) == [(1, None, 0)]
    site.ask(close=False, number=6)
    site.leave(3)
    assert [fact.highest for fact in site.after(15)] == [6]


def test_a_question_that_counts_no_more_is_told_so_after_a_watch_was_interrupted() -> None:
    site = closed_site(number=3)
    site.watched.queue.failed(Kind.LEADERS)
    assert site.ask(number=2) == []
    site.watched.relist(Kind.LEADERS)
    assert told(site.reports()) == [(4, None, 3)]


# after a restart


def test_a_relay_that_restarts_knows_closed_hosts_by_their_annotation() -> None:
    site = closed_site()
    site.restart()
    assert [fact.closed for fact in site.reports()] == [0]
    assert [fact.closed for fact in site.after(5)] == [4]
    assert told(site.ask()) == [(4, 1, 1)]
    site.ask(close=False, number=2)
    assert len(site.patch()) == 4


@CLOSE_OR_OPEN
def test_after_a_restart_an_earlier_question_is_told_the_highest_number_of_the_nodes(close: bool) -> None:
    site = closed_site(number=3)
    site.restart()
    site.after(5)
    assert told(site.ask(close=close, number=2)) == [(4, None, 3)]
    site.join(4, 5)
    assert site.needed() == []
    assert told(site.reports()) == [(4, None, 3)]


def test_after_a_restart_the_question_that_hosts_were_closed_for_closes_those_that_joined_since() -> None:
    site = closed_site(number=3)
    site.restart()
    site.join(4, 5)
    site.after(5)
    assert site.ask(number=3) == []
    assert sorted(site.patch()) == [f"{SLICE}-1-4", f"{SLICE}-1-5"]
    assert told(site.after(5)) == [(6, 3, 3)]


def test_after_a_restart_hosts_are_opened_by_the_number_that_they_were_closed_for() -> None:
    """The functions use it twice if their database was set back."""
    site = closed_site(number=3)
    site.restart()
    site.after(5)
    assert site.ask(close=False, number=3) == []
    assert len(site.patch()) == 4
    assert told(site.reports()) == [(0, 3, 3)]


def test_after_a_restart_the_highest_number_is_that_of_any_node(site: Site) -> None:
    cordoned_for(site, "2", 0, 1)
    cordoned_for(site, "10", 2)
    site.restart()
    site.after(5)
    assert told(site.ask(number=9)) == [(3, None, 10)]
    assert site.needed() == []
    site.ask(number=10)
    assert site.patch() == [f"{SLICE}-1-3"]
    assert told(site.after(5)) == [(4, 10, 10)]


def test_after_a_restart_hosts_that_are_open_tell_no_number(site: Site) -> None:
    """Nothing is known of what was asked: the functions go on with the number that they have on record."""
    site.ask(close=False, number=3)
    site.restart()
    assert [fact.highest for fact in site.reports()] == [0]
    assert told(site.ask(close=False, number=2)) == [(0, 2, 2)]


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
    assert told(site.reports() + site.after(5))[-1] == (4, 1, 1)


# what another relay, or somebody else, wrote into the annotation


def test_hosts_that_another_relay_closed_for_a_later_question_are_not_opened(site: Site) -> None:
    site.ask(close=False)
    cordoned_for(site, "3", 0, 1, 2, 3)
    assert site.needed() == []
    assert told(site.after(5)) == [(4, None, 3)]
    assert told(site.ask(close=False, number=2)) == [(4, None, 3)]
    assert site.needed() == []


NO_NUMBERS = (
    *("", "soon", "2026-11-01T12:00:00", "-1", "+1", "1.0", "1_0", " 1", "1\n", "\N{ARABIC-INDIC DIGIT ONE}"),
    *("9" * 5_000, str(MOST_BELIEVED + 1)),
)


@pytest.mark.parametrize("text", NO_NUMBERS, ids=lambda text: ascii(text[:20]))
def test_a_host_whose_annotation_is_no_number_is_ours_of_before_the_first_question(site: Site, text: str) -> None:
    cordoned_for(site, text, 0)
    site.ask(close=False)
    assert site.patch() == [f"{SLICE}-1-0"]
    assert site.ours()["0"] == OPEN


def test_the_highest_number_that_is_believed_is_told() -> None:
    site = Site()
    cordoned_for(site, str(MOST_BELIEVED), 0)
    assert told(site.ask(close=False)) == [(0, None, MOST_BELIEVED)]
    assert site.needed() == []
