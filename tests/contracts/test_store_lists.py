"""What every `SliceStore` lists: the fake, and the real one on the Firestore emulator."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from tests.builders import CLUSTER, MINUTE, NOW, a_job, a_jobset, a_record, a_spec, an_occupant, some_hosts
from tests.contracts.stores import ELSEWHERE, Bench, a_slot, slices
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import ClusterId, WorkloadUid
from tpu_slices.domain.records.standings import Standing
from tpu_slices.domain.records.workloads import ReportQueue, WorkloadRecord
from tpu_slices.ports.errors import Permanent
from tpu_slices.ports.store import Change


def test_workloads_of_slices_that_changed_lately_come_once_each_the_earliest_change_first(bench: Bench) -> None:
    changes: dict[str, list[datetime | None]] = {
        "a": [NOW, None],
        "b": [NOW - 2 * MINUTE, NOW - MINUTE, NOW],
        "long-ago": [NOW - 3 * MINUTE],
        "never": [None],
    }
    for uid, times in changes.items():
        for index, at in enumerate(times):
            bench.create(a_record(job=a_job(uid=WorkloadUid(uid), job_index=index), changed_at=at))
    bench.create(a_record(job=a_job(cluster=ELSEWHERE, uid=WorkloadUid("elsewhere")), changed_at=NOW))

    assert bench.store.changed_workloads(CLUSTER, NOW - 3 * MINUTE, 10) == ("b", "a")
    assert bench.store.changed_workloads(CLUSTER, NOW - MINUTE, 10) == ("a", "b")
    assert bench.store.changed_workloads(CLUSTER, NOW - 3 * MINUTE, 2) == ("b", "a"), "however many slices one has"
    assert bench.store.changed_workloads(CLUSTER, NOW - 3 * MINUTE, 1) == ("b",)
    assert bench.store.changed_workloads(CLUSTER, NOW - 3 * MINUTE, 0) == (), "others' reports left no room"


def a_due_report(uid: str, **changes: Any) -> WorkloadRecord:
    return a_jobset(**{"uid": WorkloadUid(uid), "next_report_at": NOW, **changes})


def test_report_queues_are_first_those_of_first_reports_then_those_longest_due(bench: Bench) -> None:
    bench.create(
        a_due_report("renewed", namespace="research", announced_count=3, next_report_at=NOW - 9 * MINUTE),
        a_due_report("renewed-later", namespace="art", announced_count=1, next_report_at=NOW - 8 * MINUTE),
        a_due_report("first-a", namespace="research"),
        a_due_report("first-b", namespace="research", next_report_at=NOW - MINUTE),
        a_due_report("first-c", namespace="vision", next_report_at=NOW - 2 * MINUTE),
        a_due_report("future", namespace="web", next_report_at=NOW + MINUTE),
        a_due_report("settled", namespace="yoga", next_report_at=None),
        a_due_report("elsewhere", namespace="zoo", cluster=ELSEWHERE),
        a_due_report("alike", namespace="zoo", cluster=ClusterId(f"{CLUSTER}-2")),
    )

    assert bench.store.report_queues(CLUSTER, NOW) == (
        ReportQueue(CLUSTER, "vision", first=True),
        ReportQueue(CLUSTER, "research", first=True),
        ReportQueue(CLUSTER, "research", first=False),
        ReportQueue(CLUSTER, "art", first=False),
    )
    assert bench.store.report_queues(ClusterId("nobody"), NOW) == ()


def test_due_reports_of_a_queue_come_longest_due_first(bench: Bench) -> None:
    next_report_at = {"b": NOW, "a": NOW - MINUTE, "settled": None, "future": NOW + MINUTE}
    bench.create(*(a_due_report(uid, next_report_at=at) for uid, at in next_report_at.items()))
    bench.create(a_due_report("renewed", announced_count=1), a_due_report("vision", namespace="vision"))
    queue = ReportQueue(CLUSTER, "research", first=True)

    assert [stored.value.owner.uid for stored in bench.store.due_reports(queue, NOW, 10)] == ["a", "b"]
    (first,) = bench.store.due_reports(queue, NOW, 1)
    assert first == bench.jobset(a_due_report("a"))


def test_a_report_that_is_announced_moves_to_the_queue_of_renewals(bench: Bench) -> None:
    bench.create(a_due_report("a"))
    before = bench.jobset(a_due_report("a"))
    bench.store.commit(Change(before, replace(before.value, announced_count=1)))

    assert bench.store.report_queues(CLUSTER, NOW) == (ReportQueue(CLUSTER, "research", first=False),)


def test_records_that_cannot_be_read_do_not_fill_a_page(bench: Bench) -> None:
    *unreadable, sound = slices(6)
    bench.create(*(replace(record, next_reconcile_at=NOW - MINUTE) for record in unreadable), sound)
    for record in unreadable:
        bench.edit(record, schema=99)

    assert [stored.value for stored in bench.store.due_slices(CLUSTER, NOW, 1)] == [sound]


def test_clusters_with_slices_are_those_that_have_one_that_is_not_gone(bench: Bench) -> None:
    bench.create(
        *slices(3),
        a_record(job=a_job(cluster=ELSEWHERE), phase=Phase.READY, next_reconcile_at=None),
        a_record(job=a_job(cluster=ClusterId("past")), phase=Phase.GONE),
    )

    assert bench.store.clusters_with_slices() == (CLUSTER, ELSEWHERE)
    assert [bench.store.slice_count(cluster) for cluster in (CLUSTER, ELSEWHERE, ClusterId("past"))] == [3, 1, 0]


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


MANY = sorted(
    WorkloadUid(uid) for uid in ("0", "00", "9", "A", "Z", "a", "a-", "a.b", "a_b", "aa", "u-1", "u-10", "u-2")
)


def test_live_uids_of_a_range_come_in_ascending_order(bench: Bench) -> None:
    bench.create(*(a_jobset(uid=uid) for uid in reversed(MANY)))
    bench.create(a_jobset(uid=WorkloadUid("a0"), state=WorkloadState.FAILED), a_jobset(cluster=ELSEWHERE))

    def live(after: WorkloadUid | None = None, up_to: WorkloadUid | None = None) -> list[WorkloadUid]:
        return [uid for uid, _ in bench.store.live_standings(CLUSTER, after, up_to)]

    assert live() == MANY
    for start, end in ((0, 4), (3, 9), (5, 6), (0, 13), (12, 13)):
        after, up_to = MANY[start], MANY[end - 1]
        assert live(after, up_to) == MANY[start + 1 : end]
        assert live(None, up_to) == MANY[:end]
        assert live(after) == MANY[start + 1 :]
    assert live(WorkloadUid("a0"), WorkloadUid("b")) == ["a_b", "aa"]


def test_the_uid_of_a_record_that_cannot_be_read_is_listed_like_any_other(bench: Bench) -> None:
    bench.create(a_jobset(uid=WorkloadUid("a")), a_jobset(uid=WorkloadUid("b")))
    bench.edit(a_jobset(uid=WorkloadUid("a")), schema=99)

    assert [uid for uid, _ in bench.store.live_standings(CLUSTER)] == ["a", "b"]


def test_a_record_s_standing_is_that_of_what_was_told_of_its_workload(bench: Bench) -> None:
    for told in (
        {"state": WorkloadState.ACTIVE},
        {"state": WorkloadState.SUSPENDED, "queue": "queue", "template_error": "no topology"},
        {"state": WorkloadState.ACTIVE, "groups": 0},
    ):
        record = a_jobset(uid=WorkloadUid("u-1"), **told)
        bench.create(record)
        stands = Standing(record.standing, record.state is WorkloadState.ACTIVE)
        assert list(bench.store.live_standings(CLUSTER)) == [("u-1", stands)]
        (stored,) = bench.store.live_workloads(CLUSTER)
        bench.store.commit(Change(stored, None))


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

    assert [stored.value for stored in bench.store.due_slices(CLUSTER, NOW, 10)] == [sound]
    assert [stored.value for stored in bench.store.kept_slices(CLUSTER)] == [sound]
    with pytest.raises(Permanent, match="schema: 99"):
        bench.slice(unreadable)


def test_chips_are_summed_up_by_namespace_and_cluster(bench: Bench) -> None:
    held = {"create_requested_at": NOW}
    bench.create(
        a_record(**held),
        a_record(job=a_job(job_index=1), **held),
        a_record(job=a_job(job_index=2)),
        a_record(job=a_job(job_index=3), phase=Phase.GONE),
        a_record(job=a_job(namespace="vision", uid="uid-vision"), **held),
        a_record(job=a_job(cluster=ELSEWHERE), **held),
    )
    chips = a_spec().chips
    assert bench.store.chips_bought(CLUSTER, "research") == 2 * chips
    assert bench.store.chips_bought(CLUSTER) == 3 * chips
    assert bench.store.chips_bought(CLUSTER, "nobody") == 0


def test_a_record_that_cannot_be_read_is_counted_and_summed_up(bench: Bench) -> None:
    """Or its chips would be bought once more."""
    unreadable = a_record(phase=Phase.READY, reason=Reason.READY, create_requested_at=NOW)
    bench.create(unreadable)
    bench.edit(unreadable, schema=99)
    assert bench.store.chips_bought(CLUSTER) == bench.store.chips_bought(CLUSTER, "research") == a_spec().chips
    assert bench.store.phase_count(CLUSTER, Phase.READY) == bench.store.reason_count(CLUSTER, {Reason.READY}) == 1
    assert bench.store.oldest_since(CLUSTER, {Reason.READY}) == unreadable.since


def test_chips_that_are_held_and_idle_are_summed_up_by_cluster(bench: Bench) -> None:
    ready = {"phase": Phase.READY, "create_requested_at": NOW, "hosts": some_hosts()}
    bench.create(
        a_record(**ready),
        a_record(job=a_job(job_index=1), **{**ready, "hosts": some_hosts(occupants=(an_occupant(),))}),
        a_record(job=a_job(job_index=2), create_requested_at=NOW),
        a_record(job=a_job(cluster=ELSEWHERE), **ready),
    )
    assert bench.store.chips_held(CLUSTER) == (2 * a_spec().chips, a_spec().chips)
    assert bench.store.chips_held(ClusterId("empty")) == (0, 0)


def test_slices_are_counted_by_phase_and_by_reasons(bench: Bench) -> None:
    standing = [
        (Phase.BLOCKED, Reason.HELD),
        (Phase.BLOCKED, Reason.PAUSED),
        (Phase.BLOCKED, Reason.UNOWNED_POOL),
        (Phase.GONE, Reason.RELEASED),
    ]
    bench.create(
        *(a_record(job=a_job(job_index=at), phase=phase, reason=why) for at, (phase, why) in enumerate(standing)),
        a_record(job=a_job(cluster=ELSEWHERE), phase=Phase.BLOCKED, reason=Reason.HELD),
    )
    counts = [bench.store.phase_count(CLUSTER, phase) for phase in (Phase.BLOCKED, Phase.GONE, Phase.READY)]
    assert counts == [3, 1, 0]
    assert bench.store.reason_count(CLUSTER, [Reason.HELD, Reason.PAUSED, Reason.READY]) == 2


def test_the_oldest_of_slices_is_found_by_their_reasons(bench: Bench) -> None:
    ages = {Reason.OCCUPIED: 9, Reason.DELETION_STARTED: 3, Reason.DELETION_QUEUED: 5}
    bench.create(
        *(
            a_record(job=a_job(job_index=at), phase=Phase.RELEASING, reason=reason, since=NOW - age * MINUTE)
            for at, (reason, age) in enumerate(ages.items())
        )
    )
    some = [Reason.DELETION_STARTED, Reason.DELETION_QUEUED]
    assert bench.store.oldest_since(CLUSTER, some) == NOW - 5 * MINUTE
    assert bench.store.oldest_since(CLUSTER, [Reason.USERS_UNKNOWN]) is None
    assert bench.store.oldest_since(ELSEWHERE, some) is None
    found = [each.value.reason for each in bench.store.for_reasons(CLUSTER, some, 5)]
    assert found == [Reason.DELETION_QUEUED, Reason.DELETION_STARTED]
    assert len(bench.store.for_reasons(CLUSTER, some, 1)) == 1
    assert bench.store.for_reasons(ELSEWHERE, some, 5) == ()


def test_the_slice_that_has_been_paid_for_without_use_longest_is_found(bench: Bench) -> None:
    creating = {"phase": Phase.PROVISIONING, "reason": Reason.CREATING}
    ages = (20, 50, 30)
    records = [
        a_record(job=a_job(job_index=at), create_requested_at=NOW - age * MINUTE, **creating)
        for at, age in enumerate(ages)
    ]
    bench.create(
        *records,
        a_record(job=a_job(job_index=4)),
        a_record(job=a_job(cluster=ELSEWHERE), create_requested_at=NOW - 90 * MINUTE, **creating),
    )
    assert bench.store.paid_longest(CLUSTER) == (records[1].id, NOW - 50 * MINUTE)
    assert bench.store.paid_longest(ClusterId("empty")) is None


def test_every_slice_is_listed_including_gone_ones(bench: Bench) -> None:
    kept, gone, elsewhere = (
        a_record(),
        a_record(job=a_job(job_index=1), phase=Phase.GONE),
        a_record(job=a_job(cluster=ELSEWHERE)),
    )
    bench.create(kept, gone, elsewhere)
    assert {stored.value.id for stored in bench.store.every_slice(CLUSTER)} == {kept.id, gone.id}
