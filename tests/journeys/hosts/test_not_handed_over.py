"""What may be wrong with a slice that goes, with a claim that waits, or with a record: nobody waits for it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import (
    CLUSTER,
    MINUTE,
    NOW,
    a_job,
    a_jobset,
    a_record,
    a_spec,
    an_occupant,
    self_managed,
    settings,
    some_hosts,
)
from tests.domain.cases import HOUR, OURS, going, was_seen
from tests.flows.swept import make_unreadable, make_workload_unreadable
from tests.flows.unclaimed import a_world, stands
from tests.journeys.serving import serving
from tests.world import World
from tpu_slices.domain.model.clusters import Policy
from tpu_slices.domain.model.facts import Pinning, WorkloadState
from tpu_slices.domain.model.hosts import HostKey
from tpu_slices.domain.model.observations import Creating
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.records.brakes import Brake, Stop, UnconfirmedEnd
from tpu_slices.domain.records.hosts import Hosts
from tpu_slices.domain.records.slices import Desire, SliceRecord
from tpu_slices.flows.reconcile import reconcile
from tpu_slices_simulator.cluster import CORDONED, NOT_READY
from tpu_slices_simulator.fakes.backend import Verb

GEMMA = a_record(job=a_job(name="gemma", uid="uid-gemma"), spec=a_spec(key="uid-gemma.j0"))
KEYS = (HostKey("uid-1.j0", 4),)
VACANT = some_hosts(sound=4, vacant_since=NOW - HOUR, keys=KEYS)


def let_go(hosts: Hosts = VACANT) -> SliceRecord:
    """Return a slice that no claim has any more, with which nothing is wrong."""
    return replace(going(hosts=hosts, attempt=1, seen=was_seen(OURS)), fits=True)


def a_pinned_world(*records: SliceRecord) -> World:
    """Return a world whose relay says that pods are pinned."""
    world = a_world(*records)
    beats(world)
    return world


def beats(world: World) -> None:
    heartbeat = world.store.heartbeat(CLUSTER)
    assert heartbeat is not None
    world.store.put(replace(heartbeat.value, received_at=world.clock.now(), pinning=Pinning.POLICY))


def waits(world: World, claim: SliceRecord) -> None:
    """Let a claim be waited for, and be reconciled."""
    world.store.put(a_jobset(uid=claim.owner.uid, demand={claim.maker: world.clock.now()}))
    reconcile(CLUSTER, claim.maker, world.deps)


def creates(world: World) -> bool:
    return Verb.CREATE in {call.verb for call in world.backend.calls}


def test_a_claim_whose_workload_cannot_be_read_keeps_no_slice_of_others_from_its_end() -> None:
    world, llama = serving("llama", World(of_cluster=settings(policy=Policy(chips_per_cluster=16))))
    gemma = world.jobset_appears("gemma")
    world.settle(minutes=5)
    assert world.record(gemma).reason is Reason.CHIP_LIMIT_REACHED
    make_workload_unreadable(world, gemma)
    world.ends(llama)
    world.settle(minutes=30)
    assert world.record(llama).phase is Phase.GONE


def test_a_slice_whose_last_claim_cannot_be_read_keeps_no_other_claim_from_one_of_its_own() -> None:
    other = a_record(attempt=2, earlier=(1,), spec=a_spec(key="uid-2.j0"))
    world = a_pinned_world(other, let_go(), GEMMA)
    stands(world, let_go())
    make_unreadable(world, other)
    waits(world, GEMMA)
    assert creates(world)


def test_a_claim_whose_last_slice_has_pods_of_an_ended_job_gets_another() -> None:
    claim, guest = a_record(attempt=2, earlier=(1,), spec=a_spec(key="uid-1.j0")), an_occupant("guest")
    slice_ = let_go(replace(VACANT, occupants=(guest,), vacant_since=None))
    assert slice_.last_claim == claim.claimed_by
    world = a_pinned_world(claim, slice_)
    world.store.put(a_jobset(uid=guest.owner.uid, state=WorkloadState.COMPLETED))
    stands(world, slice_)
    reconcile(CLUSTER, claim.name, world.deps)
    assert creates(world)


@pytest.mark.parametrize("stood", [True, False])
def test_a_slice_of_which_what_was_seen_counts_no_more_is_taken_over_if_it_stands(*, stood: bool) -> None:
    slice_ = replace(let_go(), look_at=NOW)
    world = a_pinned_world(slice_, GEMMA)
    world.store.put(a_jobset(state=WorkloadState.COMPLETED))
    if stood:
        stands(world, slice_)
    waits(world, GEMMA)
    assert (creates(world), world.records[GEMMA.maker].maker == slice_.maker) == (not stood, stood)


def test_a_slice_that_is_being_made_in_steps_is_taken_over() -> None:
    """Each step may have ended since it was looked at, so that it is looked at again."""
    pools = self_managed().pools
    slice_ = replace(let_go(some_hosts(usable=0, joined=0)), pinned_settings=pools)
    slice_ = slice_.with_current(seen=was_seen(Creating()))
    world = a_pinned_world(slice_, GEMMA)
    world.store.put(a_jobset(state=WorkloadState.COMPLETED))
    stands(world, slice_)
    waits(world, GEMMA)
    assert not creates(world)
    assert world.records[GEMMA.maker].maker == slice_.maker


def test_pods_of_an_ended_job_that_stay_keep_the_next_claim_for_ten_minutes() -> None:
    world = a_pinned_world(replace(let_go(replace(VACANT, occupants=(an_occupant(),), vacant_since=None))), GEMMA)
    world.store.put(a_jobset(state=WorkloadState.FAILED))
    stands(world, let_go())
    for minute in range(30):
        beats(world)
        waits(world, GEMMA)
        assert creates(world) is (minute > 10)
        world.clock.advance(MINUTE)
    assert creates(world)


def test_a_slice_of_a_workload_that_is_only_missing_is_taken_over_by_nobody() -> None:
    """The brake may keep it, and says so once its deletion is decided."""
    world = World()
    end = UnconfirmedEnd(found_at=NOW - 5 * MINUTE, counted=True)
    going_ = {"desire": Desire.ABSENT, "phase": Phase.RELEASING, "reason": Reason.RESTART_POSSIBLE}
    made = {"create_requested_at": NOW - 2 * HOUR, "ordered": a_spec(key="uid-1.j0"), "seen": was_seen(OURS)}
    slice_ = a_record(**made, **going_, hosts=VACANT, unconfirmed_end=end)
    stop = Stop(since=NOW - 10 * MINUTE, stopped_at=NOW - 4 * MINUTE, ended=12, live=3, chips=1000)
    world.store.put(slice_, GEMMA, a_jobset(state=WorkloadState.MISSING), Brake.released(CLUSTER).pulled(None, stop))
    beats(world)
    stands(world, slice_)
    waits(world, GEMMA)
    assert world.records[GEMMA.maker].id != slice_.id


@pytest.mark.parametrize("ready", [True, False])
def test_a_slice_with_a_host_that_somebody_cordoned_is_deleted_and_another_made(*, ready: bool) -> None:
    world, llama = serving("llama")
    node = next(iter(world.cluster.nodes.values()))
    world.cluster.changes_node(node, CORDONED if ready else {**CORDONED, **NOT_READY})
    world.settle(minutes=3)
    world.ends(llama)
    gemma = world.jobset_appears("gemma")
    world.settle(minutes=20)
    assert gemma.bound == {0}
    assert len(world.pools) == 1
    assert node.name not in world.cluster.nodes


def test_pods_that_have_a_day_to_end_keep_the_next_job_for_minutes() -> None:
    world, llama = serving("llama")
    world.cluster.grace = timedelta(hours=24)
    world.cluster.removes_pod(llama, 0)
    world.ends(llama)
    world.settle(minutes=1)
    gemma, began = world.jobset_appears("gemma"), world.clock.now()
    world.settle(minutes=120, until=lambda: gemma.bound == {0})
    assert world.clock.now() - began < timedelta(minutes=10)
