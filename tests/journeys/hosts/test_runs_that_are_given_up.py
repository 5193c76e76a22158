"""A run whose pods do not run keeps its slices for as long as the settings say: for ever, unless they say it."""

from __future__ import annotations

import pytest

from relay.events import summary
from tests.builders import CLUSTER, MINUTE, settings
from tests.journeys.hosts.test_pods_that_do_not_run import NO_IMAGE
from tests.journeys.serving import STOCKOUT, deletions, reason, serving
from tests.world import World
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.facts import Heartbeat, WorkloadState
from tpu_slices.domain.model.reasons import Phase, Reason, ReportReason
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload

PATIENCE = 60


def patient() -> World:
    """Return a world whose settings let a slice go after PATIENCE minutes in which pods of its Job do not run."""
    world = World()
    world.store.put_settings(settings(limits=Limits(not_running_after=PATIENCE * MINUTE)))
    return world


def breaks(world: World, jobset: LiveWorkload) -> None:
    """Let one pod of a JobSet lack its image."""
    pod = next(each for each in world.cluster.followers.values() if each.jobset is jobset)
    pod.status, pod.since = NO_IMAGE, world.clock.now()
    world.cluster.saw(pod)


def mends(world: World) -> None:
    pod = next(each for each in world.cluster.followers.values() if each.status)
    pod.status, pod.since = {}, world.clock.now()
    world.cluster.saw(pod)


def wedged(world: World) -> LiveWorkload:
    world, llama = serving(world=world)
    breaks(world, llama)
    return llama


def created(world: World) -> int:
    return len(world.backend.ordered(Verb.CREATE))


def test_a_slice_on_which_pods_do_not_run_is_kept_unless_the_settings_say_otherwise() -> None:
    world = World()
    llama = wedged(world)
    world.settle(minutes=24 * 60)
    assert (reason(world, llama), deletions(world)) == (Reason.PODS_NOT_RUNNING, [])


def test_it_is_let_go_after_that_time_and_none_is_made_for_the_pods_that_wait_then() -> None:
    world = patient()
    llama = wedged(world)
    pool = world.record(llama).pool
    world.settle(minutes=PATIENCE - 5)
    assert deletions(world) == []
    world.settle(minutes=20)
    assert deletions(world) == [pool]
    world.settle(minutes=6 * 60)
    record = world.record(llama)
    assert (record.phase, record.reason, created(world)) == (Phase.REFUSED, Reason.PODS_DID_NOT_RUN, 1)
    assert record.message.startswith(
        "Its slice was let go after 1 hour, as `limits.not_running_after` says: 1 pod of 4"
    )
    told = summary(world.publisher.reports[-1][1])
    assert told["reason"] == ReportReason.BLOCKED
    assert "manifest unknown" in told["message"]
    assert "then edit the JobSet, suspend and resume it, or delete it" in told["message"]


def test_whoever_resumes_it_gets_a_slice_again() -> None:
    world = patient()
    llama = wedged(world)
    world.settle(minutes=PATIENCE + 60)
    world.suspends(llama)
    world.settle(minutes=1)
    world.resumes(llama)
    world.settle(minutes=20, until=lambda: llama.bound == {0})
    world.settle(minutes=2)
    assert (reason(world, llama), created(world)) == (Reason.READY, 2)
    world.settle(minutes=3 * 60)
    assert (reason(world, llama), created(world), len(deletions(world))) == (Reason.READY, 2, 1)


def test_whoever_resumes_it_gets_those_slices_too_that_were_out_of_stock_when_it_was_given_up() -> None:
    world = patient()
    llama = world.jobset_appears("llama", slices=2)
    world.deliver()
    world.cluster_lives()
    world.deliver()
    world.backend.finish(world.record(llama, 0).pool)
    world.backend.fail(world.record(llama, 1).pool, STOCKOUT)
    world.backend.refuses_creations = STOCKOUT
    world.settle(minutes=10, until=lambda: llama.bound == {0})
    breaks(world, llama)
    world.settle(minutes=PATIENCE + 30)
    assert [world.record(llama, index).reason for index in range(2)] == [Reason.PODS_DID_NOT_RUN] * 2
    world.backend.refuses_creations = None
    world.suspends(llama)
    world.settle(minutes=1)
    world.resumes(llama)
    world.settle(minutes=20)
    assert [world.record(llama, index).phase for index in range(2)] == [Phase.READY] * 2


