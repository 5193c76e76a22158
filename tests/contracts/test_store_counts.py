"""What every `SliceStore` counts, and how it finds claims and slices for each other and of a workload."""

from __future__ import annotations

from tests.builders import CLUSTER, MINUTE, NOW, a_job, a_record, a_spec
from tests.contracts.stores import ELSEWHERE, Bench
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.domain.records.brakes import UnconfirmedEnd
from tpu_slices.domain.records.matching import offers, offers_to_any, wants, wants_of_any
from tpu_slices.domain.records.slices import Desire


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


def test_claims_that_wait_for_a_slice_are_found_by_their_request_the_longest_first(
    bench: Bench,
) -> None:
    younger, older = (
        a_record(job=a_job(job_index=number)).with_claim(waits_since=NOW - number * MINUTE) for number in (1, 2)
    )
    others = (
        a_record(job=a_job(job_index=3), create_requested_at=NOW),
        a_record(job=a_job(job_index=4), spec=a_spec(fingerprint="v1-other")),
        a_record(job=a_job(job_index=5, namespace="vision")),
        a_record(job=a_job(cluster=ELSEWHERE)),
    )
    bench.create(younger, older, *others)
    request = wants(older) or ""
    assert [stored.value for stored in bench.store.wanting(request, 10)] == [older, younger]
    assert bench.store.wanting(request, 1) == (bench.slice(older),)
    assert bench.store.wanting("demo nobody v1-other", 10) == ()


def test_slices_that_go_are_found_by_the_request_that_they_were_made_for(bench: Bench) -> None:
    made = {"create_requested_at": NOW, "desire": Desire.ABSENT, "phase": Phase.RELEASING}
    first, second = sorted((a_record(job=a_job(job_index=it), **made) for it in range(2)), key=lambda it: it.id)
    bench.create(
        second,
        first,
        a_record(job=a_job(job_index=2), **made, delete_requested_at=NOW),
        a_record(job=a_job(job_index=3), create_requested_at=NOW),
        a_record(job=a_job(cluster=ELSEWHERE), **made),
    )
    assert [stored.value for stored in bench.store.offered(offers(first) or "", 10)] == [first, second]
    assert bench.store.offered(offers(first) or "", 1) == (bench.slice(first),)


def test_claims_that_take_slices_of_any_namespace_are_found_by_their_request_alone(bench: Bench) -> None:
    takes = a_spec(takes=True)
    first, second = (
        a_record(job=a_job(namespace=namespace, job_index=number), spec=takes).with_claim(
            waits_since=NOW + number * MINUTE
        )
        for number, namespace in enumerate(("vision", "research"))
    )
    others = (a_record(job=a_job(job_index=2)), a_record(job=a_job(cluster=ELSEWHERE), spec=takes))
    bench.create(second, first, *others)
    assert [stored.value for stored in bench.store.wanting(wants_of_any(first) or "", 10, of_any=True)] == [
        first,
        second,
    ]


def test_slices_that_are_warm_for_any_namespace_are_found_by_their_request_alone(bench: Bench) -> None:
    made = {"create_requested_at": NOW, "desire": Desire.ABSENT, "phase": Phase.RELEASING}
    crosses = {**made, "spec": a_spec(crosses=True), "reason": Reason.WARM}
    first, second = (
        a_record(job=a_job(namespace=namespace, job_index=number), **crosses)
        for number, namespace in enumerate(("research", "vision"))
    )
    others = (
        a_record(job=a_job(job_index=3), **{**crosses, "spec": a_spec()}),
        a_record(job=a_job(job_index=2), **{**crosses, "reason": Reason.CLOSING_HOSTS}),
        a_record(job=a_job(cluster=ELSEWHERE), **crosses),
    )
    bench.create(first, second, *others)
    found = bench.store.offered(offers_to_any(first) or "", 10, to_any=True)
    assert {stored.value.owner.namespace for stored in found} == {"research", "vision"}
    assert len(found) == 2


def test_the_slices_that_hear_of_their_workload_are_found_and_no_others(bench: Bench) -> None:
    owner = a_job().owner.uid
    stand = [a_record(job=a_job(job_index=index), create_requested_at=NOW) for index in range(3)]
    waits = a_record(job=a_job(job_index=3), reason=Reason.OPERATION_LIMIT)
    others = (
        a_record(job=a_job(uid=WorkloadUid(f"{owner}-1")), create_requested_at=NOW),
        a_record(job=a_job(cluster=ELSEWHERE), create_requested_at=NOW),
        a_record(job=a_job(job_index=4), create_requested_at=NOW).let_go_of("it failed", NOW),
    )
    bench.create(*stand, waits, *others)
    found = sorted(stand, key=lambda it: it.id)
    assert [stored.value for stored in bench.store.hearing(CLUSTER, owner)] == found
    assert [stored.value for stored in bench.store.hearing(CLUSTER, owner, 2)] == found[:2]
    assert bench.store.hearing(CLUSTER, WorkloadUid("nobody")) == ()


def test_the_slices_of_a_workload_are_counted_by_reason_and_the_first_jobs_of_each_are_read(bench: Bench) -> None:
    owner = a_job().owner.uid
    queued = [a_record(job=a_job(job_index=index), reason=Reason.OPERATION_LIMIT) for index in range(12)]
    made = [a_record(job=a_job(job_index=index), reason=Reason.CREATING) for index in (20, 21)]
    elsewhere = a_record(job=a_job(cluster=ELSEWHERE), reason=Reason.CREATING)
    bench.create(*queued, *made, elsewhere)
    first, second = bench.store.alike(CLUSTER, owner, 3)
    assert (first.count, [each.value for each in first.first]) == (2, made)
    assert (second.count, [each.value for each in second.first]) == (12, queued[:3])
    assert [each.count for each in bench.store.alike(CLUSTER, owner, 12)] == [2, 12]
    assert [*bench.store.alike(CLUSTER, WorkloadUid("nobody"), 3)] == []
