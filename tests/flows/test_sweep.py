"""What the sweep does when a cluster is in trouble, and which records it looks at first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import CLUSTER, MINUTE, NOW, a_job, a_record, settings
from tests.conftest import Lines
from tests.flows.swept import being_created, requested, serving
from tests.functions.test_handlers import an_event
from tests.world import World
from tpu_slices.app.handlers import handle_sweep
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.reconciling.inventory import INVENTORY_CHECK_EVERY
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows import due
from tpu_slices.flows.sweep import sweep
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.wire.cluster_settings import settings_key
from tpu_slices.wire.documents import key_of
from tpu_slices.wire.messages import Message


@pytest.fixture
def world() -> World:
    return World()


# clusters in trouble


ERRORS = [
    Temporary("The service is currently unavailable."),
    Permanent("the cluster does not exist"),
    OverflowError("date value out of range"),
]


def with_another_cluster(world: World, cluster: ClusterId) -> None:
    path = f"projects/demo-project/locations/us-central2/clusters/{cluster}"
    world.store.put_settings(settings(cluster=cluster, path=path))


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("other", [ClusterId("ahead"), ClusterId("zoo")])
def test_a_sweep_goes_on_when_one_cluster_is_in_trouble(world: World, other: ClusterId, error: Exception) -> None:
    lost = world.record(serving(world))
    world.store.remove_document(key_of(lost))
    with_another_cluster(world, other)
    world.backend.unreadable[other] = error
    world.clock.advance(INVENTORY_CHECK_EVERY)

    swept = sweep(world.deps)

    assert set(world.records) == {lost.name}
    ((cluster, failed),) = ((failure.cluster, failure.error) for failure in swept.failures)
    assert (cluster, failed) == (other, error)


@pytest.mark.parametrize("step", ["request_due", "ask_for_lists"])
def test_what_failed_is_not_counted(world: World, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise Temporary("no answer")

    sweep(world.deps)
    monkeypatch.setattr(f"tpu_slices.flows.sweep.{step}", fails)
    swept = sweep(world.deps)
    assert (swept.requested, swept.asked, len(swept.failures)) == (0, 0, 1)


def test_a_cluster_whose_settings_cannot_be_read_stops_no_other(world: World) -> None:
    jobset = being_created(world, slices=1)
    other = ClusterId("ahead")
    world.store.put_document(settings_key(other), {"path": "nowhere"})
    world.operations_end()
    requested(world)

    swept = sweep(world.deps)

    assert requested(world) == {world.record(jobset).maker}
    assert [failure.cluster for failure in swept.failures] == [other]


def test_a_failed_sweep_of_a_cluster_is_logged_and_its_tick_is_not_redelivered(world: World, lines: Lines) -> None:
    with_another_cluster(world, ClusterId("other"))
    world.backend.unreadable = {
        CLUSTER: OverflowError("date value out of range"),
        ClusterId("other"): Temporary("later"),
    }

    handle_sweep(an_event("sweep-ticks", Message(b"{}", {})), world.deps)

    written = lines()
    failed = {line["cluster"]: line for line in written if line["event"] == LogEvent.SWEEP_FAILED}
    assert failed[CLUSTER]["severity"] == failed["other"]["severity"] == "ERROR"
    assert "date value out of range" in failed[CLUSTER]["error"]
    assert ("exception" in failed[CLUSTER], "exception" in failed["other"]) == (True, False)
    (completed,) = [line for line in written if line["event"] == LogEvent.SWEEP_COMPLETED]
    assert completed["failed"] == 2


def test_the_store_failing_as_a_whole_leaves_the_tick_to_redelivery(world: World) -> None:
    world.store.unavailable = True
    with pytest.raises(Temporary):
        handle_sweep(an_event("sweep-ticks", Message(b"{}", {})), world.deps)


# pages


STUCK = 3
"""Pages are made this small, and filled."""


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(due, "PAGE", STUCK)


def unsettled(cluster: ClusterId, count: int) -> list[SliceRecord]:
    return [
        a_record(job=a_job(cluster=cluster, job_index=index), next_reconcile_at=NOW - 60 * MINUTE)
        for index in range(count)
    ]


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("has_settings", [False, True], ids=["without settings", "with settings that cannot be read"])
def test_slices_of_a_cluster_that_nobody_can_sweep_fill_no_other_page(world: World, *, has_settings: bool) -> None:
    forgotten = ClusterId("forgotten")
    world.store.put(*unsettled(forgotten, 2 * STUCK))
    if has_settings:
        world.store.put_document(settings_key(forgotten), {"path": "nowhere"})
    record = world.record(being_created(world, slices=1))
    requested(world)
    world.clock.advance(MINUTE * 30)

    sweep(world.deps)

    assert requested(world) == {record.maker}


def test_slices_of_a_cluster_without_settings_are_counted_in_the_log(world: World, lines: Lines) -> None:
    world.store.put(*unsettled(ClusterId("forgotten"), 4), a_record(job=a_job(cluster="past"), phase=Phase.GONE))
    handle_sweep(an_event("sweep-ticks", Message(b"{}", {})), world.deps)
    (line,) = [line for line in lines() if line["event"] == LogEvent.SETTINGS_MISSING]
    assert (line["severity"], line["cluster"], line["slices"]) == ("ERROR", "forgotten", 4)


def test_clusters_without_settings_are_searched_for_every_quarter_of_an_hour(world: World) -> None:
    world.store.put(*unsettled(ClusterId("forgotten"), 4))
    found = []
    for _ in range(60):
        if sweep(world.deps).without_settings:
            found.append(world.clock.now().minute)
        world.clock.advance(MINUTE)
    assert found == [0, 15, 30, 45]


@pytest.mark.usefixtures("small_pages")
def test_slices_whose_requests_have_no_effect_do_not_fill_the_page_for_ever(world: World) -> None:
    world.store.put(*unsettled(CLUSTER, STUCK))
    waiting = a_record(job=a_job(name="late"))
    world.store.put(waiting)
    for _ in range(3):
        sweep(world.deps)
        world.clock.advance(MINUTE)
    assert waiting.maker in requested(world)


def minutes_of_requests(world: World, minutes: int) -> list[int]:
    """Return the minutes in which the sweep requested something, while nothing is delivered."""
    found = []
    for minute in range(minutes):
        sweep(world.deps)
        if requested(world):
            found.append(minute)
        world.clock.advance(MINUTE)
    return found


def test_a_slice_whose_request_is_under_way_is_not_requested_each_minute_and_not_lost(world: World) -> None:
    world.store.put(a_record(next_reconcile_at=NOW))
    assert minutes_of_requests(world, 30) == [0, 1, 11, 12, 22, 23]
    (record,) = world.records.values()
    assert record.next_reconcile_at is not None


def test_a_request_that_is_served_costs_no_write_of_the_sweep(world: World) -> None:
    jobset = being_created(world, slices=4)
    latest = max(record.next_reconcile_at or NOW for record in world.records.values())
    world.clock.advance(latest - world.clock.now() + MINUTE / 2)
    requested(world)
    before = len(world.store.commits)
    sweep(world.deps)
    written = [change.after for commit in world.store.commits[before:] for change in commit]
    assert [record for record in written if isinstance(record, SliceRecord)] == []
    assert requested(world) == {world.record(jobset, index).maker for index in range(4)}


def test_a_slice_that_is_written_while_it_is_requested_keeps_what_was_written(world: World) -> None:
    stuck = a_record(next_reconcile_at=NOW - 60 * MINUTE)
    world.store.put(stuck)
    world.store.meanwhile(lambda: world.store.edit_slice(CLUSTER, stuck.id, note="mine"))
    assert sweep(world.deps).failures == ()
    assert world.records[stuck.name] == replace(stuck, note="mine")
