"""Which legacy pools, those that TPU Provisioner made, are adopted, and as what."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import NOW, a_job, a_jobset, a_jobset_ref, a_record, a_request, a_spec, settings
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import claim_id
from tpu_slices.domain.reconciling.adoption import Adoption, LiveWorkload, job_named, placeholders, plan_adoptions
from tpu_slices.domain.records.slices import SliceRecord


def a_pool(**changes: Any) -> LegacyPool:
    fields = {"name": "llama-4f2a1", "namespace": "research", "jobset": "llama", "job": "llama-slice-1"}
    return LegacyPool(**{**fields, **changes})


def a_live_jobset(**changes: Any) -> LiveWorkload:
    fields: dict[str, Any] = {"ref": a_jobset_ref(), "state": WorkloadState.ACTIVE, "requests": (a_request(),)}
    return LiveWorkload(**{**fields, **changes})


def adoption_of(pool: LegacyPool, *records: SliceRecord, **changes: Any) -> Adoption:
    known = {record.maker: record for record in records}
    (adoption,) = plan_adoptions([pool], [a_live_jobset(**changes)], known, settings(), NOW)
    return adoption


def test_a_pool_of_a_live_jobset_is_adopted_as_it_is() -> None:
    record = adoption_of(a_pool()).record
    assert record is not None
    assert (record.job, record.maker) == (a_job(job_index=1), claim_id(a_job(job_index=1)))
    assert (record.attempt, record.pool, record.current.create_requested_at) == (0, "llama-4f2a1", NOW)
    assert record.spec is not None
    assert record.spec.hosts == a_spec().hosts


def test_names_are_compared_as_tpu_provisioner_writes_them() -> None:
    adoption = adoption_of(a_pool(job="llama-bigslice-0"), requests=(a_request(replicated_job="BigSlice"),))
    assert adoption.record is not None
    assert adoption.record.job.replicated_job == "BigSlice"


def test_a_pool_is_adopted_even_if_its_request_would_be_refused() -> None:
    record = adoption_of(a_pool(), requests=(a_request(topology="3x5"),)).record
    assert record is not None
    assert record.spec is None


def test_a_waiting_slice_gets_the_legacy_pool() -> None:
    waiting = a_record(job=a_job(job_index=1), phase=Phase.WAITING, retry_at=NOW, note="asked on Monday")
    record = adoption_of(a_pool(), waiting).record
    assert record is not None
    assert (record.pool, record.note, record.claim.retry_at) == ("llama-4f2a1", "asked on Monday", None)


@pytest.mark.parametrize(
    ("pool", "changes", "why"),
    [
        pytest.param(a_pool(jobset="gone"), {}, "there is no JobSet research/gone: delete the pool", id="no JobSet"),
        pytest.param(a_pool(namespace="other"), {}, "no JobSet other/llama", id="a JobSet of another namespace"),
        pytest.param(a_pool(), {"state": WorkloadState.COMPLETED}, "the JobSet is completed", id="it is over"),
        pytest.param(a_pool(), {"state": WorkloadState.SUSPENDED}, "the JobSet is suspended", id="it is suspended"),
        pytest.param(a_pool(job="llama-slice-9"), {}, "no Job llama-slice-9", id="no such index"),
        pytest.param(a_pool(job="llama-eval-0"), {}, "no Job llama-eval-0", id="no such replicated job"),
    ],
)
def test_a_pool_that_no_active_job_needs_is_not_adopted(pool: LegacyPool, changes: dict[str, Any], why: str) -> None:
    adoption = adoption_of(pool, **changes)
    assert adoption.record is None
    assert why in adoption.why


def test_a_pool_is_not_adopted_for_a_job_that_has_one_of_ours() -> None:
    ours = a_record(job=a_job(job_index=1), create_requested_at=NOW)
    adoption = adoption_of(a_pool(), ours)
    assert adoption.record is None
    assert ours.pool in adoption.why


def test_adopting_twice_changes_nothing() -> None:
    first = adoption_of(a_pool()).record
    assert first is not None
    again = adoption_of(a_pool(), first)
    assert (again.record, again.why) == (None, "already adopted")


def test_an_unknown_jobset_gets_a_placeholder_with_its_adopted_slices() -> None:
    adoptions = plan_adoptions(
        [a_pool(), a_pool(name="llama-0", job="llama-slice-0")], [a_live_jobset()], {}, settings(), NOW
    )
    (jobset,) = placeholders(adoptions, [a_live_jobset(), a_live_jobset(ref=a_jobset_ref(uid="other"))], {}, NOW)
    assert (jobset.owner.uid, jobset.state) == ("uid-llama", WorkloadState.ACTIVE)
    assert set(jobset.demand) == {claim_id(a_job()), claim_id(a_job(job_index=1))}


def test_a_known_jobset_keeps_its_record_and_gets_the_adopted_slice() -> None:
    known = a_jobset(generation=7)
    (jobset,) = placeholders([adoption_of(a_pool())], [a_live_jobset()], {known.owner.uid: known}, NOW)
    assert jobset.generation == 7
    assert jobset.demand == {**known.demand, claim_id(a_job(job_index=1)): None}


def test_a_job_is_found_by_name_among_any_number() -> None:
    request = a_request(replicas=2**31 - 1)
    found = job_named("llama-slice-2000000000", settings().cluster, a_jobset_ref(), [request])
    assert found is not None
    assert found.job_index == 2_000_000_000
    for other in ("llama-slice-2147483647", "llama-slice-01", "llama-slice-", "llama-slice-x", "llama-slice"):
        assert job_named(other, settings().cluster, a_jobset_ref(), [request]) is None
