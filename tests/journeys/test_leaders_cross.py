"""Leaders of JobSets of one shape that are scheduled to each other's hosts: no Job gets a second slice for that."""

from __future__ import annotations

import pytest

from tests.builders import CLUSTER, MINUTE, a_job, a_request
from tests.journeys.serving import STOCKOUT, deletions, own_slice
from tests.world import World
from tpu_slices.domain.model.facts import HostsChanged, TemplateRequest
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import PoolName, claim_id, slice_id
from tpu_slices.flows.looking import Told
from tpu_slices.flows.reconcile import reconcile
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload


def crossed(world: World) -> tuple[LiveWorkload, LiveWorkload]:
    """Let two JobSets get their slices, and bind each leader to the other's hosts."""
    llama, gemma = world.jobset_appears("llama"), world.jobset_appears("gemma")
    world.cluster_lives()
    world.deliver()
    world.operations_end()
    for jobset, other in ((llama, gemma), (gemma, llama)):
        jobset.bound.add(0)
        world.binds(jobset, claim_id(a_job(name=other.ref.owner.name, uid=other.ref.owner.uid)), attempt=1)
    return llama, gemma


def test_two_crossed_jobsets_keep_one_pool_each_until_they_end() -> None:
    world = World()
    llama, gemma = crossed(world)
    world.settle(minutes=40)
    assert len(world.pools) == 2
    assert {(record.phase, record.reason) for record in world.records.values()} == {(Phase.READY, "Ready")}
    world.ends(llama)
    world.settle(minutes=20)
    assert world.pools == [world.record(gemma).pool]
    world.ends(gemma)
    world.settle(minutes=20)
    assert world.pools == []


def test_a_jobset_that_waits_while_another_occupies_its_slice_gets_another() -> None:
    world = World()
    llama = world.jobset_appears("llama")
    world.cluster_lives()
    world.deliver()
    world.operations_end()
    guest = world.jobset_appears("guest")
    guest.bound.add(0)
    world.binds(guest, claim_id(a_job(name="llama", uid=llama.ref.owner.uid)), attempt=1)
    world.settle(minutes=20, until=lambda: llama.bound == {0})
    assert llama.bound == {0}
    assert len(world.pools) == 2
    assert world.record(guest).maker == own_slice(llama)


# while the slices are still being created


class Exchange(World):
    """JobSets of which each took the slice of the one before it, as soon as it stood.

    The first one has none; the last one's is still being created, or is made for another request.
    """

    def __init__(self, *names: str, last: TemplateRequest | None = None, held: bool = False) -> None:
        super().__init__()
        self.cluster.schedules = False
        self.jobsets = [*map(self.jobset_appears, names[:-1]), self.jobset_appears(names[-1], request=last)]
        self.steps()
        if held:
            self.store.edit_slice(CLUSTER, self.record(self.jobsets[-1]).id, hold=True)
        for before, after in zip(self.jobsets, self.jobsets[1:], strict=False):
            self.backend.finish(PoolName(slice_id(own_slice(before), 1)))
            self.binds(after, own_slice(before), attempt=1)
            self.deliver()
        self.first, self.last = self.jobsets[0], self.jobsets[-1]

    @property
    def creations(self) -> int:
        return len(self.backend.ordered(Verb.CREATE))


def minutes_pass(world: World, minutes: int) -> None:
    """Let minutes pass in which no operation of GKE ends."""
    for _ in range(minutes):
        world.clock.advance(MINUTE)
        world.steps()
        world.sweeps()


@pytest.mark.parametrize("count", [2, 3, 5])
def test_a_job_whose_slice_was_taken_gets_the_one_that_is_created_for_who_took_it(count: int) -> None:
    world = Exchange(*(f"llama-{number}" for number in range(count)))
    minutes_pass(world, 9)
    record = world.record(world.first)
    assert (record.phase, record.maker) == (Phase.PROVISIONING, own_slice(world.last))
    world.operations_end()
    world.binds(world.first, own_slice(world.last), attempt=1)
    world.settle(minutes=60)
    assert world.creations == len(world.pools) == count
    assert {each.reason for each in world.records.values()} == {Reason.READY}


def test_one_is_bought_if_that_of_who_took_it_cannot_be_created() -> None:
    world = Exchange("llama", "gemma")
    world.backend.fail(world.record(world.first).pool, STOCKOUT)
    minutes_pass(world, 2)
    assert world.record(world.first).maker == own_slice(world.first)
    assert world.creations == 3


