"""Where a Job runs, whatever happens to the reports: bindings are ordered, and one elsewhere ends the last one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from relay.objects import PoolKey
from tests.builders import CLUSTER, MINUTE
from tests.journeys.serving import crossed, deletions, own_slice, reason
from tests.world import World
from tpu_slices.domain.model.facts import Fact, Family, HostsChanged
from tpu_slices.domain.model.questions import RepeatQuestion
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import SliceId, slice_id
from tpu_slices.domain.reconciling.inventory import INVENTORY_CHECK_EVERY
from tpu_slices.domain.records.hosts import key_of
from tpu_slices.flows.receive import receive
from tpu_slices_simulator.live import LiveWorkload


@dataclass(frozen=True, slots=True)
class Three:
    """A world in which three JobSets have slices that are ready, and a test alone binds leaders."""

    world: World
    llama: LiveWorkload
    gemma: LiveWorkload
    phi: LiveWorkload

    def binds(self, jobset: LiveWorkload, to: LiveWorkload) -> list[Fact]:
        """Bind a leader to the first pool of a slice; return what the relay says, which is not published yet."""
        jobset.bound.add(0)
        self.world.cluster.binds(jobset, PoolKey(own_slice(to), 1), 0)
        return self.world.cluster.facts()

    def leaves(self, jobset: LiveWorkload) -> list[Fact]:
        self.world.cluster.removes_pod(jobset, 0)
        return self.world.cluster.facts()

    def delivers(self, facts: list[Fact]) -> None:
        for fact in facts:
            self.world.publish(fact)
            self.world.deliver()

    def place(self, jobset: LiveWorkload) -> SliceId:
        """Return the slice that the claim of a JobSet has."""
        return self.world.record(jobset).id

    def demand_confirmed_at(self, jobset: LiveWorkload) -> datetime | None:
        uid = jobset.ref.owner.uid
        return self.world.store.workloads(CLUSTER, [uid])[uid].value.demand[own_slice(jobset)]

    def runs_on(self, jobset: LiveWorkload, of: LiveWorkload) -> bool:
        """Return whether a JobSet has the first slice that was made for another, and is on it."""
        return self.place(jobset) == slice_id(own_slice(of), 1) and self.world.record(jobset).occupied


def three_ready() -> Three:
    world = World()
    world.cluster.schedules = False
    three = Three(world, *(world.jobset_appears(name) for name in ("llama", "gemma", "phi")))
    world.settle(minutes=3)
    assert {record.reason for record in world.records.values()} == {Reason.READY}
    return three


def of_hosts(facts: list[Fact]) -> list[Fact]:
    return [fact for fact in facts if isinstance(fact, HostsChanged)]


def test_a_report_that_comes_after_one_from_a_later_place_changes_nothing() -> None:
    three = three_ready()
    at_first = three.binds(three.gemma, to=three.llama)
    left = three.leaves(three.gemma)
    at_last = three.binds(three.gemma, to=three.phi)
    three.delivers([*at_last, *at_first, *left])
    assert three.runs_on(three.gemma, of=three.phi)
    three.world.settle(minutes=120)
    assert three.runs_on(three.gemma, of=three.phi)
    assert reason(three.world, three.gemma) is Reason.READY
    assert three.world.record(three.gemma).pool in three.world.pools


def test_a_late_report_of_the_own_pool_does_not_end_a_later_place_elsewhere() -> None:
    three = three_ready()
    at_home = three.binds(three.gemma, to=three.gemma)
    left = three.leaves(three.gemma)
    away = three.binds(three.gemma, to=three.phi)
    three.delivers([*away, *at_home])
    assert three.runs_on(three.gemma, of=three.phi)
    three.delivers(left)
    three.world.settle(minutes=30)
    assert three.runs_on(three.gemma, of=three.phi)
    assert reason(three.world, three.gemma) is Reason.READY


def test_a_late_report_from_elsewhere_does_not_end_a_later_place_on_the_own_pool() -> None:
    three = three_ready()
    away = three.binds(three.gemma, to=three.phi)
    left = three.leaves(three.gemma)
    at_home = three.binds(three.gemma, to=three.gemma)
    three.delivers([*at_home, *away])
    assert three.runs_on(three.gemma, of=three.gemma)
    three.delivers(left)
    three.world.settle(minutes=30)
    assert three.runs_on(three.gemma, of=three.gemma)
    assert reason(three.world, three.gemma) is Reason.READY


def test_a_job_that_waits_again_is_not_served_by_an_outdated_arrival() -> None:
    three = three_ready()
    at_first = three.binds(three.gemma, to=three.llama)
    left = three.leaves(three.gemma)
    three.delivers(three.binds(three.gemma, to=three.phi))
    three.world.leaves(three.gemma)
    three.world.steps()
    confirmed = three.demand_confirmed_at(three.gemma)
    assert confirmed is not None
    three.delivers(of_hosts([*at_first, *left]))
    assert three.demand_confirmed_at(three.gemma) == confirmed


def test_a_job_that_came_to_hosts_unheard_is_found_by_the_inventory_check_and_its_claim_gets_them() -> None:
    world, llama, gemma = crossed()
    has, other = world.record(llama), world.record(gemma)
    uid = gemma.ref.owner.uid
    lost = world.store.workloads(CLUSTER, [uid])[uid].value
    world.store.put(
        other.with_slice_of(has, world.clock.now(), left=None), has.with_slice_of(other, world.clock.now(), left=None)
    )
    assert lost.live
    world.settle(minutes=INVENTORY_CHECK_EVERY // MINUTE + 1)
    assert (world.record(llama).id, world.record(gemma).id) == (has.id, other.id)
    assert (world.store.chips_bought(CLUSTER), deletions(world)) == (32, [])


def test_repeated_reports_of_guests_write_nothing() -> None:
    three = three_ready()
    three.delivers(three.binds(three.gemma, to=three.phi))
    three.world.settle(minutes=2)
    before = {slice_: record.current.hosts for slice_, record in three.world.records.items()}
    place, commits = three.place(three.gemma), len(three.world.store.commits)
    every = tuple(key_of(each.maker, each.attempt) for each in three.world.records.values())
    three.world.cluster.relays[0].asked(RepeatQuestion(family=Family.HOSTS, keys=every))
    repeated = of_hosts(three.world.cluster.facts())
    assert len(repeated) == len(before)
    for fact in repeated:
        receive(fact, CLUSTER, three.world.deps)
    assert (len(three.world.store.commits), three.place(three.gemma)) == (commits, place)
