"""Leaders of JobSets of one shape that are scheduled to each other's hosts: no Job gets a second slice for that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import CLUSTER, MINUTE, a_job, a_request
from tests.journeys.serving import STOCKOUT, own_slice
from tests.world import World
from tpu_slices.domain.model.facts import TemplateRequest
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import claim_id
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
    assert {(record.phase, record.reason) for record in world.records.values()} == {(Phase.READY, "RunsElsewhere")}
    world.ends(llama)
    world.settle(minutes=50)
    assert len(world.pools) == 1, "gemma's own pool stood unused"
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
    assert replace(world.record(llama)).attempt == 2


# while the slices are still being created


class Exchange(World):
    """JobSets of which each took the slice of the one before it, as soon as it stood.

    The first one has none; the last one's is still being created, or is made for another request.
    """

    def __init__(self, *names: str, last: TemplateRequest | None = None) -> None:
        super().__init__()
        self.cluster.schedules = False
        self.jobsets = [*map(self.jobset_appears, names[:-1]), self.jobset_appears(names[-1], request=last)]
        self.steps()
        for before, after in zip(self.jobsets, self.jobsets[1:], strict=False):
            self.backend.finish(self.record(before).pool)
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


@pytest.mark.parametrize("count", [2, 3, 6])
def test_a_job_whose_slice_was_taken_gets_the_one_that_is_created_for_who_took_it(count: int) -> None:
    world = Exchange(*(f"llama-{number}" for number in range(count)))
    minutes_pass(world, 9)
    record = world.record(world.first)
    assert (record.phase, record.reason) == (Phase.PROVISIONING, Reason.HOSTS_EXCHANGED)
    assert world.record(world.jobsets[1]).owner.full_name in record.message
    assert own_slice(world.last) in record.message
    world.operations_end()
    world.binds(world.first, own_slice(world.last), attempt=1)
    world.settle(minutes=60)
    assert world.creations == len(world.pools) == count
    assert {each.reason for each in world.records.values()} == {Reason.RUNS_ELSEWHERE}


def test_one_is_bought_if_that_of_who_took_it_cannot_be_created() -> None:
    world = Exchange("llama", "gemma")
    world.backend.fail(world.record(world.last).pool, STOCKOUT)
    minutes_pass(world, 2)
    assert world.record(world.first).attempt == 2
    assert world.creations == 3


def test_one_is_bought_if_that_of_who_took_it_is_held() -> None:
    world = Exchange("llama", "gemma")
    world.store.edit_slice(CLUSTER, world.record(world.last).id, hold=True)
    minutes_pass(world, 2)
    assert world.record(world.first).attempt == 2


def test_it_gets_the_one_of_a_sibling_that_is_on_the_one_of_who_took_it() -> None:
    world = World()
    world.cluster.schedules = False
    llama, gemma = world.jobset_appears("llama"), world.jobset_appears("gemma", slices=2)
    world.steps()
    world.steps()
    world.backend.finish(world.record(llama).pool)
    world.binds(gemma, own_slice(llama), attempt=1, index=0)
    world.deliver()
    world.backend.finish(world.record(gemma, 0).pool)
    world.binds(gemma, world.record(gemma, 0).maker, attempt=1, index=1)
    minutes_pass(world, 2)
    assert world.record(gemma, 1).name in world.record(llama).message
    assert len(world.backend.ordered(Verb.CREATE)) == 3


def test_one_is_bought_if_that_of_who_took_it_stands_and_the_leader_is_not_scheduled_there() -> None:
    world = Exchange("llama", "gemma")
    world.operations_end()
    minutes_pass(world, 8)
    assert world.creations == 2
    minutes_pass(world, 4)
    assert world.record(world.first).attempt == 2


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