def test_what_is_held_is_changed_with_none_until_it_is_not() -> None:
    world = Exchange("llama", "gemma", held=True)
    minutes_pass(world, 2)
    assert [world.record(each).maker for each in world.jobsets] == [own_slice(each) for each in world.jobsets]


def test_it_gets_the_one_of_a_sibling_that_is_on_the_one_of_who_took_it() -> None:
    world = World()
    world.cluster.schedules = False
    llama, gemma = world.jobset_appears("llama"), world.jobset_appears("gemma", slices=2)
    world.steps()
    world.steps()
    world.backend.finish(world.record(llama).pool)
    world.binds(gemma, own_slice(llama), attempt=1, index=0)
    world.deliver()
    gemmas, gemmas_second = (claim_id(a_job(owner=gemma.ref.owner, job_index=index)) for index in range(2))
    world.backend.finish(PoolName(slice_id(gemmas, 1)))
    world.binds(gemma, gemmas, attempt=1, index=1)
    minutes_pass(world, 2)
    assert [world.record(gemma, 0).maker, world.record(gemma, 1).maker] == [own_slice(llama), gemmas]
    assert world.record(llama).maker == gemmas_second
    assert len(world.backend.ordered(Verb.CREATE)) == 3


def test_one_is_bought_at_once_if_that_of_who_took_it_is_of_another_kind() -> None:
    world = Exchange("llama", "gemma", last=a_request(topology="2x4"))
    minutes_pass(world, 1)
    assert world.record(world.first).attempt == 2


def test_one_is_bought_at_once_if_nothing_was_bought_for_who_took_it() -> None:
    world = World()
    world.cluster.schedules = False
    llama = world.jobset_appears()
    world.steps()
    guest = world.guest_appears()
    world.operations_end()
    world.binds(guest, own_slice(llama), attempt=1)
    world.steps()
    assert world.record(llama).attempt == 2


def test_an_answer_about_the_slice_that_a_claim_had_does_not_empty_the_one_that_it_has() -> None:
    world = World()
    llama, _ = crossed(world)
    world.settle(minutes=5)
    has = world.record(llama)
    assert has.occupied
    late = HostsChanged(
        slice_id=own_slice(llama), attempt=1, usable=0, joined=0, closed=0, occupants=(), sequence=10**6
    )
    reconcile(CLUSTER, own_slice(llama), world.deps, Told(answer=late))
    assert world.record(llama).current.hosts == has.current.hosts


def test_a_slice_whose_release_an_operator_forces_is_given_to_nobody() -> None:
    world = World()
    world.cluster.schedules = False
    llama, gemma = world.jobset_appears("llama"), world.jobset_appears("gemma")
    world.steps()
    world.operations_end()
    world.steps()
    kept = world.record(gemma).pool
    world.store.edit_slice(CLUSTER, world.record(llama).id, release_requested=True, release_forced=True)
    world.binds(gemma, own_slice(llama), attempt=1)
    world.deliver()
    world.settle(minutes=5)
    assert kept not in deletions(world)


def test_a_slice_that_was_made_for_another_job_is_not_made_again_once_somebody_deleted_its_pool() -> None:
    world = World()
    llama, gemma = crossed(world)
    world.settle(minutes=5)
    has = world.record(llama)
    assert has.maker == own_slice(gemma)
    world.backend.vanish(has.pool)
    world.settle(minutes=30)
    assert world.record(llama).id == slice_id(own_slice(llama), 2)
    assert llama.bound == {0}
    assert [each for each in world.backend.ordered(Verb.CREATE) if each == has.pool] == [has.pool]


def test_a_slice_that_was_made_for_another_job_is_not_made_again_after_a_hold() -> None:
    world = World()
    llama, gemma = crossed(world)
    world.settle(minutes=5)
    has = world.record(llama)
    world.store.edit_slice(CLUSTER, has.id, hold=True)
    world.backend.vanish(has.pool)
    world.settle(minutes=20)
    world.store.edit_slice(CLUSTER, world.record(llama).id, hold=False)
    world.settle(minutes=30)
    assert world.record(llama).id == slice_id(own_slice(llama), 2)
    assert [each for each in world.backend.ordered(Verb.CREATE) if each == has.pool] == [has.pool]
    assert gemma.bound == {0}
