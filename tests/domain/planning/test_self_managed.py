"""What is refused in a self-managed cluster, because only node pools of GKE can have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.builders import a_job, a_leader, a_request, self_managed
from tests.domain.asking import FLEX, refusal_of, selecting, spec_of
from tpu_slices.domain.catalogue.accelerators import CATALOGUE
from tpu_slices.domain.model.clusters import PoolSettings
from tpu_slices.domain.model.facts import MAX_RUN_DURATION, PROVISIONING_REQUESTS, TemplateRequest
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import LAST_ATTEMPT
from tpu_slices.domain.planning.host_labels import (
    ACCELERATOR,
    GKE_PROVISIONERS,
    RUN_SECONDS,
    TOPOLOGY,
    VARYING,
    host_labels,
)
from tpu_slices.domain.planning.joining import labels_of_host

COMPUTE: Mapping[str, Any] = {"path": self_managed().path, "pools": self_managed().pools}
TPU7X: Mapping[str, str] = {ACCELERATOR: "tpu7x", TOPOLOGY: "2x2x2"}


def of_tpu7x(further: Mapping[str, str], **changes: Any) -> TemplateRequest:
    return a_request("tpu7x", "2x2x2", node_selector=tuple({**TPU7X, **further}.items()), **changes)


SPEC = spec_of(of_tpu7x({}), **COMPUTE)
ON_GKE = host_labels(SPEC, a_job(), PoolSettings(accelerator_network_profile="auto"))
"""The labels of such hosts in a cluster of GKE; of those without a value nobody can select one."""


def test_flex_start_is_refused_with_what_is_possible() -> None:
    refusal = refusal_of(FLEX, **COMPUTE)
    assert refusal.reason is Reason.DOES_NOT_FIT
    assert 'cloud.google.com/gke-flex-start: the pods select "true"' in refusal.message
    assert "remove the selector" in refusal.message


@pytest.mark.parametrize("key", PROVISIONING_REQUESTS)
def test_hosts_of_a_provisioning_request_are_refused_by_its_annotation(key: str) -> None:
    refusal = refusal_of(of_tpu7x({}, requested_annotations=((key, "train"),)), **COMPUTE)
    assert refusal.reason is Reason.DOES_NOT_FIT
    assert f'{key}: the pods consume the ProvisioningRequest "train"' in refusal.message
    assert "remove the annotation" in refusal.message


def test_a_time_after_which_hosts_end_is_refused_without_the_advice_to_use_flex_start() -> None:
    refusal = refusal_of(of_tpu7x({}, requested_annotations=((MAX_RUN_DURATION, "600"),)), **COMPUTE)
    assert refusal.message.endswith("only flex-start hosts end by themselves: remove the annotation.")


@pytest.mark.parametrize("label", [label for label, kind in CATALOGUE.items() if not kind.in_groups])
def test_an_accelerator_without_groups_is_refused_with_those_that_have_them(label: str) -> None:
    refusal = refusal_of(a_request(label, str(CATALOGUE[label].machines[0].single_host or "2x2")), **COMPUTE)
    assert f'{ACCELERATOR}: the pods select "{label}"' in refusal.message
    assert "select tpu-v5p-slice or tpu-v6e-slice or tpu7x or tpu7" in refusal.message


@pytest.mark.parametrize("key", sorted(labels_of_host(a_job(), 1, SPEC, self_managed().pools).keys() - VARYING))
def test_what_every_host_there_has_can_be_selected(key: str) -> None:
    labels = labels_of_host(a_job(), LAST_ATTEMPT, SPEC, self_managed().pools)
    leader = a_leader(node_selector=tuple({**TPU7X, key: labels[key]}.items()))
    assert spec_of(of_tpu7x({}), leader, **COMPUTE).accelerator == "tpu7x"


@pytest.mark.parametrize("key", [*sorted(ON_GKE.keys() - VARYING), *GKE_PROVISIONERS, RUN_SECONDS])
def test_a_label_that_only_hosts_on_gke_have_is_refused_with_the_remedy(key: str) -> None:
    asked = of_tpu7x({key: ON_GKE.get(key, "true")})
    if key in labels_of_host(a_job(), 1, SPEC, self_managed().pools):
        assert spec_of(asked, **COMPUTE) == spec_of(asked)
    else:
        refusal = refusal_of(asked, **COMPUTE)
        assert refusal.reason is Reason.DOES_NOT_FIT
        assert f"{key}: the pod selects" in refusal.message
        assert "in a self-managed cluster" in refusal.message or "of a self-managed cluster" in refusal.message
        assert "remove the selector" in refusal.message


@pytest.mark.parametrize("selector", [{}, {"cloud.google.com/gke-spot": "true"}])
def test_what_both_can_have_leads_to_the_same_spec(selector: Mapping[str, str]) -> None:
    assert spec_of(selecting(selector), **COMPUTE) == spec_of(selecting(selector))
