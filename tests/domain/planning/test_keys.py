"""The keys of hosts. That pods of the real controllers have them, tests/kubernetes/admission/test_pinned.py shows."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import a_job, an_owner
from tpu_slices.domain.model.slices import OwnerKind, WorkloadUid
from tpu_slices.domain.planning.keys import key_of

LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)")
"""Kubernetes' own rule (k8s.io/apimachinery pkg/util/validation IsValidLabelValue), without the empty value."""
UID = WorkloadUid("5f0c1d2e-8a4b-4c6d-9e0f-112233445566")


def test_a_job_of_a_jobset_has_a_key_of_its_uid_and_the_jobs_index_among_all() -> None:
    assert key_of(a_job(uid=UID, job_index=2), 3) == f"{UID}.j5"


def test_a_jobset_that_is_made_anew_under_its_name_has_other_keys() -> None:
    assert key_of(a_job(uid=UID), 0) != key_of(a_job(uid=WorkloadUid(UID.replace("5", "6"))), 0)


def test_a_job_by_itself_has_its_uid() -> None:
    assert key_of(a_job(owner=an_owner(kind=OwnerKind.JOB, uid=UID), replicated_job=""), None) == UID


def test_a_group_has_the_key_that_leader_worker_set_gives_its_pods() -> None:
    group = a_job(
        owner=an_owner("vllm", namespace="default", kind=OwnerKind.LEADER_WORKER_SET), replicated_job="", job_index=1
    )
    assert key_of(group, None) == "e6a61a33965cdc1b5d2bd5672fa0b88b1518a5a7"  # sha1 of default/vllm-1


def test_a_node_group_has_none() -> None:
    assert key_of(a_job(owner=an_owner(kind=OwnerKind.TPU_NODE_GROUP), replicated_job=""), None) == ""


def test_without_its_index_among_all_jobs_a_job_of_a_jobset_has_none() -> None:
    assert key_of(a_job(uid=UID), None) == ""


@pytest.mark.parametrize("uid", ["", "a b", "-", "x" * 63, "é"])
def test_what_could_be_no_labels_value_is_no_key(uid: str) -> None:
    assert key_of(a_job(uid=WorkloadUid(uid)), 0) == ""


@given(st.from_regex(r"[a-z0-9]([-a-z0-9]{0,34}[a-z0-9])?", fullmatch=True), st.integers(0, 999_999_999))
def test_the_key_of_each_uid_is_a_labels_value(uid: str, first: int) -> None:
    assert LABEL_VALUE.fullmatch(key_of(a_job(uid=WorkloadUid(uid), job_index=999_999_999), first))
