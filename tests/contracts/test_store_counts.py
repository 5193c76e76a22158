"""What every `SliceStore` counts for the brake: the fake, and the real one on the Firestore emulator."""

from __future__ import annotations

from tests.builders import CLUSTER, MINUTE, NOW, a_job, a_record
from tests.contracts.stores import ELSEWHERE, Bench
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.records.brakes import UnconfirmedEnd


def test_unconfirmed_ends_are_counted_by_namespace_and_those_that_count_by_cluster(bench: Bench) -> None:
    def end(minutes: int, *, counted: bool) -> UnconfirmedEnd:
        return UnconfirmedEnd(found_at=NOW + minutes * MINUTE, counted=counted)

    bench.create(
        a_record(unconfirmed_end=end(0, counted=True)),
        a_record(job=a_job(job_index=1), unconfirmed_end=end(5, counted=False), phase=Phase.GONE),
        a_record(job=a_job(job_index=2), unconfirmed_end=end(-1, counted=True)),
        a_record(job=a_job(job_index=3)),
        a_record(job=a_job(namespace="vision", uid="uid-vision"), unconfirmed_end=end(1, counted=True)),
        a_record(job=a_job(cluster=ELSEWHERE), unconfirmed_end=end(1, counted=True)),
    )
    assert bench.store.unconfirmed_ends(CLUSTER, NOW, "research") == 2
    assert bench.store.unconfirmed_ends(CLUSTER, NOW, "vision") == 1
    assert bench.store.unconfirmed_ends(CLUSTER, NOW, "nobody") == 0
    assert bench.store.unconfirmed_ends(CLUSTER, NOW) == 2


def test_slices_that_are_ready_are_counted_up_to_a_number(bench: Bench) -> None:
    bench.create(
        *(a_record(job=a_job(job_index=at), phase=Phase.READY) for at in range(3)),
        a_record(job=a_job(job_index=3), phase=Phase.RELEASING),
        a_record(job=a_job(namespace="vision", uid="uid-vision"), phase=Phase.READY),
        a_record(job=a_job(cluster=ELSEWHERE), phase=Phase.READY),
    )
    assert [bench.store.ready_count(CLUSTER, most) for most in (1, 4, 9)] == [1, 4, 4]
    assert [bench.store.ready_count(CLUSTER, most, "research") for most in (2, 9)] == [2, 3]
    assert bench.store.ready_count(CLUSTER, 9, "nobody") == 0
