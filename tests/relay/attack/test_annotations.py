"""What whoever owns a node, and nothing else, may write into its annotations."""

from __future__ import annotations

from relay.closing import CLOSED
from tests.builders import NOW
from tests.relay.closing import Site


def test_a_time_that_no_clock_shows_is_that_of_no_question() -> None:
    site = Site()
    annotations = {CLOSED: "9999-12-31T23:59:59.999999+00:00"}
    site.join(0, metadata={"annotations": annotations}, spec={"unschedulable": True})
    site.ask()
    site.patch()
    assert [fact.answers for fact in site.after(5)] == [NOW]
