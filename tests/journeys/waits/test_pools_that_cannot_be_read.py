"""A pool that GKE does not let be read: nothing is done about its slice, and after minutes everybody is told."""

from __future__ import annotations

from datetime import timedelta

from relay.events import event, summary
from tests.builders import MINUTE
from tests.journeys.serving import deletions, reason, serving
from tests.world import World
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Phase, Reason, ReportReason
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.fakes.troubles import Trouble
from tpu_slices_simulator.live import LiveWorkload


def unreadable(world: World, lasts: timedelta | None = None) -> None:
    world.backend.trouble(Trouble.FORBIDDEN, Verb.LOOK, lasts=lasts)


def under_creation() -> tuple[World, LiveWorkload]:
    """Return a world in which the hosts of a JobSet's slice have not all joined."""
    world = World()
    world.cluster.unusable_hosts = 1
    jobset = world.jobset_appears("llama")
    world.settle(minutes=3)
    assert reason(world, jobset) is Reason.HOSTS_JOINING
    return world, jobset


def last_report(world: World) -> str:
    message: str = summary(world.publisher.reports[-1][1])["message"]
    return message


def test_record_report_and_event_tell_that_it_cannot_be_read_since_when_and_why() -> None:
    world, jobset = under_creation()
    unreadable(world)
    world.settle(minutes=25)
    record = world.record(jobset)
    assert (record.phase, record.reason) == (Phase.PROVISIONING, Reason.POOL_UNREADABLE)
    since = record.current.unreadable_since
    assert since is not None
    said = f"GKE has not said since {since:%H:%M} UTC how node pool {record.pool} is"
    assert record.message.startswith(said)
    assert "container.clusters.get" in record.message
    report = last_report(world)
    assert said in report
    assert "container.clusters.get" in report
    assert "No action needed" not in report
    assert "Contact the operator of the cluster" in report
    told = event(world.publisher.updates[-1], None)
    assert (told["reason"], told["type"]) == ("PoolUnreadable", "Warning")
    assert world.publisher.reports[-1][1].report.reason is ReportReason.WAITING
    assert len(world.backend.ordered(Verb.CREATE)) == 1


def test_an_outage_of_minutes_changes_no_reason() -> None:
    world, jobset = under_creation()
    before = world.record(jobset)
    unreadable(world, 8 * MINUTE)
    world.settle(minutes=15)
    after = world.record(jobset)
    assert (after.transition_count, after.current.unreadable_since) == (before.transition_count, None)


def test_a_slice_that_can_be_read_again_goes_on_where_it_was() -> None:
    world, llama = serving()
    world.a_host_breaks()
    world.settle(minutes=2)
    lost = world.record(llama)
    unreadable(world, 20 * MINUTE)
    world.settle(minutes=19)
    assert reason(world, llama) is Reason.POOL_UNREADABLE
    world.settle(minutes=10)
    after = world.record(llama)
    assert (after.reason, after.current.hosts_awaited_since) == (Reason.HOSTS_LOST, lost.current.hosts_awaited_since)
    assert after.since == lost.since


def test_a_ready_slice_stays_ready_and_its_message_tells() -> None:
    world, llama = serving()
    llama.absent = True
    world.leaves(llama)
    unreadable(world)
    world.settle(minutes=60)
    record = world.record(llama)
    assert (record.phase, record.reason) == (Phase.READY, Reason.READY)
    assert record.message.startswith("All hosts were usable when it was last seen. GKE has not said since ")
    assert deletions(world) == []
    assert summary(world.publisher.reports[-1][1])["message"].startswith("1 of 1 slices ready")


def test_a_ready_slice_in_use_that_is_read_once_in_vain_is_read_again_and_then_no_more() -> None:
    world, llama = serving()
    world.backend.trouble(Trouble.UNAVAILABLE, Verb.LOOK, calls=1)
    world.tells_of_change(world.record(llama).pool)
    world.deliver()
    assert world.record(llama).current.unreadable_since is not None
    world.settle(minutes=3)
    record = world.record(llama)
    assert (record.current.unreadable_since, record.next_reconcile_at) == (None, None)


def test_a_slice_whose_jobset_ends_while_its_pool_cannot_be_read_is_deleted_once_it_can_be() -> None:
    world, jobset = under_creation()
    unreadable(world, 40 * MINUTE)
    world.ends(jobset, WorkloadState.DELETED)
    world.settle(minutes=30)
    record = world.record(jobset)
    assert record.reason is Reason.POOL_UNREADABLE
    assert record.message.startswith("Releasing (the JobSet was deleted): GKE has not said since ")
    assert deletions(world) == []
    world.settle(minutes=30)
    assert (world.pools, world.record(jobset).phase) == ([], Phase.GONE)
