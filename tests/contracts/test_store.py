"""How every `SliceStore` writes: the fake, and the real one on the Firestore emulator."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from tests.builders import CLUSTER, NOW, a_job, a_jobset, a_record, settings, unclaimed
from tests.contracts.stores import ELSEWHERE, Bench, a_limiter, a_slot
from tpu_slices.domain.model.facts import Family
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import ClaimId, SliceId, WorkloadUid, claim_id
from tpu_slices.domain.records.awaited import Shortage
from tpu_slices.domain.records.brakes import Brake, Stop
from tpu_slices.domain.records.heartbeats import Compared, RelayHeartbeat
from tpu_slices.domain.records.limiters import Budget, CapacityPool, ConcurrencyLimiter, Slot
from tpu_slices.domain.records.reservations import (
    BlockSeen,
    Reservation,
    ReservationPlace,
    ReservationSeen,
    ReservationState,
)
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.domain.reporting.reports import report
from tpu_slices.domain.reporting.waits import QueueState
from tpu_slices.ports.errors import Permanent, StaleRecord, Temporary
from tpu_slices.ports.store import CLAIMS_AT_ONCE, Change, Names, Record, SliceStore, Stored, moved
from tpu_slices.wire.cluster_settings import encode_settings, settings_key
from tpu_slices.wire.documents import encode, key_of
from tpu_standins.patience import PATIENCE_SECONDS

STOP = Stop(since=NOW, stopped_at=NOW, ended=12, live=3, chips=240)
REPORT = report(a_jobset(), [a_record()], QueueState(), NOW)
NONE = SliceId("tpu-none-0-aaaaaaaaaaaaa-1")
EVERY_KIND = [
    a_record(pinned_settings=settings().pools),
    a_jobset(),
    a_jobset(queue="team-a", report=REPORT, next_report_at=NOW, announced_at=NOW, announced_count=3),
    a_slot(),
    a_limiter(
        shortages={
            CapacityPool("us-central2-b/tpu-v4-podslice/projects/example.com:p/reservations/r`1"): Shortage(
                at=NOW, reason=Reason.RESERVATION_AWAITED, again_at=NOW
            )
        },
        reservations={
            CapacityPool("us-central2-b/tpu-v4-podslice/projects/example.com:p/reservations/r`1"): Reservation(
                place=ReservationPlace("example.com:p", "us-central2-b", "r`1", "b"),
                seen=ReservationSeen(
                    state=ReservationState.READY,
                    ends_at=NOW,
                    count=8,
                    in_use=4,
                    blocks=(BlockSeen(name="b", count=8, in_use=4),),
                ),
                seen_at=NOW,
                needed_at=NOW,
                next_look_at=NOW,
            )
        },
    ),
    Budget(cluster=CLUSTER, creations=3, changed_at=NOW),
    Brake(cluster=CLUSTER, whole=STOP, namespaces={"research": STOP, "team-a.b": STOP}),
    RelayHeartbeat(
        cluster=CLUSTER,
        received_at=NOW,
        count=2,
        families={family: Compared(parts=(NOW, NOW), asked_at=NOW) for family in Family},
        next_inventory_check_at=NOW,
    ),
]


def read(store: SliceStore, record: Record) -> Stored[Any] | None:
    match record:
        case SliceRecord():
            return store.slices(CLUSTER, [record.id]).get(record.id)
        case WorkloadRecord():
            return store.workloads(CLUSTER, [record.owner.uid]).get(record.owner.uid)
        case Slot():
            return next(iter(store.slots(CLUSTER)), None)
        case ConcurrencyLimiter():
            return store.limiter(CLUSTER)
        case Budget():
            return store.budget(CLUSTER)
        case Brake():
            return store.brake(CLUSTER)
        case RelayHeartbeat():
            return store.heartbeat(CLUSTER)


def test_what_is_read_together_is_what_each_of_it_is_by_itself_and_nothing_else(bench: Bench) -> None:
    store, slice_, workload = bench.store, a_record(), a_jobset()
    other, limiter, heartbeat = a_record(job=a_job(job_index=1)), a_limiter(), RelayHeartbeat.of(CLUSTER)
    brake = Brake(cluster=CLUSTER, whole=STOP)
    bench.create(slice_, other, workload, limiter, heartbeat, brake, a_slot(number=2), a_slot(number=10))
    bench.console.put_document(settings_key(CLUSTER), encode_settings(settings()))
    bench.edit(other, phase="UNKNOWN")
    uids, ids = [workload.owner.uid, WorkloadUid("uid-unknown")], [slice_.id, other.id, NONE]

    names = Names(settings=True, slices=ids, workloads=uids, heartbeat=True, limiter=True, brake=True, slots=True)
    every = store.together(CLUSTER, names)
    assert every.settings == store.settings(CLUSTER) is not None
    assert (every.heartbeat, every.limiter) == (store.heartbeat(CLUSTER), store.limiter(CLUSTER))
    assert every.brake == store.brake(CLUSTER) is not None
    assert every.slots == store.slots(CLUSTER)
    assert [slot.value.number for slot in every.slots or ()] == [2, 10]
    assert {*every.slices} == {slice_.id}
    assert every.slices[slice_.id] == bench.slice(slice_)
    assert every.slices.unreadable == store.slices(CLUSTER, ids).unreadable != {}
    assert dict(every.workloads) == {workload.owner.uid: bench.jobset(workload)}

    none = store.together(CLUSTER, Names())
    assert (none.settings, none.heartbeat, none.limiter, none.brake, none.slots) == (None, None, None, None, None)
    assert (len(none.slices), len(none.workloads)) == (0, 0)


def test_settings_that_cannot_be_read_are_an_error_of_whoever_reads_them_with_others(bench: Bench) -> None:
    bench.console.put_document(settings_key(CLUSTER), {"path": 7})
    bench.create(record := a_record())
    assert {*bench.store.together(CLUSTER, Names(slices=[record.id])).slices} == {record.id}
    with pytest.raises(Permanent, match="path"):
        bench.store.together(CLUSTER, Names(settings=True, slices=[record.id]))


@pytest.mark.parametrize("record", EVERY_KIND, ids=lambda record: type(record).__name__)
def test_every_kind_of_record_is_created_read_and_deleted(bench: Bench, record: Record) -> None:
    assert read(bench.store, record) is None

    bench.create(record)
    stored = read(bench.store, record)
    assert stored is not None
    assert stored.value == record

    bench.store.commit(Change(stored, None))
    assert read(bench.store, record) is None


def test_many_records_are_read_in_one_call_and_unknown_ids_are_left_out(bench: Bench) -> None:
    known, other, elsewhere = a_record(), a_record(job=a_job(job_index=1)), a_record(job=a_job(cluster=ELSEWHERE))
    bench.create(known, other, elsewhere)

    found = bench.store.slices(CLUSTER, [known.id, other.id, elsewhere.id, NONE])

    assert {id_: stored.value for id_, stored in found.items()} == {known.id: known, other.id: other}
    assert bench.store.slices(CLUSTER, []) == {}
    assert bench.store.workloads(CLUSTER, [WorkloadUid("unknown")]) == {}


def test_a_record_that_cannot_be_read_hides_no_other_read_by_name(bench: Bench) -> None:
    unreadable, sound = a_record(), a_record(job=a_job(job_index=1))
    broken, live = a_jobset(), a_jobset(uid=WorkloadUid("uid-live"))
    bench.create(unreadable, sound, broken, live)
    bench.edit(unreadable, schema=99)
    bench.edit(broken, state="GONE FISHING")

    slices = bench.store.slices(CLUSTER, [unreadable.id, sound.id, NONE])
    workloads = bench.store.workloads(CLUSTER, [broken.owner.uid, live.owner.uid])

    assert [stored.value for stored in slices.values()] == [sound]
    assert [stored.value for stored in workloads.values()] == [live]
    assert (set(slices.unreadable), set(workloads.unreadable)) == ({unreadable.id}, {broken.owner.uid})


def test_slices_are_found_by_the_claims_that_have_them(bench: Bench) -> None:
    jobs = [a_job(job_index=index) for index in range(CLAIMS_AT_ONCE + 5)]
    having = [a_record(job=job, attempt=1 + job.job_index % 3) for job in jobs]
    elsewhere = a_record(job=a_job(cluster=ELSEWHERE))
    bench.create(*having, unclaimed(a_record(job=a_job(job_index=99))), elsewhere)

    asked = [*(record.maker for record in having), elsewhere.maker, claim_id(a_job(job_index=99))]
    found = bench.store.having(CLUSTER, asked)

    assert {claim: stored.value for claim, stored in found.items()} == {record.maker: record for record in having}
    assert found == bench.store.together(CLUSTER, Names(claims=asked)).having
    assert found[having[3].maker] == bench.slice(having[3])
    assert not found.unreadable
    assert not bench.store.having(CLUSTER, [])


def test_of_a_claim_with_two_slices_or_one_that_cannot_be_read_nothing_is_found(bench: Bench) -> None:
    unreadable, twice = a_record(), a_record(job=a_job(job_index=1))
    again = a_record(job=a_job(job_index=1), attempt=2)
    bench.create(unreadable, twice, again)
    bench.edit(unreadable, schema=99)

    found = bench.store.having(CLUSTER, [unreadable.maker, twice.maker])

    assert found.unreadable.keys() == {unreadable.maker, twice.maker}
    assert [*found] == [], "a list of what was found leaves both out"
    with pytest.raises(Permanent, match=rf"slices/demo.{unreadable.id}: schema: 99"):
        found.get(unreadable.maker)
    with pytest.raises(Permanent, match=rf"slices/demo.{again.id}: claimed_by: slices/demo.{twice.id} has the same"):
        found.get(twice.maker)


def test_a_slice_has_its_claim_no_more_once_that_is_written(bench: Bench) -> None:
    had = a_record()
    bench.create(had)
    assert bench.store.having(CLUSTER, [had.maker])
    bench.store.commit(*moved(bench.slice(had), a_record(attempt=2), unclaimed(had)))
    assert bench.store.having(CLUSTER, [had.maker])[had.maker].value.attempt == 2


def test_a_record_that_cannot_be_read_is_never_absent(bench: Bench) -> None:
    bench.create(a_record())
    bench.edit(a_record(), schema=99)
    found = bench.store.slices(CLUSTER, [a_record().id, NONE])

    assert found.get(NONE) is None
    for ask in (found.get, found.__getitem__, found.__contains__):
        with pytest.raises(Permanent, match=rf"slices/demo.{a_record().id}: schema: 99"):
            ask(a_record().id)


def test_a_document_of_another_record_is_not_read_as_this_one(bench: Bench) -> None:
    elsewhere = a_record(job=a_job(cluster=ELSEWHERE))
    bench.console.put_document(key_of(a_record()), encode(elsewhere))
    bench.console.put_document(key_of(a_jobset()), encode(a_jobset(cluster=ELSEWHERE)))

    with pytest.raises(Permanent, match=rf"holds the record slices/elsewhere.{elsewhere.id}"):
        bench.slice(a_record())
    with pytest.raises(Permanent, match=r"holds the record workloads/elsewhere.uid-llama"):
        bench.jobset(a_jobset())
    assert list(bench.store.kept_slices(ELSEWHERE)) == []


def test_an_existing_record_is_not_created_again(bench: Bench) -> None:
    bench.create(a_record())

    with pytest.raises(StaleRecord):
        bench.create(a_record(note="second"))

    assert bench.slice(a_record()).value == a_record()


def test_a_write_over_a_newer_revision_is_refused(bench: Bench) -> None:
    bench.create(a_record())
    first = bench.slice(a_record())
    bench.store.commit(Change(first, a_record(note="edit 2")))

    with pytest.raises(StaleRecord):
        bench.store.commit(Change(first, a_record(note="edit 3")))
    with pytest.raises(StaleRecord):
        bench.store.commit(Change(first, None))

    assert bench.slice(a_record()).value.note == "edit 2"


def test_a_record_deleted_meanwhile_is_neither_written_nor_deleted_again(bench: Bench) -> None:
    bench.create(a_slot())
    (read_before,) = bench.store.slots(CLUSTER)
    bench.store.commit(Change(read_before, None))

    with pytest.raises(StaleRecord):
        bench.store.commit(Change(read_before, a_slot(attempt=2)))
    with pytest.raises(StaleRecord):
        bench.store.commit(Change(read_before, None))

    assert bench.store.slots(CLUSTER) == ()


def test_a_record_that_was_deleted_and_recreated_has_another_revision(bench: Bench) -> None:
    bench.create(a_slot())
    (earlier,) = bench.store.slots(CLUSTER)
    bench.store.commit(Change(earlier, None))
    bench.create(a_slot())

    with pytest.raises(StaleRecord):
        bench.store.commit(Change(earlier, None))


def test_the_revision_that_a_commit_returns_allows_the_next_write(bench: Bench) -> None:
    made, _ = bench.store.commit(Change(None, a_record()), Change(None, a_slot()))
    written = a_record(note="edit 2")
    (changed,) = bench.store.commit(Change(Stored(a_record(), made), written))
    (unchanged,) = bench.store.commit(Change(Stored(written, changed), written))

    assert bench.slice(written) == Stored(written, unchanged)
    assert bench.store.commit(Change(Stored(written, unchanged), None)) == ("",)


def test_one_stale_change_prevents_the_whole_commit(bench: Bench) -> None:
    bench.create(a_record(), a_jobset())
    stale = bench.slice(a_record())
    bench.edit(a_record(), hold=True)

    with pytest.raises(StaleRecord):
        bench.store.commit(
            Change(None, a_slot()),
            Change(bench.jobset(a_jobset()), a_jobset(generation=2)),
            Change(stale, a_record(note="edit 2")),
        )

    assert bench.store.slots(CLUSTER) == ()
    assert bench.jobset(a_jobset()).value.generation == 1


def test_an_empty_commit_does_nothing(bench: Bench) -> None:
    assert bench.store.commit() == ()


def test_a_change_of_two_documents_or_none_is_an_error(bench: Bench) -> None:
    bench.create(a_record())

    with pytest.raises(ValueError, match="one document"):
        bench.store.commit(Change(bench.slice(a_record()), a_record(job=a_job(job_index=1))))
    with pytest.raises(ValueError, match="one document"):
        bench.store.commit(Change(None, None))


def test_a_key_removed_from_a_map_is_removed_from_the_document(bench: Bench) -> None:
    mine, other = claim_id(a_job()), claim_id(a_job(job_index=1))
    bench.create(a_jobset(demand={mine: NOW, other: None}))
    bench.store.commit(Change(bench.jobset(a_jobset()), a_jobset(demand={other: NOW})))
    assert bench.jobset(a_jobset()).value.demand == {other: NOW}

    bench.store.commit(Change(bench.jobset(a_jobset()), a_jobset(demand={})))
    assert bench.jobset(a_jobset()).value.demand == {}


def test_a_field_that_an_operator_added_is_kept_and_never_read(bench: Bench) -> None:
    bench.create(a_record())
    bench.edit(a_record(), ticket="see #42")
    bench.store.commit(Change(bench.slice(a_record()), a_record(note="edit 2")))

    assert bench.slice(a_record()).value == a_record(note="edit 2")
    assert (bench.console.document(key_of(a_record())) or {})["ticket"] == "see #42"


def test_an_operators_edit_is_read_and_is_a_new_revision(bench: Bench) -> None:
    bench.create(a_record())
    before = bench.slice(a_record())
    bench.edit(a_record(), hold=True, note="waiting for the vendor")

    assert bench.slice(a_record()).value == a_record(hold=True, note="waiting for the vendor")
    with pytest.raises(StaleRecord):
        bench.store.commit(Change(before, a_record(note="edit 2")))


def in_threads(count: int, act: Callable[[int], int]) -> list[int]:
    start = threading.Barrier(count)

    def one(number: int) -> int:
        start.wait(PATIENCE_SECONDS)
        return act(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def test_of_eight_concurrent_creations_one_succeeds(bench: Bench) -> None:
    def take(number: int) -> int:
        name = ClaimId(f"tpu-{number}-aaaaaaaaaaaaa")
        try:
            bench.create(a_slot(slice_id=name))
        except StaleRecord:
            return 0
        except Temporary:  # whether it is created is not known
            taken = [slot.value.slice_id for slot in bench.store.slots(CLUSTER)]
            return int(taken == [name]) if taken else take(number)
        return 1

    assert sum(in_threads(8, take)) == 1


def test_eight_concurrent_writers_lose_no_update(bench: Bench) -> None:
    bench.create(a_limiter(limit=0))

    def count_up(_: int) -> int:
        before = bench.store.limiter(CLUSTER)
        assert before is not None
        try:
            bench.store.commit(Change(before, replace(before.value, limit=before.value.limit + 1)))
        except Temporary:
            return count_up(_)
        return 1

    in_threads(8, lambda number: sum(count_up(number) for _ in range(4)))

    after = bench.store.limiter(CLUSTER)
    assert after is not None
    assert after.value.limit == 32
