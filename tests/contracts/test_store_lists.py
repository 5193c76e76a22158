"""What every `SliceStore` lists: the fake, and the real one on the Firestore emulator."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import CLUSTER, MINUTE, NOW, a_job, a_jobset, a_record, a_spec
from tests.contracts.stores import ELSEWHERE, Bench, a_slot, slices
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.records import Phase
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.ports.errors import Permanent
from tpu_slices.ports.store import Change


def test_due_slices_of_all_clusters_come_longest_due_first(bench: Bench) -> None:
    late, later, settled, future = slices(4)
    elsewhere = a_record(job=a_job(cluster=ELSEWHERE), next_reconcile_at=NOW - 3 * MINUTE)
    bench.create(
        replace(late, next_reconcile_at=NOW - 2 * MINUTE),
        replace(later, next_reconcile_at=NOW),
        replace(settled, next_reconcile_at=None),
        replace(future, next_reconcile_at=NOW + timedelta(microseconds=1)),
        elsewhere,
    )

    assert [record.id for record in bench.store.due_slices(NOW, 10)] == [elsewhere.id, late.id, later.id]
    assert [record.id for record in bench.store.due_slices(NOW, 2)] == [elsewhere.id, late.id]


def test_due_jobsets_come_longest_due_first(bench: Bench) -> None:
    next_reconcile_at = {"b": NOW, "a": NOW - MINUTE, "settled": None, "future": NOW + MINUTE}
    bench.create(*(a_jobset(uid=WorkloadUid(uid), next_reconcile_at=at) for uid, at in next_reconcile_at.items()))

    assert [record.owner.uid for record in bench.store.due_workloads(NOW, 10)] == ["a", "b"]
    assert [record.owner.uid for record in bench.store.due_workloads(NOW, 1)] == ["a"]


def test_due_reports_come_longest_due_first(bench: Bench) -> None:
    next_report_at = {"b": NOW, "a": NOW - MINUTE, "settled": None, "future": NOW + MINUTE}
    bench.create(*(a_jobset(uid=WorkloadUid(uid), next_report_at=at) for uid, at in next_report_at.items()))

    assert [record.owner.uid for record in bench.store.due_reports(NOW, 10)] == ["a", "b"]
    assert [record.owner.uid for record in bench.store.due_reports(NOW, 1)] == ["a"]


def test_queued_slices_of_a_cluster_come_longest_queued_first(bench: Bench) -> None:
    one, two, three, other = slices(4)
    bench.create(
        replace(one, since=NOW),
        replace(two, since=NOW),
        replace(three, since=NOW - MINUTE),
        replace(other, phase=Phase.WAITING),
        a_record(job=a_job(cluster=ELSEWHERE)),
    )

    assert [record.id for record in bench.store.queued_slices(CLUSTER, 10)] == [three.id, one.id, two.id]
    assert [record.id for record in bench.store.queued_slices(CLUSTER, 1)] == [three.id]


def test_live_jobsets_of_every_page_are_those_that_have_not_ended(bench: Bench) -> None:
    records = [a_jobset(uid=WorkloadUid(state.value), state=state) for state in WorkloadState]
    many = [a_jobset(uid=WorkloadUid(f"many-{number}")) for number in range(3)]
    bench.create(*records, *many, a_jobset(cluster=ELSEWHERE))

    live = list(bench.store.live_workloads(CLUSTER))

    assert [stored.value.owner.uid for stored in live] == ["ACTIVE", "SUSPENDED", "many-0", "many-1", "many-2"]
    bench.store.commit(*(Change(stored, None) for stored in live))
    assert list(bench.store.live_workloads(CLUSTER)) == []


def test_kept_slices_are_those_in_any_phase_but_gone(bench: Bench) -> None:
    phases = dict(zip(slices(len(Phase)), Phase, strict=True))
    bench.create(*(replace(record, phase=phase) for record, phase in phases.items()))
    bench.create(a_record(job=a_job(cluster=ELSEWHERE)))

    kept = [stored.value.id for stored in bench.store.kept_slices(CLUSTER)]

    assert kept == [record.id for record, phase in phases.items() if phase is not Phase.GONE]


def test_slots_come_in_ascending_order(bench: Bench) -> None:
    bench.create(*(a_slot(number) for number in (10, 2, 0)), a_slot(1, cluster=ELSEWHERE))

    assert [stored.value.number for stored in bench.store.slots(CLUSTER)] == [0, 2, 10]


def test_an_unreadable_record_does_not_hide_the_others(bench: Bench) -> None:
    unreadable, sound = slices(2)
    bench.create(unreadable, sound)
    bench.edit(unreadable, schema=99)

    assert bench.store.due_slices(NOW, 10) == (sound,)
    assert [stored.value for stored in bench.store.kept_slices(CLUSTER)] == [sound]
    with pytest.raises(Permanent, match="schema: 99"):
        bench.slice(unreadable)


def test_chips_are_summed_up_by_namespace_and_cluster(bench: Bench) -> None:
    held = {"create_requested_at": NOW}
    bench.create(
        a_record(**held),
        a_record(job=a_job(job_index=1), **held),
        a_record(job=a_job(job_index=2)),
        a_record(job=a_job(job_index=3), phase=Phase.GONE, **held),
        a_record(job=a_job(namespace="vision", uid="uid-vision"), **held),
        a_record(job=a_job(cluster=ELSEWHERE), **held),
    )
    chips = a_spec().chips
    assert bench.store.chips_held(CLUSTER, "research") == 2 * chips
    assert bench.store.chips_held(CLUSTER) == 3 * chips
    assert bench.store.chips_held(CLUSTER, "nobody") == 0


def test_every_slice_is_listed_including_gone_ones(bench: Bench) -> None:
    kept, gone, elsewhere = (
        a_record(),
        a_record(job=a_job(job_index=1), phase=Phase.GONE),
        a_record(job=a_job(cluster=ELSEWHERE)),
    )
    bench.create(kept, gone, elsewhere)
    assert {stored.value.id for stored in bench.store.every_slice(CLUSTER)} == {kept.id, gone.id}
