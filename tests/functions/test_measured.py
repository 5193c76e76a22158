"""The numbers that log lines carry for metrics."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.builders import CLUSTER, MINUTE, NOW, a_job, a_record, an_occupant, settings, some_hosts
from tests.conftest import Lines
from tests.flows.swept import serving
from tests.functions.test_handlers import an_event
from tests.journeys.spares.test_spares import ONE, with_spares
from tests.world import World
from tpu_slices.app.handlers import handle_receive, handle_reconcile, handle_sweep
from tpu_slices.domain.model.capacity import Warm
from tpu_slices.domain.model.facts import Fact, WorkloadState
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import ClaimId, ClusterId, SliceId, claim_id, slice_id
from tpu_slices.domain.reconciling.inventory import INVENTORY_CHECK_EVERY
from tpu_slices.flows.looking import NOTHING, Told
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.errors import Permanent
from tpu_slices.ports.log_events import MEASURED, LogEvent
from tpu_slices.ports.store import Change
from tpu_slices.wire.documents import key_of
from tpu_slices.wire.messages import Message, encode_answer, encode_fact, encode_reconcile_request
from tpu_slices_simulator.fakes.backend import Trouble, Verb
from tpu_slices_simulator.fakes.store import FakeStore


def reconcile_by_handler(cluster: ClusterId, slice_: ClaimId, deps: ReconcileDeps, told: Told = NOTHING) -> tuple[()]:
    if told.answer:
        request = encode_answer(cluster, SliceId(slice_), told.answer)
    else:
        request = encode_reconcile_request(cluster, slice_)
    handle_reconcile(an_event("requests-demo", request), deps)
    return ()


def receive_by_handler(fact: Fact, cluster: ClusterId, deps: ReconcileDeps, published_at: datetime) -> None:
    handle_receive(an_event(f"facts-{cluster}", encode_fact(fact), publishTime=published_at.isoformat()), deps)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """Return a world whose facts and reconciles are logged."""
    monkeypatch.setattr("tpu_slices_simulator.system.reconcile_in_turn", reconcile_by_handler)
    monkeypatch.setattr("tpu_slices_simulator.system.receive", receive_by_handler)
    return World()


def ready_times(lines: list[dict[str, Any]]) -> list[float]:
    return [line["ready_seconds"] for line in lines if "ready_seconds" in line]


def test_that_hosts_stay_away_for_longer_than_is_normal_is_logged_once(world: World, lines: Lines) -> None:
    record = world.record(serving(world))
    world.backend.upgrade(record.pool)
    world.settle(minutes=3 * 60)
    assert not [line for line in lines() if line["event"] == LogEvent.HOSTS_LATE]
    world.settle(minutes=2 * 60)
    (late,) = [line for line in lines() if line["event"] == LogEvent.HOSTS_LATE]
    assert (late["severity"], late["slice"], late["cause"]) == ("ERROR", record.name, "UPGRADE")
    assert "GKE upgrades the node pool" in late["message"]


@pytest.mark.parametrize("forbidden", [False, True])
def test_that_a_creation_could_not_be_cancelled_is_a_warning_if_a_permission_is_missing(
    world: World, lines: Lines, forbidden: bool
) -> None:
    jobset = world.jobset_appears()
    world.settle(minutes=10, until=lambda: world.pools != [])
    if forbidden:
        world.backend.trouble(Trouble.FORBIDDEN, Verb.CANCEL)
    world.ends(jobset, WorkloadState.DELETED)
    for _ in range(3):
        world.steps()
        world.clock.advance(MINUTE)
        world.sweeps()
    assert [call.verb for call in world.backend.calls].count(Verb.CANCEL) == 1
    told = [line for line in lines() if line["event"] == LogEvent.CANCELLATION_REFUSED]
    assert [line["severity"] for line in told] == (["WARNING"] if forbidden else [])
    record = world.record(jobset)
    assert ("container.clusters.update" in record.message) is forbidden
    assert all((line["slice"], line["attempt"]) == (record.name, 1) for line in told)


def test_how_long_a_slice_was_awaited_is_logged_once(world: World, lines: Lines) -> None:
    jobset = serving(world)
    record = world.record(jobset)
    (seconds,) = ready_times(lines())
    assert seconds == (record.since - record.created_at).total_seconds() > 0

    world.suspends(jobset)
    world.settle()
    resumed_at = world.clock.now()
    world.resumes(jobset)
    world.settle(minutes=10, until=lambda: world.record(jobset).phase is Phase.READY)
    world.settle(minutes=2)

    (seconds,) = ready_times(lines())
    assert 0 < seconds <= (world.record(jobset).since - resumed_at).total_seconds()


def test_a_pool_that_is_found_was_not_awaited(world: World, lines: Lines) -> None:
    lost = world.record(serving(world))
    world.store.remove_document(key_of(lost))
    lines()

    world.settle(minutes=30, until=lambda: lost.name in world.records and world.records[lost.name].phase is Phase.READY)

    assert world.records[lost.name].phase is Phase.READY
    assert ready_times(lines()) == []


def swept(world: World, lines: Lines, event: LogEvent) -> list[dict[str, Any]]:
    """Return the lines of an event that one sweep of each cluster logs."""
    lines()
    for cluster in world.store.clusters():
        handle_sweep(an_event(f"ticks-{cluster}", Message(b"{}", {})), world.deps)
    return [line for line in lines() if line["event"] == event]


def numbers(line: dict[str, Any]) -> dict[str, Any]:
    return {name: line[name] for name in MEASURED[LogEvent(line["event"])]}


def test_each_sweep_counts_the_slices_and_chips_of_each_cluster(world: World, lines: Lines) -> None:
    world.store.put_settings(settings(cluster=ClusterId("zoo"), path=settings().path.replace("/demo", "/zoo")))
    serving(world, slices=2)

    counts = {line["cluster"]: numbers(line) for line in swept(world, lines, LogEvent.CLUSTER_COUNTED)}

    assert set(counts) == {CLUSTER, "zoo"}
    none = dict.fromkeys(MEASURED[LogEvent.CLUSTER_COUNTED], 0)
    assert counts[CLUSTER] == {**none, "ready": 2, "chips_bought": 32, "chips_held": 32}
    assert set(counts["zoo"].values()) == {0}


def test_what_is_counted(world: World, lines: Lines) -> None:
    ready = {"phase": Phase.READY, "create_requested_at": NOW, "hosts": some_hosts()}
    releasing = {"phase": Phase.RELEASING, "since": NOW - 7 * MINUTE}
    records: list[dict[str, Any]] = [
        *({"phase": phase} for phase in (Phase.QUEUED, Phase.PROVISIONING, Phase.WAITING, Phase.REFUSED, Phase.GONE)),
        {**ready},
        {**ready, "hosts": some_hosts(occupants=(an_occupant(),))},
        {**releasing, "reason": Reason.DELETION_STARTED},
        {**releasing, "since": NOW - 90 * MINUTE, "reason": Reason.OCCUPIED},
        {"phase": Phase.BLOCKED, "reason": Reason.UNOWNED_POOL},
        {"phase": Phase.BLOCKED, "reason": Reason.HELD, "since": NOW - 3 * MINUTE},
        {"phase": Phase.BLOCKED, "reason": Reason.PAUSED},
    ]
    for index, fields in enumerate(records):
        record = a_record(job=a_job(job_index=index), **{"next_reconcile_at": None, **fields})
        world.store.commit(Change(None, record))

    (line,) = swept(world, lines, LogEvent.CLUSTER_COUNTED)

    assert numbers(line) == {
        "queued": 1,
        "provisioning": 1,
        "waiting": 1,
        "ready": 2,
        "releasing": 2,
        "refused": 1,
        "blocked": 1,
        "on_hold": 2,
        "warm": 0,
        "spares": 0,
        "chips_bought": 32,
        "chips_held": 32,
        "chips_idle": 16,
        "idle_percent": 50,
        "releasing_seconds": 7 * 60 + (world.clock.now() - NOW).total_seconds(),
        "held_seconds": 3 * 60 + (world.clock.now() - NOW).total_seconds(),
        "paid_seconds": 0,
    }


def test_what_is_kept_for_the_next_claim_is_counted(world: World, lines: Lines) -> None:
    world.store.put_settings(with_spares(ONE, warm=Warm(lasts=timedelta(hours=1))))
    for index, reason in enumerate((Reason.WARM, Reason.SPARE, Reason.SPARE)):
        kept = a_record(job=a_job(job_index=index), phase=reason.phase, reason=reason, next_reconcile_at=None)
        world.store.commit(Change(None, kept))
    (line,) = swept(world, lines, LogEvent.CLUSTER_COUNTED)
    assert (numbers(line)["warm"], numbers(line)["spares"]) == (1, 2)


def test_a_cluster_whose_count_fails_is_told_and_the_others_are_counted(
    world: World, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.store.put_settings(settings(cluster=ClusterId("zoo"), path=settings().path.replace("/demo", "/zoo")))
    held = type(world.store).chips_held

    def without_index(store: FakeStore, cluster: ClusterId) -> tuple[int, int]:
        if cluster == CLUSTER:
            raise Permanent("the query requires an index")
        return held(store, cluster)

    monkeypatch.setattr(FakeStore, "chips_held", without_index)

    assert [line["cluster"] for line in swept(world, lines, LogEvent.CLUSTER_COUNTED)] == ["zoo"]
    (failed,) = swept(world, lines, LogEvent.SWEEP_FAILED)
    assert failed["error"] == "demo: counts: the query requires an index"


def test_an_inventory_check_logs_what_it_found_once(world: World, lines: Lines) -> None:
    lost = world.record(serving(world))
    world.store.remove_document(key_of(lost))
    world.clock.advance(INVENTORY_CHECK_EVERY)

    (found,) = swept(world, lines, LogEvent.INVENTORY_CHECKED)

    assert (found["cluster"], numbers(found)) == (CLUSTER, {"orphans": 1, "ownerless": 0})
    assert swept(world, lines, LogEvent.INVENTORY_CHECKED) == []


def test_the_slice_that_is_paid_for_without_use_longest_is_named(world: World, lines: Lines) -> None:
    creating = {"phase": Phase.PROVISIONING, "reason": Reason.CREATING, "next_reconcile_at": None}
    for index, minutes in enumerate((20, 50)):
        job = a_job(job_index=index)
        record = a_record(job=job, create_requested_at=NOW - minutes * MINUTE, **creating)
        world.store.commit(Change(None, record))

    (line,) = swept(world, lines, LogEvent.CLUSTER_COUNTED)

    assert line["paid_slice"] == slice_id(claim_id(a_job(job_index=1)), 1)
    assert line["paid_seconds"] == 50 * 60 + (world.clock.now() - NOW).total_seconds()
