"""The text and the remedy for each reason."""

import re

import pytest

from tests.builders import a_record, a_spec
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import SliceSpec
from tpu_slices.domain.reporting.reason_texts import REASON_TEXTS, reason_text


def test_every_reason_has_a_text() -> None:
    assert set(REASON_TEXTS) == set(Reason)


@pytest.mark.parametrize("reason", Reason)
@pytest.mark.parametrize("spec", [a_spec(), None], ids=["known", "not known"])
def test_a_text_can_follow_the_names_of_slices_and_has_no_gap(reason: Reason, spec: SliceSpec | None) -> None:
    record = a_record(reason=reason, message="GKE said so.", spec=spec)
    text = reason_text(record, reason).message
    assert not re.search(r"[{}]|\bNone\b|  ", text)
    assert not text.endswith((".", " ", ":"))


@pytest.mark.parametrize("reason", Reason)
def test_every_remedy_begins_with_a_capital_and_ends_with_a_period(reason: Reason) -> None:
    remedy = REASON_TEXTS[reason].remedy
    assert remedy[0].isupper()
    assert remedy.endswith(".")
