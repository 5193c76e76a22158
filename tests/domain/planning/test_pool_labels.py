"""The labels of our pools: whose slice a pool is, and the proof that it is ours."""

from __future__ import annotations

import pytest

from tests.builders import a_job, a_spec, an_owner
from tpu_slices.domain.model.observations import LegacyPool, PoolSeen
from tpu_slices.domain.model.slices import ClusterId, OwnerKind, WorkloadJob, WorkloadUid, claim_id, pool_name
from tpu_slices.domain.planning.keys import key_of
from tpu_slices.domain.planning.pool_labels import (
    ANY_NAMESPACE_LABEL,
    PARENT_NAMESPACE_LABEL,
    label_value,
    labels_of,
    labels_of_pool,
    lacking,
    legacy_pool,
    missing_proof,
    naming_labels,
    pool_seen,
)

LONGEST = a_job(
    namespace="n" * 63, name="j" * 100, uid=WorkloadUid("0" * 36), replicated_job="r" * 63, job_index=99_999
)


def test_our_labels_leave_room_for_a_tenants() -> None:
    labels = labels_of(LONGEST, 9999, a_spec(exclusive_nodes=True, key=key_of(LONGEST, 1_999)))
    assert sum(len(key) + len(value) for key, value in labels.items()) <= 1_000
    assert max(map(len, labels.values())) <= 63


def test_a_pool_whose_hosts_may_come_to_other_namespaces_names_none_and_is_still_known() -> None:
    for kind in (OwnerKind.JOBSET, OwnerKind.JOB):
        job = a_job(owner=an_owner(kind=kind), **({} if kind is OwnerKind.JOBSET else {"replicated_job": ""}))
        labels = labels_of_pool(job, 3, a_spec(crosses=True, key="own-name"))
        assert (labels.get(PARENT_NAMESPACE_LABEL), labels[ANY_NAMESPACE_LABEL]) == (None, "true")
        name = pool_name(claim_id(job), 3)
        assert pool_seen(name, labels, job.cluster) == PoolSeen(name=name, slice_id=claim_id(job), attempt=3, job=job)
        assert missing_proof(labels, job) is None
        assert lacking(labels, naming_labels(job, 3, crosses=True)) == ""


def test_every_other_pool_names_its_namespace_and_does_not_say_so() -> None:
    labels = labels_of_pool(a_job(), 1, a_spec())
    assert labels == labels_of(a_job(), 1, a_spec())
    assert (labels[PARENT_NAMESPACE_LABEL], ANY_NAMESPACE_LABEL in labels) == ("research", False)


def test_the_labels_of_hosts_of_any_namespace_leave_room_for_a_tenants() -> None:
    labels = labels_of_pool(LONGEST, 9999, a_spec(crosses=True, key="k" * 40))
    assert sum(len(key) + len(value) for key, value in labels.items()) <= 1_000


def test_shortened_values_of_different_names_differ() -> None:
    one, other = "a" * 80, "a" * 81
    assert label_value(one) != label_value(other)
    assert {len(label_value(one)), len(label_value(other))} == {63}
    assert label_value("a" * 63) == "a" * 63


def test_a_shortened_value_is_a_valid_label() -> None:
    assert "-.-" not in label_value(f"{'a' * 48}.-{'b' * 40}")
    assert label_value(f"{'a' * 48}.-{'b' * 40}").startswith(f"{'a' * 48}-")


@pytest.mark.parametrize("job", [a_job(), LONGEST], ids=["short", "longest"])
def test_a_pools_labels_prove_that_it_is_ours(job: WorkloadJob) -> None:
    assert missing_proof(labels_of(job, 1, a_spec()), job) is None


@pytest.mark.parametrize(
    "key", ["google.com/nodepool-manager", "google.com/tpu-slice-id", "google.com/tpu-slice-owner-uid"]
)
def test_each_of_three_labels_is_needed_for_the_proof(key: str) -> None:
    job = a_job()
    labels = labels_of(job, 1, a_spec())
    other = {**labels, key: "another"}
    assert missing_proof(other, job) == f'its label {key} is "another", not "{labels[key]}".'
    del other[key]
    assert missing_proof(other, job) == f"it has no label {key}."


def test_a_pools_labels_name_its_slice_attempt_and_job() -> None:
    job = a_job()
    name = pool_name(claim_id(job), 12)
    seen = pool_seen(name, labels_of(job, 12, a_spec()), ClusterId("demo"))
    assert seen == PoolSeen(name=name, slice_id=claim_id(job), attempt=12, job=job)


