"""The words for each reason, as prose."""

import re

import pytest

from tests.builders import a_record, a_spec
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import SliceSpec
from tpu_slices.domain.reporting.reason_texts import REASON_TEXTS, reason_text


def test_there_are_words_for_every_reason() -> None:
    assert set(REASON_TEXTS) == set(Reason)


@pytest.mark.parametrize("reason", Reason)
@pytest.mark.parametrize("spec", [a_spec(), None], ids=["known", "not known"])
def test_what_is_said_goes_on_from_the_names_of_slices_and_leaves_no_gap(
    reason: Reason, spec: SliceSpec | None
) -> None:
    record = a_record(reason=reason, message="GKE said so.", spec=spec)
    said = reason_text(record, reason).message
    assert not re.search(r"[{}]|\bNone\b|  ", said)
    assert not said.endswith((".", " ", ":"))


@pytest.mark.parametrize("reason", Reason)
def test_what_can_be_done_is_said_in_whole_sentences(reason: Reason) -> None:
    remedy = REASON_TEXTS[reason].remedy
    assert remedy[0].isupper()
    assert remedy.endswith(".")
