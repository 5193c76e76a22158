"""The labels of a pool are counted as they are ordered, also if its hosts may change namespaces."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from tests.builders import a_job, a_spec, an_owner, settings
from tpu_slices.domain.model.capacity import Across, Warm
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.slices import OwnerKind, SliceSpec, WorkloadJob
from tpu_slices.domain.planning.fit import pool_fits
from tpu_slices.domain.planning.pool_labels import MOST_CHARACTERS

JOB, OF_JOBSET = a_job(owner=an_owner(kind=OwnerKind.JOB)), a_job()
FOR_ALL = settings(warm=Warm(lasts=timedelta(hours=1), across=Across.CLUSTER))


def labelled(characters: int) -> SliceSpec:
    """Return a slice whose labels have values of so many characters together."""
    values = ["x" * max(0, min(60, characters - 60 * number)) for number in range(15)]
    return a_spec(
        key=f"{UUID(int=0)}.j0", node_labels=tuple((f"label-{number}", value) for number, value in enumerate(values))
    )


def longest(job: WorkloadJob, known: ClusterSettings) -> int:
    """Return with how many characters a Job's pool still fits."""
    return max(it for it in range(0, 900, 2) if not [*pool_fits(job, labelled(it), known)])


def test_a_slice_of_a_job_that_may_change_namespaces_has_longer_labels() -> None:
    assert 0 < longest(JOB, FOR_ALL) < longest(JOB, settings()) < MOST_CHARACTERS


def test_that_of_a_jobset_fits_as_before() -> None:
    assert longest(OF_JOBSET, FOR_ALL) == longest(OF_JOBSET, settings())
