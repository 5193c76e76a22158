"""What the sweep does when a cluster is in trouble, and which records it looks at first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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
def test_a_sweep_goes_on_when_one_duty_fails(world: World, error: Exception) -> None:
    stuck = a_record(next_reconcile_at=NOW - MINUTE)
    world.store.put(stuck)
    world.backend.unreadable[CLUSTER] = error
    world.clock.advance(INVENTORY_CHECK_EVERY)

    swept = sweep(CLUSTER, world.deps)

    assert (requested(world), swept.count is not None) == ({stuck.name}, True)
    assert {(failure.cluster, failure.error, failure.about) for failure in swept.failures} == {
        (CLUSTER, error, "inventory check")
    }


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("other", [ClusterId("ahead"), ClusterId("zoo")])
def test_a_cluster_is_swept_whatever_is_wrong_with_another(world: World, other: ClusterId, error: Exception) -> None:
    lost = world.record(serving(world))
    world.store.remove_document(key_of(lost))
    with_another_cluster(world, other)
    world.backend.unreadable[other] = error
    world.clock.advance(INVENTORY_CHECK_EVERY)

    assert [failure.cluster for failure in sweep(other, world.deps).failures] == [other]
    assert sweep(CLUSTER, world.deps).failures == ()
    assert set(world.records) == {lost.name}


@pytest.mark.parametrize("step", ["request_due", "ask_for_lists"])
def test_what_failed_is_not_counted(world: World, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise Temporary("no answer")

    sweep(CLUSTER, world.deps)
    monkeypatch.setattr(f"tpu_slices.flows.sweep.{step}", fails)
    swept = sweep(CLUSTER, world.deps)
    assert (swept.requested, swept.asked, len(swept.failures)) == (0, 0, 1)


def ticks(world: World, cluster: str) -> None:
    handle_sweep(an_event(f"ticks-{cluster}", Message(b"{}", {})), world.deps)


def test_a_cluster_whose_settings_cannot_be_read_is_not_swept_and_is_told_of(world: World, lines: Lines) -> None:
    world.store.put_document(settings_key(ClusterId("ahead")), {"path": "nowhere"})
    ticks(world, "ahead")
    completed, failed = lines()
    assert (completed["event"], completed["cluster"], completed["failed"]) == (LogEvent.SWEEP_COMPLETED, "ahead", 1)
    assert (failed["event"], failed["severity"], failed["cluster"]) == (LogEvent.SWEEP_FAILED, "ERROR", "ahead")
    assert "path: Invalid value: 'nowhere'" in failed["error"]


@pytest.mark.parametrize("cluster", ["unknown", "retired"])
def test_a_tick_for_a_cluster_without_settings_ends_in_a_line_of_the_log(
    world: World, lines: Lines, cluster: str
) -> None:
    if cluster == "retired":
        world.store.put(*unsettled(ClusterId(cluster), 2))
    ticks(world, cluster)
    skipped, completed = lines()
    assert (skipped["event"], skipped["severity"], skipped["cluster"]) == (LogEvent.SWEEP_SKIPPED, "WARNING", cluster)
    assert (completed["event"], completed["cluster"], completed["failed"]) == (LogEvent.SWEEP_COMPLETED, cluster, 0)
    assert (world.publisher.requests, world.store.rejections) == ([], {})


def test_a_tick_that_is_of_no_cluster_is_kept_and_acknowledged(world: World) -> None:
    handle_sweep(an_event("ticks-", Message(b"{}", {})), world.deps)
    assert "is not a topic for ticks" in world.store.rejections["17"].error


def test_a_failed_sweep_of_a_cluster_is_logged_and_its_tick_is_not_redelivered(world: World, lines: Lines) -> None:
    with_another_cluster(world, ClusterId("other"))
    world.backend.unreadable = {
        CLUSTER: OverflowError("date value out of range"),
        ClusterId("other"): Temporary("later"),
    }

    ticks(world, CLUSTER)
    ticks(world, "other")

    written = lines()
    failed = {line["cluster"]: line for line in written if line["event"] == LogEvent.SWEEP_FAILED}
    assert failed[CLUSTER]["severity"] == failed["other"]["severity"] == "ERROR"
    assert "date value out of range" in failed[CLUSTER]["error"]
    assert ("exception" in failed[CLUSTER], "exception" in failed["other"]) == (True, False)
    completed = [line for line in written if line["event"] == LogEvent.SWEEP_COMPLETED]
    assert [(line["cluster"], line["failed"]) for line in completed] == [(CLUSTER, 1), ("other", 1)]


def test_the_store_failing_as_a_whole_is_a_failure_of_the_sweep_and_the_next_tick_sweeps(
    world: World, lines: Lines
) -> None:
    world.store.unavailable = True
    ticks(world, CLUSTER)
    _, failed = lines()
    assert (failed["event"], failed["cluster"]) == (LogEvent.SWEEP_FAILED, CLUSTER)
    world.store.unavailable = False
    ticks(world, CLUSTER)
    assert LogEvent.SWEEP_FAILED not in {line["event"] for line in lines()}


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
    other = ClusterId("forgotten")
    world.store.put(*unsettled(other, 2 * STUCK))
    if has_settings:
        world.store.put_document(settings_key(other), {"path": "nowhere"})
    record = world.record(being_created(world, slices=1))
    requested(world)
    world.clock.advance(MINUTE * 30)

    sweep(CLUSTER, world.deps)

    assert requested(world) == {record.maker}


# what is of no cluster


def searched(world: World, lines: Lines) -> list[dict[str, Any]]:
    lines()
    handle_sweep(an_event("project-ticks", Message(b"{}", {})), world.deps)
    return lines()


def test_slices_of_a_cluster_without_settings_are_counted_in_the_log(world: World, lines: Lines) -> None:
    world.store.put(*unsettled(ClusterId("lost"), 4), a_record(job=a_job(cluster="past"), phase=Phase.GONE))
    serving(world)
    done, line = searched(world, lines)
    assert (done["event"], done["severity"], done["forgotten"]) == (LogEvent.CLUSTERS_SEARCHED, "INFO", 1)
    assert (line["event"], line["severity"]) == (LogEvent.SETTINGS_MISSING, "ERROR")
    assert (line["cluster"], line["slices"]) == ("lost", 4)


def test_where_each_cluster_has_settings_the_search_finds_nothing_and_sweeps_nothing(
    world: World, lines: Lines
) -> None:
    world.store.put(*unsettled(CLUSTER, 4))
    [done] = searched(world, lines)
    assert (done["event"], done["forgotten"]) == (LogEvent.CLUSTERS_SEARCHED, 0)
    assert requested(world) == set()


def test_a_search_that_fails_is_left_to_redelivery(world: World) -> None:
    world.store.unavailable = True
    with pytest.raises(Temporary):
        handle_sweep(an_event("project-ticks", Message(b"{}", {})), world.deps)


@pytest.mark.usefixtures("small_pages")
def test_slices_whose_requests_have_no_effect_do_not_fill_the_page_for_ever(world: World) -> None:
    world.store.put(*unsettled(CLUSTER, STUCK))
    waiting = a_record(job=a_job(name="late"))
    world.store.put(waiting)
    for _ in range(3):
        sweep(CLUSTER, world.deps)
        world.clock.advance(MINUTE)
    assert waiting.maker in requested(world)


def minutes_of_requests(world: World, minutes: int) -> list[int]:
    """Return the minutes in which the sweep requested something, while nothing is delivered."""
    found = []
    for minute in range(minutes):
        sweep(CLUSTER, world.deps)
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
    sweep(CLUSTER, world.deps)
    written = [change.after for commit in world.store.commits[before:] for change in commit]
    assert [record for record in written if isinstance(record, SliceRecord)] == []
    assert requested(world) == {world.record(jobset, index).maker for index in range(4)}


def test_a_slice_that_is_written_while_it_is_requested_keeps_what_was_written(world: World) -> None:
    stuck = a_record(next_reconcile_at=NOW - 60 * MINUTE)
    world.store.put(stuck)
    world.store.meanwhile(lambda: world.store.edit_slice(CLUSTER, stuck.id, note="mine"))
    assert sweep(CLUSTER, world.deps).failures == ()
    assert world.records[stuck.name] == replace(stuck, note="mine")
