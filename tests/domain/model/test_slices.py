"""What slices and their node pools are called, and what their names prove."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.builders import a_job, a_spec
from tpu_slices.domain.model.slices import (
    LAST_ATTEMPT,
    ClaimId,
    ClusterId,
    Owner,
    OwnerKind,
    WorkloadJob,
    WorkloadUid,
    attempt_named,
    claim_id,
    fingerprint,
    is_claim_id,
    is_slice_id,
    pool_name,
    same_request,
    slice_id,
)

GKE_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
GKE_LENGTH = 40

dns_labels = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
attempts = st.integers(1, LAST_ATTEMPT)
jobs = st.builds(
    WorkloadJob,
    cluster=dns_labels.map(ClusterId),
    owner=st.builds(
        Owner,
        kind=st.sampled_from(OwnerKind),
        namespace=dns_labels,
        name=dns_labels,
        uid=st.uuids().map(lambda uid: WorkloadUid(str(uid))),
    ),
    replicated_job=dns_labels,
    job_index=st.integers(0, 99_999),
)


def digest(id_: ClaimId) -> str:
    return id_.rpartition("-")[2]


def readable(id_: ClaimId) -> str:
    return id_.removeprefix("tpu-").rpartition("-")[0]


@given(jobs, attempts)
def test_every_pool_name_is_valid_for_gke(job: WorkloadJob, attempt: int) -> None:
    name = pool_name(claim_id(job), attempt)
    assert GKE_NAME.fullmatch(name)
    assert len(name) <= GKE_LENGTH


@given(jobs, attempts)
def test_a_pool_name_is_valid_whatever_the_jobset_is_called(job: WorkloadJob, attempt: int) -> None:
    strange = replace(job, owner=replace(job.owner, name="Ünï--Code.__" * 5), replicated_job="-.-")
    name = pool_name(claim_id(strange), attempt)
    assert GKE_NAME.fullmatch(name)
    assert len(name) <= GKE_LENGTH


@given(jobs)
def test_the_same_job_has_the_same_slice_id(job: WorkloadJob) -> None:
    assert claim_id(job) == claim_id(replace(job))


@given(jobs, jobs)
def test_slice_ids_of_two_jobs_differ(one: WorkloadJob, other: WorkloadJob) -> None:
    assume((one.cluster, one.owner.uid, one.replicated_job, one.job_index) != _identity(other))
    assert digest(claim_id(one)) != digest(claim_id(other))


def _identity(job: WorkloadJob) -> tuple[str, str, str, int]:
    return (job.cluster, job.owner.uid, job.replicated_job, job.job_index)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"cluster": ClusterId("demo-2")}, id="cluster"),
        pytest.param({"uid": WorkloadUid("uid-another")}, id="uid"),
        pytest.param({"replicated_job": "workers"}, id="replicated job"),
        pytest.param({"job_index": 1}, id="index"),
    ],
)
def test_each_part_of_the_identity_changes_the_digest(changes: dict[str, object]) -> None:
    assert digest(claim_id(a_job(**changes))) != digest(claim_id(a_job()))


def test_a_recreated_jobset_has_other_slice_ids() -> None:
    assert claim_id(a_job(uid=WorkloadUid("uid-reborn"))) != claim_id(a_job())


def test_parts_of_an_identity_cannot_run_into_each_other() -> None:
    assert claim_id(a_job(replicated_job="a1", job_index=1)) != claim_id(a_job(replicated_job="a", job_index=11))
    assert claim_id(a_job(cluster=ClusterId("ab"), uid=WorkloadUid("c"))) != claim_id(
        a_job(cluster=ClusterId("a"), uid=WorkloadUid("bc"))
    )


def test_the_digest_does_not_depend_on_namespace_and_name() -> None:
    """A UID is unique in its cluster: the namespace adds nothing, and the JobSet's name is for readers."""
    assert digest(claim_id(a_job(namespace="other", name="other"))) == digest(claim_id(a_job()))


@given(jobs)
def test_a_digest_has_thirteen_base32_characters(job: WorkloadJob) -> None:
    assert re.fullmatch(r"[a-z2-7]{13}", digest(claim_id(job)))


