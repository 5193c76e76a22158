"""What is refused in a self-managed cluster, because only node pools of GKE can have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.builders import a_request, self_managed
from tests.domain.asking import FLEX, refusal_of, selecting, spec_of
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.planning.host_labels import ACCELERATOR, PLACEMENT_POLICY, TOPOLOGY

COMPUTE: Mapping[str, Any] = {"path": self_managed().path, "pools": self_managed().pools}
TPU7X: Mapping[str, str] = {ACCELERATOR: "tpu7x", TOPOLOGY: "2x2x2", PLACEMENT_POLICY: "theirs"}
WITH_POLICY = a_request("tpu7x", "2x2x2", node_selector=tuple(TPU7X.items()))


def test_flex_start_is_refused_with_what_is_possible() -> None:
    refusal = refusal_of(FLEX, **COMPUTE)
    assert refusal.reason is Reason.DOES_NOT_FIT
    assert 'cloud.google.com/gke-flex-start: the pods select "true"' in refusal.message
    assert "remove the selector" in refusal.message


def test_a_workload_policy_of_a_tenant_is_refused() -> None:
    refusal = refusal_of(WITH_POLICY, **COMPUTE)
    assert 'placement-policy-name: the pods select "theirs"' in refusal.message


@pytest.mark.parametrize("selector", [{}, {"cloud.google.com/gke-spot": "true"}])
def test_what_both_can_have_leads_to_the_same_spec(selector: Mapping[str, str]) -> None:
    assert spec_of(selecting(selector), **COMPUTE) == spec_of(selecting(selector))
