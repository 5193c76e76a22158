"""The keys of hosts and of pods: one table of strings, against what pods of the real controllers have."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import a_job, an_owner
from tpu_slices.domain.model.slices import OwnerKind, WorkloadUid
from tpu_slices.domain.planning.keys import is_key, key_of

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


@given(st.text(max_size=80), st.integers(0, 1 << 31), st.integers(0, 1 << 31))
def test_a_key_is_the_value_of_a_label_whatever_the_uid_is(uid: str, first: int, index: int) -> None:
    key = key_of(a_job(uid=WorkloadUid(uid), job_index=index), first)
    assert not key or (is_key(key) and len(key) <= 63)
