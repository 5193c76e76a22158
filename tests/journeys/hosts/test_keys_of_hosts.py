"""Pods are pinned to the slice that their claim has: hosts carry its key, however they came to that slice."""

from __future__ import annotations

from tests.builders import CLUSTER
from tests.journeys.serving import own_slice, serving
from tests.world import World
from tpu_slices.domain.model.facts import Pinning, WorkloadState
from tpu_slices.domain.model.hosts import HostKey
from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import PoolName
from tpu_slices.domain.planning.host_labels import ACCELERATOR, COUNT, TOPOLOGY
from tpu_slices.domain.planning.keys import KEY_LABEL
from tpu_slices.domain.reconciling.adoption import LiveWorkload as Adoptable
from tpu_slices.flows.adopt import adopt
from tpu_slices_simulator.cluster import CORDONED, NOT_READY
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload

SHAPE = {ACCELERATOR: "tpu-v6e-slice", TOPOLOGY: "4x4", COUNT: "4"}
ANOTHERS = "uid-gone.j0"


def keys(world: World) -> set[str]:
    """Return the keys that hosts carry."""
    return {node.raw["metadata"]["labels"].get(KEY_LABEL, "") for node in world.cluster.nodes.values()}


def key(jobset: LiveWorkload) -> str:
    return jobset.key_of(0, CLUSTER)


def closed(world: World) -> list[str]:
    return [node.name for node in world.cluster.nodes.values() if node.seen.cordoned]


def rekeyed(world: World, text: str | None, *, hosts: int = 4) -> None:
    """Let hosts have another key, as GKE makes them anew with that of their pool."""
    for node in list(world.cluster.nodes.values())[:hosts]:
        world.cluster.changes_node(node, {"metadata": {"labels": {KEY_LABEL: text}}})


def test_a_slice_has_the_key_of_its_claim_from_its_creation() -> None:
    world, jobset = serving()
    assert keys(world) == {key(jobset)} == {f"{jobset.ref.owner.uid}.j0"}
    assert world.record(jobset).current.hosts.keys == (HostKey(key(jobset), 4),)
    assert world.record(jobset).current.hosts.asked is None


def test_hosts_that_come_back_with_another_key_get_theirs_while_the_job_runs_on() -> None:
    world, jobset = serving()
    began = world.clock.now()
    rekeyed(world, ANOTHERS, hosts=1)
    world.settle(minutes=3)
    assert (keys(world), closed(world), jobset.bound) == ({key(jobset)}, [], {0})
    record = world.record(jobset)
    assert record.reason is Reason.READY
    assert {each.phase for each in record.transitions if each.at > began} == set()


def test_hosts_that_were_made_anew_while_no_relay_ran_get_their_key_once_one_does() -> None:
    world, jobset = serving()
    world.cluster.runs_relays(0)
    rekeyed(world, ANOTHERS)
    world.cluster.removes_pod(jobset, 0)
    world.settle(minutes=30)
    assert (keys(world), jobset.bound) == ({ANOTHERS}, set())
    world.cluster.runs_relays(1)
    world.settle(minutes=10)
    assert (keys(world), jobset.bound, len(world.pools)) == ({key(jobset)}, {0}, 1)


def test_a_question_that_nobody_got_is_asked_again() -> None:
    world, jobset = serving()
    rekeyed(world, ANOTHERS)
    world.steps()
    world.cluster.restart_relay()
    rekeyed(world, ANOTHERS)
    world.settle(minutes=15)
    assert (keys(world), closed(world)) == ({key(jobset)}, [])


def test_hosts_get_their_keys_where_nothing_pins_pods_too() -> None:
    """Pods may be pinned before the relay tells so, and stay so: what is keyed by then serves them."""
    world, jobset = serving()
    world.cluster.pinning = Pinning.NOTHING
    world.settle(minutes=2)
    rekeyed(world, ANOTHERS)
    world.settle(minutes=3)
    assert (keys(world), closed(world)) == ({key(jobset)}, [])


def test_an_adopted_pool_gets_the_key_of_its_job_while_that_runs() -> None:
    world, name = World(), PoolName("llama-4f2a1")
    jobset = world.jobset_appears()
    made = LegacyPool(name=name, namespace="research", jobset="llama", job="llama-slice-0")
    world.backend.hold_legacy_pool(made)
    world.cluster.has_legacy_nodes(made, SHAPE, hosts=4)
    world.cluster.binds(jobset, made, 0)
    adopt(CLUSTER, [Adoptable(ref=jobset.ref, state=WorkloadState.ACTIVE, requests=jobset.requests)], world.deps)
    world.settle(minutes=10)
    assert (keys(world), closed(world), jobset.bound) == ({key(jobset)}, [], {0})
    assert (world.record(jobset).phase, world.record(jobset).pool) == (Phase.READY, name)
    world.cluster.removes_pod(jobset, 0)
    world.settle(minutes=5)
    assert (jobset.bound, world.pools) == ({0}, [name])


