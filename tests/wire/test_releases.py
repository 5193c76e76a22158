"""Two releases in a row read each other's records and messages: after a rollback, and while one is rolled out."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.builders import a_record
from tests.wire.shapes import problems, shapes
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.wire.documents import decode, encode

RELEASED = json.loads((Path(__file__).parent / "released.json").read_text())


def test_the_last_release_and_this_code_read_each_other() -> None:
    """Else raise `documents.SCHEMA` or `messages.VERSION`, say so in the changelog, and write released.json anew."""
    assert list(problems(RELEASED, shapes())) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda now: now["Slot"]["properties"].update(rack={"type": "string"}), None),
        (lambda now: now["Reason"]["enum"].append("Tired"), None),
        (lambda now: now.update(Greeting={"type": "object"}), None),
        (lambda now: now["Slot"]["properties"].pop("number"), "Slot.number is not written any more"),
        (lambda now: now["Slot"]["required"].append("rack"), "Slot.rack is new, and has no default"),
        (
            lambda now: now["Slot"]["properties"].update(number={"type": "string"}),
            "Slot.number has another type",
        ),
        (lambda now: now["Phase"]["enum"].append("TIRED"), "Phase TIRED is new"),
        (lambda now: now["Reason"]["enum"].remove("Ready"), "Reason Ready is gone"),
        (lambda now: now.pop("Slot"), "Slot is gone"),
    ],
)
def test_a_change_that_one_of_them_cannot_read_is_found(
    change: Callable[[dict[str, Any]], object], problem: str | None
) -> None:
    now = copy.deepcopy(RELEASED)
    change(now)
    assert list(problems(RELEASED, now)) == ([problem] if problem else [])


def test_a_slice_with_a_reason_of_a_later_release_is_read_and_decided_again() -> None:
    document = encode(a_record())
    document["reason"] = "TooTired"
    document["transitions"] = [{**each, "reason": "TooTired"} for each in document["transitions"]]
    record = decode(SliceRecord, document)
    assert record.reason is Reason.LATER_RELEASE
    assert {each.reason for each in record.transitions} <= {Reason.LATER_RELEASE}
    assert record.phase is a_record().phase
