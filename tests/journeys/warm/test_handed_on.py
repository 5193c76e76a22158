"""A slice that goes from Job to Job stays what it is: nothing of its pool changes, and no pod of others comes there."""

from __future__ import annotations

from tests.journeys.hosts.test_keys_of_hosts import closed, key, keys, rekeyed
from tests.journeys.serving import own_slice, reason, serving
from tests.journeys.warm.test_kept_warm import orders, warm_world
from tests.world import World
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload

HAND_OVERS = 100


def next_job(world: World, last: LiveWorkload, name: str) -> LiveWorkload:
    """Return the Job that gets the slice of the last one after a minute in which it is warm."""
    world.ends(last)
    world.settle(minutes=2)
    assert reason(world, last) is Reason.WARM
    following = world.jobset_appears(name)
    world.settle(minutes=3, until=lambda: following.bound == {0})
    assert following.bound == {0}
    return following


def test_a_hundred_hand_overs_are_no_operation_and_change_nothing_of_the_pool() -> None:
    world, last = serving("job-0", warm_world())
    first, pool = last, world.pools
    made = world.backend.pools[world.record(last).pool].order
    for number in range(1, HAND_OVERS + 1):
        last = next_job(world, last, f"job-{number}")
        assert not world.store.slots(world.settings.cluster)
    assert (orders(world), world.pools) == ([Verb.CREATE], pool)
    assert {call.verb for call in world.backend.calls} & {Verb.RELABEL, Verb.CANCEL} == set()
    assert world.record(last).maker == own_slice(first)
    assert world.backend.pools[world.record(last).pool].order == made


def test_a_host_that_is_made_anew_while_no_relay_looks_takes_no_pod_of_others() -> None:
    """It carries the key of the claim that the pool was made for, whose JobSet is there again under its name."""
    world, llama = serving("llama", warm_world())
    gemma = next_job(world, llama, "gemma")
    world.settle(minutes=3)
    assert (keys(world), closed(world)) == ({key(gemma)}, [])
    world.relay_is_dead = True
    rekeyed(world, key(llama), hosts=1)
    again = world.jobset_appears("llama")
    world.settle(minutes=2)
    assert keys(world) == {key(llama), key(gemma)}
    assert users(world, llama) == {gemma.ref.owner.uid}
    world.relay_is_dead = False
    world.settle(minutes=15)
    assert users(world, llama) == {gemma.ref.owner.uid}
    assert (again.bound, world.record(again).maker) == ({0}, own_slice(again))
    assert (keys(world), closed(world)) == ({key(gemma), key(again)}, [])


def users(world: World, maker: LiveWorkload) -> set[WorkloadUid]:
    """Return whose pods are on the first slice that was made for a JobSet."""
    return {pod.jobset.ref.owner.uid for pod in world.cluster.users_of(own_slice(maker), 1)}