def test_what_became_of_its_slices_is_said_of_a_jobset_that_fails_with_them() -> None:
    world = patient()
    llama = wedged(world)
    world.settle(minutes=PATIENCE + 10)
    world.ends(llama, WorkloadState.FAILED)
    world.settle(minutes=10)
    assert summary(world.publisher.reports[-1][1])["message"] == (
        "The JobSet failed, after its slices were let go since some of its pods did not run "
        "(`limits.not_running_after`); no slices are left."
    )


def test_a_setting_that_comes_later_counts_for_what_has_not_run_before() -> None:
    world = World()
    llama = wedged(world)
    world.settle(minutes=2 * PATIENCE)
    world.store.put_settings(settings(limits=Limits(not_running_after=PATIENCE * MINUTE)))
    world.settle(minutes=20)
    assert (reason(world, llama), len(deletions(world))) == (Reason.PODS_DID_NOT_RUN, 1)


def test_a_pod_that_comes_to_run_in_time_keeps_the_slice() -> None:
    world = patient()
    llama = wedged(world)
    world.settle(minutes=PATIENCE - 5)
    mends(world)
    world.settle(minutes=6 * 60)
    assert (reason(world, llama), deletions(world)) == (Reason.READY, [])


def test_all_slices_of_a_jobset_go_as_its_jobs_train_together() -> None:
    world = patient()
    llama = world.jobset_appears("llama", slices=3)
    other = world.jobset_appears("gemma")
    world.settle(minutes=20, until=lambda: len(llama.bound) == 3 and bool(other.bound))
    world.settle(minutes=3)
    breaks(world, llama)
    world.settle(minutes=PATIENCE + 30)
    assert [world.record(llama, index).reason for index in range(3)] == [Reason.PODS_DID_NOT_RUN] * 3
    assert (len(deletions(world)), created(world)) == (3, 4)
    assert reason(world, other) is Reason.READY


def test_nothing_goes_while_the_relay_is_silent() -> None:
    world = patient()
    wedged(world)
    world.settle(minutes=PATIENCE - 5)
    with world.loses(Heartbeat):
        world.settle(minutes=60)
    assert deletions(world) == []


@pytest.mark.parametrize("still", [False, True], ids=["that came to run meanwhile", "that still does not run"])
def test_a_slice_on_hold_stays_and_is_looked_at_once_that_ends(still: bool) -> None:
    world = patient()
    llama = wedged(world)
    world.store.edit_slice(CLUSTER, world.record(llama).id, hold=True)
    world.settle(minutes=3 * PATIENCE)
    assert deletions(world) == []
    if not still:
        mends(world)
        world.settle(minutes=3)
    world.store.edit_slice(CLUSTER, world.record(llama).id, hold=False)
    world.settle(minutes=20)
    assert bool(deletions(world)) is still


def test_the_hosts_of_a_slice_on_which_somebody_else_runs_too_stay() -> None:
    world = patient()
    llama = wedged(world)
    guest = world.guest_appears()
    world.binds(guest, world.record(llama).maker, attempt=1)
    world.settle(minutes=3 * PATIENCE)
    assert deletions(world) == []


def test_a_group_whose_pods_did_not_run_is_not_bought_again_as_others_are_scaled() -> None:
    world = patient()
    serve = world.other_appears(OwnerKind.LEADER_WORKER_SET, slices=2)
    world.settle(minutes=20, until=lambda: len(serve.bound) == 2)
    world.settle(minutes=3)
    first = min((each for each in world.cluster.followers.values()), key=lambda each: each.index)
    first.status, first.since = NO_IMAGE, world.clock.now()
    world.cluster.saw(first)
    world.settle(minutes=PATIENCE + 30)
    assert [world.record(serve, index).reason for index in range(2)] == [Reason.PODS_DID_NOT_RUN, Reason.READY]
    bought = created(world)
    world.scales(serve, 3)
    world.settle(minutes=20, until=lambda: 2 in serve.bound)
    assert (reason(world, serve), created(world)) == (Reason.PODS_DID_NOT_RUN, bought + 1)
