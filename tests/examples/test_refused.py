"""Each example of a refusal gets the answer from `slices plan` that stands at its top, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.examples.cluster import SETTINGS
from tests.examples.refused import EXAMPLES, answer_of
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices_cli.app import main
from tpu_slices_cli.skipping import SkipReason

NO_MANIFEST = {
    Reason.PURCHASES_STOPPED: "an operator has to confirm what is missing",
    Reason.CHIP_LIMIT_REACHED: "others hold the chips",
    Reason.PODS_NOT_PINNED: "the cluster pins no pods",
    Reason.CLUSTER_RETIRED: "the cluster buys nothing any more",
    Reason.LEADER_UNSCHEDULABLE: "the slice was ready first",
    SkipReason.ENDED: "it has run",
    SkipReason.REQUESTS_NO_TPU: "nothing is refused",
}
"""Reasons that no manifest has by itself, and why."""


def planned(example: Path) -> tuple[int, dict[str, Any]]:
    asked = ("plan", "-f", str(example), "--cluster", str(SETTINGS), "-o", "json")
    result = CliRunner().invoke(main, asked, prog_name="slices")
    return result.exit_code, json.loads(result.stdout)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_of_a_refusal_gets_the_answer_that_it_promises(example: Path) -> None:
    code, plan = planned(example)
    refused = [each["refused"] for each in plan["slices"]]
    answers = [(each["reason"], each["message"]) for each in (*refused, *plan["skipped"])]
    assert set(answers) == {answer_of(example)}
    assert (plan["invalid"], plan["warnings"]) == ([], [])
    assert code == (3 if refused else 0)


def test_there_is_an_example_of_each_refusal() -> None:
    refusals = {*(reason for reason in Reason if reason.phase is Phase.REFUSED), *SkipReason}
    assert {answer_of(example)[0] for example in EXAMPLES} == refusals - NO_MANIFEST.keys()
