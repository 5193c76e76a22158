"""How long a Job is to run, as its workload says."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.builders import a_request
from tests.domain.asking import outcome, spec_of
from tpu_slices.domain.model.capacity import EXPECTED_DURATION
from tpu_slices.domain.model.facts import TemplateRequest
from tpu_slices.domain.records.claims import Refusal


def saying(lasts: str) -> TemplateRequest:
    return a_request(requested_annotations=((EXPECTED_DURATION, lasts),))


@pytest.mark.parametrize(("text", "hours"), [("90m", 1.5), ("12h", 12), ("2d", 48)])
def test_it_is_kept_with_the_slice(text: str, hours: float) -> None:
    assert spec_of(saying(text)).expected == timedelta(hours=hours)


def test_a_slice_serves_whatever_it_says() -> None:
    plain = spec_of(a_request())
    assert plain.expected is None
    assert spec_of(saying("12h")).fingerprint == plain.fingerprint


@pytest.mark.parametrize("text", ["soon", "0s", "400d", "", "9" * 64])
def test_what_is_no_duration_is_refused_with_the_remedy(text: str) -> None:
    refused = outcome(saying(text))
    assert isinstance(refused, Refusal)
    assert f"{EXPECTED_DURATION}: " in refused.message
    assert "write it as 90m, 12h or 2d" in refused.message