def test_a_job_on_a_slice_that_its_claim_did_not_have_gets_that_with_its_key() -> None:
    world, llama = serving("llama")
    guest = world.guest_appears()
    world.settle(minutes=1)
    world.ends(llama)
    world.binds(guest, own_slice(llama), attempt=1)
    world.settle(minutes=10)
    assert world.record(guest).maker == own_slice(llama)
    assert keys(world) == {key(llama)}, "its pods never waited, so that their key is not known"
    guest.absent = False
    world.cluster.removes_pod(guest, 0)
    world.settle(minutes=10)
    assert (keys(world), closed(world), guest.bound, len(world.pools)) == ({key(guest)}, [], {0}, 1)


def test_after_an_hour_without_the_policy_each_job_keeps_the_slice_that_it_came_to_and_its_hosts_get_its_key() -> None:
    world, llama = serving("llama")
    _, gemma = serving("gemma", world)
    world.cluster.pinning, world.cluster.schedules = Pinning.NOTHING, False
    world.settle(minutes=2)
    for jobset, other in ((llama, gemma), (gemma, llama)):
        world.cluster.removes_pod(jobset, 0)
        world.binds(jobset, own_slice(other), attempt=1)
    world.settle(minutes=60)
    world.cluster.pinning, world.cluster.schedules = Pinning.POLICY, True
    world.settle(minutes=20)
    for jobset, other in ((llama, gemma), (gemma, llama)):
        record = world.record(jobset)
        assert (record.maker, record.current.hosts.keys) == (own_slice(other), (HostKey(key(jobset), 4),))
        world.cluster.removes_pod(jobset, 0)
    world.settle(minutes=5)
    assert (llama.bound, gemma.bound, len(world.pools), closed(world)) == ({0}, {0}, 2, [])


def test_hosts_that_somebody_cordoned_are_left_closed_and_told_of() -> None:
    world, jobset = serving()
    node = next(iter(world.cluster.nodes.values()))
    world.cluster.changes_node(node, {"spec": {"unschedulable": True}})
    rekeyed(world, ANOTHERS, hosts=1)
    world.settle(minutes=15)
    assert closed(world) == [node.name]
    assert world.record(jobset).phase is Phase.PROVISIONING
    world.cluster.changes_node(node, {"spec": {"unschedulable": False}})
    world.settle(minutes=15)
    assert (keys(world), closed(world)) == ({key(jobset)}, [])


def a_host_that_stays_cordoned() -> tuple[World, LiveWorkload]:
    """Return a world in which a Job's slice has a host with another key that somebody cordoned."""
    world, jobset = serving()
    rekeyed(world, ANOTHERS, hosts=1)
    world.cluster.changes_node(next(iter(world.cluster.nodes.values())), CORDONED)
    world.settle(minutes=5)
    return world, jobset


def test_what_happens_on_hosts_is_told_although_one_of_them_cannot_get_its_key() -> None:
    world, jobset = a_host_that_stays_cordoned()
    for node in list(world.cluster.nodes.values())[-2:]:
        world.cluster.changes_node(node, NOT_READY)
    world.settle(minutes=10)
    assert world.record(jobset).current.hosts.usable == 1
    world.cluster.schedules = False
    world.cluster.removes_pod(jobset, 0)
    world.settle(minutes=15)
    assert world.record(jobset).current.hosts.occupants == ()


def test_a_job_gets_another_slice_if_a_host_of_its_own_never_gets_its_key() -> None:
    world, jobset = a_host_that_stays_cordoned()
    world.cluster.removes_pod(jobset, 0)
    world.settle(minutes=120, until=lambda: jobset.bound == {0})
    assert jobset.bound == {0}


def test_no_operation_of_gke_changes_a_key() -> None:
    world, jobset = serving()
    rekeyed(world, ANOTHERS)
    world.settle(minutes=15)
    assert keys(world) == {key(jobset)}
    assert {call.verb for call in world.backend.calls} <= {Verb.CREATE, Verb.LOOK, Verb.LIST}
