"""What whoever owns a node, and nothing else, may write into its annotations."""

from __future__ import annotations

import pytest

from relay.hosts.closing import CLOSED
from tests.relay.closing import Site
from tpu_slices.domain.records.hosts import MOST_BELIEVED


def forged(number: str) -> Site:
    """Return a site of which one host is cordoned as if the relay had closed it for the question of this number."""
    site = Site()
    site.join(0, metadata={"annotations": {CLOSED: number}}, spec={"unschedulable": True})
    site.reports()
    return site


@pytest.mark.parametrize("number", [str(MOST_BELIEVED + 1), "9" * 13, "9" * 5_000])
def test_a_number_beyond_belief_is_that_of_no_question(number: str) -> None:
    site = forged(number)
    assert site.ask() == []
    site.patch()
    assert [(fact.answers, fact.highest) for fact in site.after(5)] == [(1, 1)]


def test_the_highest_number_that_is_believed_is_gone_beyond() -> None:
    site = forged(str(MOST_BELIEVED))
    (fact,) = site.ask()
    assert (fact.answers, fact.highest) == (None, MOST_BELIEVED)
    assert site.ask(number=fact.highest + 1) == []
    site.patch()
    assert [(fact.closed, fact.answers) for fact in site.after(5)] == [(4, MOST_BELIEVED + 1)]
    site.ask(close=False, number=MOST_BELIEVED + 2)
    assert len(site.patch()) == 4