def test_a_shortened_jobset_name_still_belongs_to_its_slice() -> None:
    job = LONGEST
    seen = pool_seen(pool_name(claim_id(job), 1), labels_of(job, 1, a_spec()), ClusterId("demo"))
    assert seen is not None
    assert seen.job is not None
    assert (seen.slice_id, seen.job.owner.uid, seen.job.job_index) == (
        claim_id(job),
        LONGEST.owner.uid,
        LONGEST.job_index,
    )


@pytest.mark.parametrize(
    "change",
    [
        {"google.com/nodepool-manager": "somebody"},
        {"google.com/tpu-slice-id": None},
        {"google.com/tpu-slice-id": "tpu-llama-slice-0-aaaaaaaaaaaaa"},
        {"google.com/tpu-slice-owner-uid": "uid-other"},
        {"google.com/tpu-slice-replicated-job": None},
        {"google.com/tpu-slice-job-index": "1"},
        {"google.com/tpu-slice-job-index": "first"},
        {"google.com/tpu-slice-attempt": "2"},
        {"google.com/tpu-slice-attempt": "0"},
    ],
    ids=str,
)
def test_labels_that_contradict_each_other_do_not_say_what_a_pool_was_made_for(change: dict[str, str | None]) -> None:
    job = a_job()
    labels = {key: value for key, value in {**labels_of(job, 1, a_spec()), **change}.items() if value is not None}
    assert pool_seen(pool_name(claim_id(job), 1), labels, ClusterId("demo")) == nameless(job)


def test_labels_for_another_cluster_do_not_say_it_either() -> None:
    job = a_job()
    assert pool_seen(pool_name(claim_id(job), 1), labels_of(job, 1, a_spec()), ClusterId("staging")) == nameless(job)


@pytest.mark.parametrize("name", ["default-pool", "tpu-llama", claim_id(a_job())])
def test_a_pool_without_labels_and_a_name_of_ours_is_not_ours(name: str) -> None:
    assert pool_seen(name, {}, ClusterId("demo")) is None


def nameless(job: WorkloadJob) -> PoolSeen:
    """Return the first pool of a Job's slice as it is seen by its name alone."""
    return PoolSeen(name=pool_name(claim_id(job), 1), slice_id=claim_id(job), attempt=1, job=None)


LEGACY_LABELS = {
    "google.com/nodepool-manager": "tpu-provisioner",
    "google.com/tpu-provisioner-parent-kind": "job",
    "google.com/tpu-provisioner-parent-name": "llama-slice-0",
    "google.com/tpu-provisioner-parent-namespace": "research",
    "google.com/tpu-provisioner-jobset-name": "llama",
    "google.com/tpu-provisioner-jobset-namespace": "research",
    "google.com/tpu-provisioner-nodepool-hash": "7f4c8d",
}


def test_a_legacy_pools_labels_name_its_job() -> None:
    made = LegacyPool(name="llama-4f2a1", namespace="research", jobset="llama", job="llama-slice-0")
    assert legacy_pool("llama-4f2a1", LEGACY_LABELS) == made


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param(labels_of(a_job(), 1, a_spec()), id="one of ours"),
        pytest.param({**LEGACY_LABELS, "google.com/nodepool-manager": "other"}, id="somebody else's"),
        pytest.param({**LEGACY_LABELS, "google.com/tpu-provisioner-parent-kind": "pod"}, id="for no Job"),
        pytest.param({"google.com/nodepool-manager": "tpu-provisioner"}, id="for nobody"),
    ],
)
def test_no_other_pool_is_a_legacy_pool(labels: dict[str, str]) -> None:
    assert legacy_pool("llama-4f2a1", labels) is None


def test_a_legacy_pool_is_proven_for_its_own_job_only() -> None:
    assert missing_proof(LEGACY_LABELS, a_job(), legacy_pool=True) is None
    assert missing_proof(LEGACY_LABELS, a_job()) == "it has no label google.com/tpu-slice-id."
    for other in (a_job(job_index=1), a_job(namespace="vision"), a_job(name="other")):
        assert missing_proof(LEGACY_LABELS, other, legacy_pool=True) is not None


def test_only_slices_with_exclusive_nodes_have_the_label() -> None:
    assert "google.com/tpu-slice-exclusive-nodes" not in labels_of(a_job(), 1, a_spec())
    assert labels_of(a_job(), 1, a_spec(exclusive_nodes=True))["google.com/tpu-slice-exclusive-nodes"] == "true"
