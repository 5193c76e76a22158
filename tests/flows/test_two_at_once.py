"""Four processes make the first record of a claim. Whichever two do so at once, the claim never has two slices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import permutations
from typing import Any, cast

import pytest

from tests.builders import CLUSTER, a_job, a_leader, a_record, an_occupant, hosts_changed
from tests.flows.swept import serving
from tests.world import World
from tpu_slices.domain.model.facts import SlicesWanted, WorkloadState
from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.slices import ClusterId, PoolName, claim_id
from tpu_slices.domain.reconciling.adoption import LiveWorkload
from tpu_slices.flows.adopt import adopt
from tpu_slices.flows.orders import order_of
from tpu_slices.flows.receive import receive
from tpu_slices.flows.sweep import sweep
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.store import Names, Together
from tpu_slices_simulator.fakes.store import FakeStore
from tpu_slices_simulator.live import LiveWorkload as Live

LATER = 10_000
"""A position beyond those of the relay that runs."""


class Interrupted:
    """A store before whose n-th read or write somebody else acts; what is read together is read in two parts."""

    def __init__(self, store: FakeStore, before: int, act: Callable[[], object]) -> None:
        self._store, self._left, self._act = store, before, act

    @property
    def acted(self) -> bool:
        return self._left < 0

    def _step(self) -> None:
        self._left -= 1
        if self._left == -1:
            self._act()

    def __getattr__(self, name: str) -> Any:
        def stepped(*args: Any) -> Any:
            self._step()
            return getattr(self._store, name)(*args)

        return stepped

    def together(self, cluster: ClusterId, names: Names) -> Together:
        claims, rest = Names(claims=names.claims), replace(names, claims=())
        read = {}
        for part in (rest, claims) if names.claims_last else (claims, rest):
            self._step()
            read[part is claims] = self._store.together(cluster, part)
        return replace(read[False], having=read[True].having)


def a_claim_to_be(world: World, *, told: bool) -> Live:
    """Return a JobSet on record whose claim has no record, and four signs of which each makes one.

    `told`: demand for it is on record, as its record was lost.
    """
    serving(world)
    gemma = world.jobset_appears("gemma", absent=True)
    world.settle(minutes=1)
    world.backend.hold_legacy_pool(
        LegacyPool(name=PoolName("gemma-1"), namespace="research", jobset="gemma", job="gemma-slice-0")
    )
    orphan = a_record(job=a_job(owner=gemma.ref.owner), attempt=3)
    world.backend.create(order_of(orphan, world.settings))
    if told:
        own = world.store.workloads(CLUSTER, [gemma.ref.owner.uid])[gemma.ref.owner.uid].value
        world.store.put(replace(own, demand={orphan.maker: world.clock.now()}))
    found = world.store.heartbeat(CLUSTER)
    assert found is not None
    world.store.put(replace(found.value, next_inventory_check_at=None))
    return gemma


def demand_is_told(gemma: Live, deps: ReconcileDeps) -> None:
    receive(SlicesWanted(workload=gemma.ref, requests=gemma.requests, waiting=(a_leader(),)), CLUSTER, deps)


def a_job_comes_to_anothers_hosts(gemma: Live, deps: ReconcileDeps) -> None:
    llama = claim_id(a_job(uid="uid-llama-0"))
    there = an_occupant(owner=gemma.ref.owner)
    receive(hosts_changed(slice_id=llama, occupants=(there,), sequence=LATER), CLUSTER, deps)


def the_inventory_is_checked(_: Live, deps: ReconcileDeps) -> None:
    sweep(CLUSTER, deps)


def a_pool_is_adopted(gemma: Live, deps: ReconcileDeps) -> None:
    adopt(CLUSTER, [LiveWorkload(ref=gemma.ref, state=WorkloadState.ACTIVE, requests=gemma.requests)], deps)


MAKERS = (demand_is_told, a_job_comes_to_anothers_hosts, the_inventory_is_checked, a_pool_is_adopted)


def slices_of(gemma: Live, world: World) -> list[str]:
    claim = claim_id(a_job(owner=gemma.ref.owner))
    return [record.id for record in world.store.slice_records(CLUSTER) if record.claimed_by == claim]


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("make", MAKERS)
def test_each_of_them_gives_the_claim_a_slice(make: Callable[[Live, ReconcileDeps], None], *, told: bool) -> None:
    world = World()
    gemma = a_claim_to_be(world, told=told)
    assert slices_of(gemma, world) == []
    make(gemma, world.deps)
    assert len(slices_of(gemma, world)) == 1


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize(("first", "second"), [*permutations(MAKERS, 2)])
def test_a_claim_never_has_two_slices_whenever_a_second_one_is_made_for_it(
    first: Callable[[Live, ReconcileDeps], None], second: Callable[[Live, ReconcileDeps], None], *, told: bool
) -> None:
    found: Mapping[int, list[str]] = {}
    for before in range(200):
        world = World()
        gemma = a_claim_to_be(world, told=told)
        store = Interrupted(world.store, before, partial(second, gemma, world.deps))
        first(gemma, replace(world.deps, store=cast("Any", store)))
        if not store.acted:
            break
        found = {**found, before: slices_of(gemma, world)}
    assert found
    assert {before: slices for before, slices in found.items() if len(slices) != 1} == {}
