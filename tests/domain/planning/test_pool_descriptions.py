"""The proof of ownership in descriptions: what holds for all of them, whoever edits them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import a_job, a_spec
from tpu_slices.domain.model.observations import PoolSeen
from tpu_slices.domain.model.slices import (
    LAST_ATTEMPT,
    ClusterId,
    Owner,
    OwnerKind,
    WorkloadJob,
    WorkloadUid,
    claim_id,
    pool_name,
)
from tpu_slices.domain.planning.pool_descriptions import (
    KEY,
    description_of,
    fingerprint_of,
    missing_proof,
    pool_seen,
    zone_of,
)

MOST_CHARACTERS = 2048
JOB, SPEC = a_job(), a_spec()
NAME = pool_name(claim_id(JOB), 3)
DESCRIPTION = description_of(JOB, 3, SPEC)
names = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
jobs = st.builds(
    WorkloadJob,
    cluster=names.map(ClusterId),
    owner=st.builds(
        Owner, kind=st.sampled_from(OwnerKind), namespace=names, name=names, uid=st.uuids().map(str).map(WorkloadUid)
    ),
    replicated_job=st.just("") | names,
    job_index=st.integers(0, 100_000),
)


@given(jobs, st.integers(1, LAST_ATTEMPT))
def test_every_description_proves_the_slice_and_is_read_back(job: WorkloadJob, attempt: int) -> None:
    description, name = description_of(job, attempt, SPEC), pool_name(claim_id(job), attempt)
    assert missing_proof(description, job) is None
    assert pool_seen(name, description, job.cluster) == PoolSeen(
        name=name, slice_id=claim_id(job), attempt=attempt, job=job
    )
    assert (fingerprint_of(description), zone_of(description)) == (SPEC.fingerprint, SPEC.zone)
    assert len(description) <= MOST_CHARACTERS
    assert "\n" not in description


@given(jobs, jobs)
def test_no_description_proves_another_slice(job: WorkloadJob, other: WorkloadJob) -> None:
    assert (missing_proof(description_of(job, 1, SPEC), other) is None) is (claim_id(job) == claim_id(other))


def test_a_description_with_the_longest_names_fits() -> None:
    owner = replace(JOB.owner, namespace="n" * 63, name="n" * 253, uid=WorkloadUid("u" * 36))
    job = replace(JOB, cluster=ClusterId("c" * 63), owner=owner, replicated_job="r" * 63)
    assert len(description_of(job, LAST_ATTEMPT, SPEC)) <= 950


def edited(**changes: Any) -> str:
    return json.dumps({KEY: {**json.loads(DESCRIPTION)[KEY], **changes}})


@pytest.mark.parametrize(
    ("description", "why"),
    [
        ("", f"is not a line of JSON with {KEY}."),
        ("made by hand", f"is not a line of JSON with {KEY}."),
        ("[]", f"is not a line of JSON with {KEY}."),
        ('{"other-tool": {}}', f"is not a line of JSON with {KEY}."),
        (edited(cluster="other"), 'has "other" as cluster, not "demo".'),
        (edited(slice="tpu-x"), f'has "tpu-x" as slice, not "{claim_id(JOB)}".'),
        (edited(owner="me"), 'has "None" as owner.uid, not "uid-llama".'),
        (edited(owner={"uid": "uid-2"}), 'has "uid-2" as owner.uid, not "uid-llama".'),
    ],
)
def test_what_is_missing_is_told(description: str, why: str) -> None:
    assert missing_proof(description, JOB) == why


@pytest.mark.parametrize(
    "description",
    [
        "",
        "made by hand",
        '{"tpu-slice-provisioner": 7}',
        edited(attempt="many"),
        edited(attempt=0),
        edited(attempt=4),
        edited(job_index=1),
        edited(job_index=None),
        edited(owner=None),
        edited(owner={"kind": "Cron", "namespace": "n", "name": "n", "uid": "uid-llama"}),
        edited(owner={"kind": "JobSet", "namespace": "n", "name": 7, "uid": "uid-llama"}),
        edited(replicated_job=[]),
    ],
)
def test_what_does_not_say_what_it_was_made_for_is_known_by_its_name_alone(description: str) -> None:
    described = pool_seen(NAME, DESCRIPTION, JOB.cluster)
    assert described is not None
    assert pool_seen(NAME, description, JOB.cluster) == replace(described, job=None)
    assert pool_seen("their-group", description, JOB.cluster) is None


def test_what_is_another_clusters_is_no_pool_of_this_one() -> None:
    assert pool_seen(NAME, edited(cluster="other"), JOB.cluster) is None


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_no_description_raises_an_error(content: Any) -> None:
    description = json.dumps({KEY: content})
    seen = pool_seen(NAME, description, JOB.cluster)
    assert seen is None or seen.job is None
    assert missing_proof(description, JOB) is not None
