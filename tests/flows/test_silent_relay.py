"""A relay that does not run: nothing is lost by it, and it is told wherever somebody looks."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.builders import CLUSTER, MINUTE
from tests.conftest import Lines
from tests.functions.test_handlers import an_event
from tests.infra.relay.manifests import the
from tests.world import World
from tpu_slices.app.handlers import handle_sweep
from tpu_slices.domain.model.facts import Pinning
from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.domain.model.reasons import ReportReason
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.records.heartbeats import SILENT_AFTER, RelayHeartbeat
from tpu_slices.domain.records.workloads import Report, WorkloadRecord
from tpu_slices.domain.reporting.reason_texts import PODS_REFUSED, RELAY_NAMESPACE
from tpu_slices.flows.sweep import sweep
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.wire.documents import key
from tpu_slices.wire.messages import Message
from tpu_slices_simulator.live import LiveWorkload

SILENT = (
    "The cluster's relay has not been heard since 12:00 UTC: hosts are shown as they were then, and nothing new is "
    "created or deleted until it runs again. Operators: `kubectl -n tpu-slice-provisioner get pods`."
)


@pytest.fixture
def world() -> World:
    world = World()
    world.store.remove_document(key(RelayHeartbeat, CLUSTER))
    return world


def sweep_each_minute(world: World, minutes: int) -> None:
    for _ in range(minutes):
        world.clock.advance(MINUTE)
        handle_sweep(an_event("ticks-demo", Message(b"{}", {})), world.deps)


def events(lines: Lines) -> list[str]:
    return [line["event"] for line in lines() if line["event"].startswith("relay.")]


def out_of_stock(world: World) -> LiveWorkload:
    jobset = world.jobset_appears()
    for _ in range(200):
        world.backend.refuse_next_create(Failure(FailureKind.STOCKOUT, "none left"))
    world.cluster_lives()
    world.deliver()
    return jobset


def last_report(world: World, jobset: LiveWorkload) -> Report:
    stored = world.store.workloads(CLUSTER, [jobset.ref.owner.uid])[jobset.ref.owner.uid].value
    assert stored.report is not None
    return stored.report


def test_a_silent_relay_is_logged_by_each_sweep_and_its_return_once(world: World, lines: Lines) -> None:
    world.cluster_lives()
    world.deliver()
    sweep_each_minute(world, 3)
    assert events(lines) == []
    sweep_each_minute(world, 2)
    silent = [line for line in lines() if line["event"] == LogEvent.RELAY_SILENT]
    assert [(line["severity"], line["cluster"], line["message"]) for line in silent] == [("ERROR", "demo", SILENT)] * 2
    world.cluster_lives()
    world.deliver()
    sweep_each_minute(world, 2)
    assert events(lines) == [LogEvent.RELAY_HEARD]


def test_that_no_pod_with_chips_can_be_created_is_logged_by_each_sweep_as_long_as_the_relay_says_so(
    world: World, lines: Lines
) -> None:
    def refused() -> list[tuple[str, str, str]]:
        found = [line for line in lines() if line["event"] == LogEvent.PODS_REFUSED]
        return [(line["severity"], line["cluster"], line["message"]) for line in found]

    world.cluster.pinning = Pinning.REFUSED
    world.cluster_lives()
    world.deliver()
    sweep_each_minute(world, 2)
    assert refused() == [("ERROR", "demo", PODS_REFUSED)] * 2
    sweep_each_minute(world, SILENT_AFTER // MINUTE)
    assert len(refused()) == SILENT_AFTER // MINUTE - 2, "a silent relay does not say so any more"
    world.cluster.pinning = Pinning.WEBHOOK
    world.cluster_lives()
    world.deliver()
    sweep_each_minute(world, 1)
    assert refused() == []


def test_a_relay_that_never_started_is_told_from_the_first_sweep_on(world: World, lines: Lines) -> None:
    sweep_each_minute(world, 1 + SILENT_AFTER // MINUTE)
    assert events(lines) == []
    sweep_each_minute(world, 1)
    assert events(lines) == [LogEvent.RELAY_SILENT]


def test_a_silent_relay_is_told_although_gke_cannot_be_read(world: World, lines: Lines) -> None:
    world.backend.unreadable[CLUSTER] = OverflowError("date value out of range")
    sweep_each_minute(world, 5)
    assert events(lines) == [LogEvent.RELAY_SILENT]


def test_a_silence_is_written_once_and_so_is_its_end(world: World) -> None:
    def written() -> list[bool]:
        beats = [commit[0].after for commit in world.store.commits if isinstance(commit[0].after, RelayHeartbeat)]
        silences = [beat.silent_since is not None for beat in beats]
        return [now for before, now in pairwise([False, *silences]) if before is not now]

    sweep_each_minute(world, 4)
    before = len(written())
    sweep_each_minute(world, 8)
    assert written()[before:] == [True]
    world.cluster_lives()
    world.deliver()
    before = len(written())
    sweep_each_minute(world, 2)
    assert written()[before:] == [False]


def test_a_cluster_without_settings_has_no_relay_to_be_heard(world: World) -> None:
    sweep(CLUSTER, world.deps)
    assert world.store.heartbeat(ClusterId("nobody")) is None


def test_a_jobset_that_waits_is_told_that_the_relay_is_silent(world: World) -> None:
    jobset = out_of_stock(world)
    world.relay_is_dead = True
    world.settle(minutes=2)
    assert SILENT not in last_report(world, jobset).message
    world.settle(minutes=4)
    report = last_report(world, jobset)
    assert report.reason is ReportReason.WAITING
    assert "is out of tpu-v6e-slice 4x4" in report.message
    assert report.message.endswith(SILENT)
    assert {wait.remedy for wait in report.waits} == {SILENT}


def test_it_is_still_told_when_no_demand_is_confirmed_any_more(world: World) -> None:
    jobset = out_of_stock(world)
    world.relay_is_dead = True
    world.settle(minutes=60)
    report = last_report(world, jobset)
    assert world.record(jobset).reason == "DemandStale"
    assert (report.reason, report.requested) == (ReportReason.WAITING, 1)
    assert report.message.endswith(SILENT)


def test_a_report_no_longer_tells_of_a_relay_that_is_back(world: World) -> None:
    jobset = out_of_stock(world)
    world.relay_is_dead = True
    world.settle(minutes=30)
    world.relay_is_dead = False
    world.settle(minutes=3)
    assert "relay" not in last_report(world, jobset).message


def told(world: World, jobset: LiveWorkload) -> tuple[str, int]:
    """Return the last report of a JobSet as a text, and how many were announced."""
    record = world.store.workloads(CLUSTER, [jobset.ref.owner.uid])[jobset.ref.owner.uid].value
    return last_report(world, jobset).message, record.announced_count


def test_a_jobset_that_runs_is_told_once_that_its_hosts_are_not_known_and_once_that_they_are(world: World) -> None:
    jobset = world.jobset_appears()
    world.settle(minutes=6)
    ready, announced = told(world, jobset)
    assert ready == "1 of 1 slices ready, 4 of 4 pods run."
    world.relay_is_dead = True
    since = f"{world.clock.now() - MINUTE:%H:%M}"
    world.backend.pools[world.record(jobset).pool].hosts_joined = False
    world.settle(minutes=60)
    assert told(world, jobset) == (
        f"1 of 1 slices ready, 4 of 4 pods run, as last reported. {SILENT}".replace("12:00", since),
        announced + 1,
    )
    world.relay_is_dead = False
    world.settle(minutes=3)
    assert last_report(world, jobset).ready == 0
    assert "relay" not in told(world, jobset)[0]


def test_when_the_relay_is_heard_again_who_runs_is_told_that_too(world: World) -> None:
    jobset = world.jobset_appears()
    world.settle(minutes=6)
    announced = told(world, jobset)[1]
    world.relay_is_dead = True
    world.settle(minutes=30)
    world.relay_is_dead = False
    world.settle(minutes=30)
    assert told(world, jobset) == ("1 of 1 slices ready, 4 of 4 pods run.", announced + 2)


def test_everybody_is_told_page_by_page_and_with_one_report_each(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpu_slices.flows.heartbeats.PAGE", 3)
    jobsets = [world.jobset_appears(f"job-{number}") for number in range(8)]
    world.settle(minutes=20)
    before = [told(world, jobset)[1] for jobset in jobsets]
    world.relay_is_dead = True
    told_by_now: list[int] = []
    for _ in range(8):
        world.settle(minutes=1)
        told_by_now.append(sum("not been heard" in told(world, jobset)[0] for jobset in jobsets))
    assert told_by_now == [0, 0, 3, 6, 8, 8, 8, 8]
    assert [told(world, jobset)[1] for jobset in jobsets] == [count + 1 for count in before]


def test_jobsets_without_slices_and_those_that_are_suspended_are_not_reported_on(world: World) -> None:
    world.jobset_appears("idle", absent=True)
    suspended = world.jobset_appears("suspended")
    world.settle(minutes=6)
    world.suspends(suspended)
    world.settle(minutes=20)
    before = [record.next_report_at for record in world.store.jobset_records(CLUSTER)]
    world.relay_is_dead = True
    writes = len(world.store.commits)
    world.settle(minutes=10)
    written = {type(change.after) for commit in world.store.commits[writes:] for change in commit}
    assert (before, written) == ([None] * 2, {RelayHeartbeat})


def test_a_crash_while_jobsets_are_told_leaves_none_of_them_without_a_report(world: World) -> None:
    jobsets = [world.jobset_appears(f"job-{number}") for number in range(3)]
    world.settle(minutes=6)
    world.relay_is_dead = True
    world.settle(minutes=3)
    for _ in range(4):
        world.store.fail_next()
        world.settle(minutes=1)
    world.settle(minutes=3)
    assert all("not been heard" in told(world, jobset)[0] for jobset in jobsets)


def test_a_jobset_whose_record_cannot_be_read_keeps_no_other_from_being_told(world: World) -> None:
    broken, jobset = world.jobset_appears("broken"), world.jobset_appears()
    world.settle(minutes=6)
    world.store.put_document(
        key(WorkloadRecord, CLUSTER, broken.ref.owner.uid), {"cluster": str(CLUSTER), "state": "ACTIVE"}
    )
    world.relay_is_dead = True
    world.settle(minutes=6)
    assert "not been heard" in told(world, jobset)[0]


def test_the_namespace_that_is_told_is_that_of_the_relay() -> None:
    assert the("Deployment")["metadata"]["namespace"] == RELAY_NAMESPACE
