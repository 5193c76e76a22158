"""Each example with an answer of `slices plan` at its top gets that answer, and each answer has an example."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examples.answers import EXAMPLES, PLANNED, REFUSED, answers, planned, promised, reasons
from tests.examples.texts import has, texts_of
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices_cli import placeholders
from tpu_slices_cli.applied import caveats, creation, gangs, queues, waits
from tpu_slices_cli.plan import INVALID
from tpu_slices_cli.plan import REFUSED as A_JOB_REFUSED
from tpu_slices_cli.skipping import SkipReason

NO_MANIFEST = {
    Reason.PURCHASES_STOPPED: "an operator has to confirm what is missing",
    Reason.CHIP_LIMIT_REACHED: "others hold the chips",
    Reason.PODS_NOT_PINNED: "the cluster pins no pods",
    Reason.CLUSTER_RETIRED: "the cluster buys nothing any more",
    Reason.LEADER_UNSCHEDULABLE: "the slice was ready first",
    Reason.PODS_DID_NOT_RUN: "the slice was ready first",
    SkipReason.ENDED: "it has run",
    SkipReason.REQUESTS_NO_TPU: "nothing is refused",
}
"""Reasons that no manifest has by itself, and why."""
TELLING = (creation, queues, waits, caveats, gangs, placeholders)
"""What warns of manifests, or finds them invalid."""
NO_EXAMPLE = {
    "… … of its … slices … refused, so that none is made": "an example is planned or refused as a whole",
    "…: nothing holds its pods until all of its slices stand, as neither the admission policy nor the webhook is in "
    "force: they start as slices come (GangNotHeld). Have the operator of the cluster apply one, or add … to its pod "
    "templates": "that neither is in force is known of clusters that have a relay",
    "no zone": "each accelerator that has rows of zones is offered in one",
    "LocalQueue …, or what it leads to": "Kueue's webhook would not take such a queue",
    "line … has the placeholder …: fill it in first…": "the file is no YAML before",
}
"""Texts of these that no example has, and why."""


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_gets_the_answer_that_it_promises(example: Path) -> None:
    code, plan = planned(example)
    assert " ".join(answers(plan)) == promised(example)
    assert code == (INVALID if plan["invalid"] else A_JOB_REFUSED if any(map(_is_refused, plan["slices"])) else 0)


@pytest.mark.parametrize("example", REFUSED, ids=lambda example: example.stem)
def test_an_example_of_a_refusal_has_one_answer_and_nothing_else(example: Path) -> None:
    _, plan = planned(example)
    assert list(answers(plan)) == [f"{reason}: {message}" for reason, message in reasons(plan)]
    assert len(reasons(plan)) == 1


def test_there_is_an_example_of_each_refusal() -> None:
    refusals = {*(reason for reason in Reason if reason.phase is Phase.REFUSED), *SkipReason}
    assert {reason for each in REFUSED for reason, _ in reasons(planned(each)[1])} == refusals - NO_MANIFEST.keys()


def test_nothing_that_is_planned_is_refused() -> None:
    assert [each.stem for each in PLANNED if reasons(planned(each)[1])] == []


def test_there_is_an_example_of_each_warning_and_of_all_that_is_invalid() -> None:
    told = [answer for each in EXAMPLES for answer in answers(planned(each)[1])]
    texts = [*texts_of(TELLING)]
    assert len(texts) > 40
    assert {text for text in texts if not any(has(each, text) for each in told)} == NO_EXAMPLE.keys()


def _is_refused(planned_slice: dict[str, object]) -> bool:
    return planned_slice["refused"] is not None
