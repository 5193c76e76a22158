from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.builders import MINUTE, NOW, a_record, a_spec
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.transitions import HISTORY, Transition
from tpu_slices.domain.reporting.waited import waited

STOCK = f"stock of {a_spec().accelerator} {a_spec().topology} in {a_spec().zone}"
MADE = [(Reason.CREATION_STARTED, 4), (Reason.HOSTS_JOINING, 3), (Reason.READY, 0)]


def after(*told: tuple[Reason, int], count: int = 0) -> SliceRecord:
    """Return the record of a slice that had each reason for so many minutes."""
    at, transitions = NOW, list[Transition]()
    for reason, minutes in told:
        phase = reason.phase or Phase.QUEUED
        transitions.append(Transition(at=at, phase=phase, reason=reason, message=""))
        at += minutes * MINUTE
    last, kept = transitions[-1], tuple(transitions[-HISTORY:])
    made = replace(a_record(), phase=last.phase, reason=last.reason, since=last.at)
    return replace(made, transitions=kept, transition_count=len(transitions) + count)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([(Reason.REQUESTED, 0), *MADE], "7 min: 4 min for its creation, 3 min for its hosts to join"),
        ([(Reason.REQUESTED, 0), (Reason.HOSTS_JOINING, 1), (Reason.READY, 0)], ""),
        (
            [(Reason.LET_GO_WITH_GANG, 10), *MADE],
            "17 min: 10 min for its gang to be tried again, 4 min for its creation, 3 min for its hosts to join",
        ),
        (
            [(Reason.STOCKOUT, 10), *MADE],
            f"17 min: 10 min for {STOCK}, 4 min for its creation, 3 min for its hosts to join",
        ),
        (
            [(Reason.CREATION_STARTED, 20), (Reason.STOCKOUT, 10), *MADE],
            f"37 min: 30 min for {STOCK}, 4 min for its creation, 3 min for its hosts to join",
        ),
        ([(Reason.RELEASED, 500), *MADE], "7 min: 4 min for its creation, 3 min for its hosts to join"),
        (
            [*MADE, (Reason.PODS_NOT_RUNNING, 9), (Reason.READY, 0)],
            "7 min: 4 min for its creation, 3 min for its hosts to join",
        ),
        ([*MADE, (Reason.HOSTS_LOST, 5), (Reason.READY, 0)], "5 min: 5 min for hosts that were lost"),
        ([(Reason.STOCKOUT, 10)], ""),
        ([(Reason.READY, 0)], ""),
    ],
)
def test_the_last_wait_is_told_with_what_it_was_for(told: Sequence[tuple[Reason, int]], expected: str) -> None:
    assert waited(after(*told)) == expected


def test_of_a_wait_whose_beginning_is_not_kept_it_is_told_how_long_it_was_at_least() -> None:
    assert waited(after((Reason.STOCKOUT, 90), *MADE, count=7)).startswith("at least 1 h 37 min: ")


@pytest.mark.parametrize(
    "reason", [each for each in Reason if each.phase not in {Phase.READY, Phase.GONE, Phase.RELEASING}]
)
def test_every_wait_has_words(reason: Reason) -> None:
    assert waited(after((reason, 5), (Reason.READY, 0))).startswith("5 min: 5 min for ")