@pytest.mark.parametrize(
    ("jobset", "replicated_job", "index", "expected"),
    [
        pytest.param("llama", "slice", 0, "llama-slice-0", id="all of it fits"),
        pytest.param("llama-405b-pretraining", "tpu", 3, "llama-405b-tpu-3", id="a long JobSet is cut"),
        pytest.param("llama", "long-worker-name", 12, "llama-12", id="a long replicated job gives way to the index"),
        pytest.param("llama-405b-pretraining", "workers", 0, "llama-405b-pret-0", id="both long"),
        pytest.param("my.jobset.v2", "tpu", 0, "my-jobset-v-tpu-0", id="dots become dashes"),
    ],
)
def test_a_slice_id_is_readable(jobset: str, replicated_job: str, index: int, expected: str) -> None:
    assert readable(claim_id(a_job(name=jobset, replicated_job=replicated_job, job_index=index))) == expected


@given(jobs, attempts, attempts)
def test_each_attempt_has_its_own_pool_name(job: WorkloadJob, one: int, other: int) -> None:
    id_ = claim_id(job)
    assert (pool_name(id_, one) == pool_name(id_, other)) == (one == other)
    assert pool_name(id_, one).startswith(id_)


@given(jobs, jobs, attempts, attempts)
def test_pools_of_two_slices_never_share_a_name(one: WorkloadJob, other: WorkloadJob, first: int, second: int) -> None:
    assume(claim_id(one) != claim_id(other))
    assert pool_name(claim_id(one), first) != pool_name(claim_id(other), second)


@pytest.mark.parametrize("attempt", [0, -1, LAST_ATTEMPT + 1])
def test_an_attempt_out_of_range_is_an_error(attempt: int) -> None:
    with pytest.raises(ValueError, match="is not within 1 to 9999"):
        pool_name(claim_id(a_job()), attempt)


@given(st.lists(st.text(alphabet="ab=", max_size=4), max_size=4), st.lists(st.text(alphabet="ab=", max_size=4)))
def test_fingerprints_are_equal_for_equal_requests_only(one: list[str], other: list[str]) -> None:
    assume(one and other)
    assert (fingerprint(*one) == fingerprint(*other)) == (one == other)


def test_a_fingerprint_is_a_valid_label_with_its_version() -> None:
    assert re.fullmatch(r"v1-[a-z2-7]{13}", fingerprint("4", "a=b"))


@pytest.mark.parametrize(
    ("label", "same"),
    [
        pytest.param(a_spec().fingerprint, True, id="the same"),
        pytest.param(fingerprint("another"), False, id="another"),
        pytest.param(None, True, id="none was written"),
        pytest.param("v0-abc", True, id="of an earlier version"),
        pytest.param("v2-abc", True, id="of a later version"),
        pytest.param("v10-abc", True, id="of a version that begins alike"),
        pytest.param("", True, id="empty"),
    ],
)
def test_only_fingerprints_of_this_version_are_compared(label: str | None, same: bool) -> None:
    assert same_request(label, a_spec()) is same


def test_a_slices_chips_are_those_of_all_its_hosts() -> None:
    assert a_spec().chips == a_spec().topology.chips


def test_a_jobs_name_is_the_one_that_the_jobset_controller_gives_it() -> None:
    assert a_job(name="llama", replicated_job="slice", job_index=3).job_name == "llama-slice-3"


@given(jobs, attempts)
def test_a_pools_name_tells_its_slice_and_attempt(job: WorkloadJob, attempt: int) -> None:
    assert attempt_named(pool_name(claim_id(job), attempt)) == (claim_id(job), attempt)


@pytest.mark.parametrize("name", ["", "default-pool", "tpu-llama-0-aaaaaaaaaaaaa", "-0", "-01", "-10000", "-x", "-²"])
def test_any_other_name_tells_none(name: str) -> None:
    assert attempt_named(f"{claim_id(a_job())}{name}" if name.startswith("-") else name) is None


@pytest.mark.parametrize("number", [0, 1, LAST_ATTEMPT, LAST_ATTEMPT + 1])
def test_a_slice_is_named_by_its_claim_and_a_number(number: int) -> None:
    claim = claim_id(a_job())
    assert (is_claim_id(claim), is_slice_id(claim)) == (True, False)
    assert (is_claim_id(slice_id(claim, number)), is_slice_id(slice_id(claim, number))) == (False, True)


@pytest.mark.parametrize("suffix", ["-", "--1", "-01", "-100000", "-1-1", "-x", "-\u0661", "-" + "9" * 5_000], ids=repr)
def test_what_names_neither_is_refused_however_long_it_is(suffix: str) -> None:
    """Python turns no text of more than 4,300 digits into a number."""
    text = f"{claim_id(a_job())}{suffix}"
    assert not is_claim_id(text)
    assert not is_slice_id(text)
