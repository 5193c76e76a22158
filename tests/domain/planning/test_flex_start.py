"""What a request for flex-start leads to."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import a_job, a_request
from tests.domain.asking import FLEX, SHAPE, refusal_of, selecting, spec_of
from tpu_slices.domain.model.clusters import Allowed, Policy
from tpu_slices.domain.model.facts import MAX_RUN_DURATION, PROVISIONING_REQUESTS, TemplateRequest
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import Capacity, CapacityKind
from tpu_slices.domain.planning.host_labels import ACCELERATOR, FLEX_START, RUN_SECONDS, TOPOLOGY, host_labels

WEEK = timedelta(days=7)


def annotated(request: TemplateRequest, **annotations: str) -> TemplateRequest:
    return replace(request, requested_annotations=tuple(annotations.items()))


def running(seconds: str) -> TemplateRequest:
    return annotated(FLEX, **{MAX_RUN_DURATION: seconds})


def test_hosts_of_flex_start_run_for_a_week_and_have_its_label_and_no_taint() -> None:
    spec = spec_of(FLEX)
    assert spec.capacity == Capacity(CapacityKind.FLEX_START, max_run_duration=WEEK)
    assert (host_labels(spec, a_job())[FLEX_START], spec.taints, spec.hosts) == ("true", (), 4)


def test_the_run_duration_is_the_pods_else_that_of_the_settings() -> None:
    day = timedelta(days=1)
    assert spec_of(FLEX, max_run_duration=day).capacity.max_run_duration == day
    assert spec_of(running("600"), max_run_duration=day).capacity.max_run_duration == timedelta(minutes=10)
    assert spec_of(running("604800"), max_run_duration=day).capacity.max_run_duration == WEEK


@pytest.mark.parametrize("seconds", ["599", "604801", "-600", "1h", "", "6e3", "9" * 100, "\u0661" * 4])
def test_a_run_duration_that_gke_does_not_take_is_refused(seconds: str) -> None:
    refusal = refusal_of(running(seconds))
    assert refusal.reason is Reason.DOES_NOT_FIT
    assert f'{MAX_RUN_DURATION}: the pod has "{seconds}", and GKE takes 600 to 604800 seconds' in refusal.message


def test_another_run_duration_is_another_request() -> None:
    assert spec_of(running("600")).fingerprint != spec_of(running("601")).fingerprint


def test_a_run_duration_without_flex_start_is_refused() -> None:
    refusal = refusal_of(annotated(a_request(), **{MAX_RUN_DURATION: "600"}))
    assert f'{MAX_RUN_DURATION}: the pod has "600", and only flex-start hosts end by themselves' in refusal.message


def test_gkes_own_label_for_the_run_duration_is_refused_with_the_annotation_to_use() -> None:
    refusal = refusal_of(selecting({FLEX_START: "true", RUN_SECONDS: "600"}))
    assert f'{RUN_SECONDS}: the pod selects "600"' in refusal.message
    assert MAX_RUN_DURATION in refusal.message


@pytest.mark.parametrize("key", ["cloud.google.com/gke-spot", "cloud.google.com/reservation-name"])
def test_flex_start_excludes_other_capacity_by_key(key: str) -> None:
    refusal = refusal_of(selecting({FLEX_START: "true", key: "true"}))
    assert f'{key}: the pod selects "true", and this slice is not bought that way' in refusal.message


def test_flex_start_is_requested_with_true_only() -> None:
    assert f'{FLEX_START}: the pod selects "false"' in refusal_of(selecting({FLEX_START: "false"})).message


@pytest.mark.parametrize(("accelerator", "topology"), [("tpu-v4-podslice", "2x2x4"), ("tpu-v5-lite-device", "2x2")])
def test_an_accelerator_without_flex_start_is_refused(accelerator: str, topology: str) -> None:
    selector = {**SHAPE, ACCELERATOR: accelerator, TOPOLOGY: topology, FLEX_START: "true"}
    refusal = refusal_of(a_request(accelerator, topology, node_selector=tuple(selector.items())))
    assert f"{FLEX_START}: " in refusal.message
    assert f"GKE has no flex-start for {accelerator}" in refusal.message


def test_hosts_that_are_only_labelled_once_they_are_there_are_refused() -> None:
    refusal = refusal_of(replace(FLEX, exclusive_nodes=True))
    assert "placement by node selector needs the label" in refusal.message


@pytest.mark.parametrize("key", PROVISIONING_REQUESTS)
def test_a_pod_of_a_provisioning_request_is_gkes(key: str) -> None:
    refusal = refusal_of(annotated(FLEX, **{key: "train"}))
    assert refusal.reason is Reason.PROVISIONED_BY_GKE
    assert f'{key}: the pod consumes the ProvisioningRequest "train", so GKE itself provisions its' in refusal.message


def test_queued_flex_start_is_gkes() -> None:
    refusal = refusal_of(selecting({FLEX_START: "true", "cloud.google.com/gke-queued": "true"}))
    assert (refusal.reason, "gke-queued" in refusal.message) == (Reason.PROVISIONED_BY_GKE, True)


def test_the_policy_may_forbid_flex_start() -> None:
    refusal = refusal_of(FLEX, policy=Policy(everyone=Allowed(capacity=(CapacityKind.ON_DEMAND,))))
    assert refusal.reason is Reason.NOT_ALLOWED
    assert "capacity: flex_start is not allowed in namespace research" in refusal.message


def test_forced_on_demand_a_run_duration_means_nothing() -> None:
    assert spec_of(running("600"), force_on_demand=True).capacity == Capacity()
