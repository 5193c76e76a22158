"""Gangs whose documents, slices or limits are lost or changed: none is stuck, refused or reserved for, for ever."""

from __future__ import annotations

from functools import partial

import pytest

from relay.gangs.gates import Gates
from relay.objects import PoolKey
from tests.builders import CLUSTER, a_request
from tests.journeys.gangs.test_gangs import SLICE, STOCKOUT, a_gang, at_most, gang_of, has_capacity_for, report
from tests.manifests import a_manifest
from tests.world import World
from tpu_slices.domain.model.observations import Refused
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.domain.records.gangs import GangState
from tpu_slices.flows.gangs import settling
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.fakes.settings import FakeSettings
from tpu_slices_simulator.live import LiveWorkload


def reasons(world: World, gang: LiveWorkload, slices: int = 4) -> set[Reason]:
    return {world.record(gang, index).reason for index in range(slices)}


def line(world: World) -> set[str]:
    budget = world.store.budget(CLUSTER)
    return set(budget.value.gangs) if budget is not None else set()


def loses_slice(world: World, gang: LiveWorkload) -> None:
    lost = world.record(gang)
    world.backend.pools.pop(lost.pool)
    world.cluster.loses_nodes(PoolKey(lost.maker, lost.attempt))


def loses_its_budget(world: World) -> None:
    for place in world.store.places():
        if place.collection == "budgets":
            world.store.remove_document(place)


def test_a_gang_is_held_that_lost_a_slice_once_all_stood_and_before_its_pods_were_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    with monkeypatch.context() as patched:
        patched.setattr(Gates, "turn", lambda *_: None)
        gang = a_gang(world)
        world.settle(minutes=15, until=lambda: gang_of(world, gang).ran)
        world.settle(minutes=2)
        has_capacity_for(world, 3)
        loses_slice(world, gang)
        world.steps()
    world.settle(minutes=45)
    assert reasons(world, gang) == {Reason.READY, Reason.STOCKOUT}
    assert gang_of(world, gang).held_since is not None
    has_capacity_for(world, 4)
    world.settle(minutes=30, until=lambda: gang.served)
    assert gang.served


def test_a_gang_that_is_named_otherwise_leaves_no_reservation_behind() -> None:
    world = at_most(4 * SLICE)
    has_capacity_for(world, 0)
    gang = a_gang(world)
    world.settle(minutes=3)
    world.edits(gang, a_manifest(slices=4, request=a_request(gang="replicatedjob")))
    world.relay_publishes()
    world.settle(minutes=3)
    assert line(world) == {f"{gang.ref.owner.uid}/slice"}
    has_capacity_for(world, 4)
    world.settle(minutes=15, until=lambda: gang.served)
    assert gang.served


def test_slices_of_a_gang_that_waits_are_not_refused_as_its_leaders_do_not_come() -> None:
    world = at_most(4 * SLICE)
    gang = a_gang(world)
    world.settle(minutes=15, until=lambda: gang.served)
    world.settle(minutes=2)
    world.suspends(gang)
    loses_slice(world, gang)
    single = world.jobset_appears("single", 1)
    world.settle(minutes=1)
    world.resumes(gang)
    world.settle(minutes=20)
    assert reasons(world, gang) == {Reason.AWAITING_GANG, Reason.READY}
    world.settle(minutes=25)
    assert reasons(world, gang) == {Reason.AWAITING_GANG}, "what nobody used for so long went"
    world.ends(single)
    world.settle(minutes=30, until=lambda: gang.served)
    assert gang.served


def test_a_gang_that_waits_is_looked_at_again_once_its_place_in_line_is_lost() -> None:
    world = at_most(5 * SLICE)
    other = world.jobset_appears("gemma", 2)
    world.settle(minutes=10, until=lambda: other.served)
    gang = a_gang(world)
    world.settle(minutes=3)
    loses_its_budget(world)
    world.ends(other)
    world.settle(minutes=40, until=lambda: gang.served)
    assert gang.served


def test_gangs_that_never_fit_keep_no_other_from_being_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling, "MOST_SETTLED", 1)
    world = at_most(4 * SLICE)
    other = world.jobset_appears("gemma", 2)
    world.settle(minutes=10, until=lambda: other.served)
    a_gang(world, "giant", 5)
    gang = a_gang(world, slices=3)
    world.settle(minutes=3)
    world.ends(other)
    world.settle(minutes=30, until=lambda: gang.served)
    assert gang.served


def test_groups_that_were_scaled_away_are_not_waited_for() -> None:
    world = at_most(8 * SLICE)
    has_capacity_for(world, 2)
    groups = world.other_appears(
        OwnerKind.LEADER_WORKER_SET, manifest=a_manifest(OwnerKind.LEADER_WORKER_SET, 3, a_request(gang="all"))
    )
    world.settle(minutes=8)
    world.cluster.removes_pod(groups, 2)
    world.edits(groups, a_manifest(OwnerKind.LEADER_WORKER_SET, 2, a_request(gang="all")))
    world.relay_publishes()
    world.settle(minutes=4)
    assert gang_of(world, groups).state is GangState.STANDS
    assert line(world) == set()


def test_chips_are_not_kept_for_ever_for_a_gang_that_has_nothing_since_none_is_in_stock() -> None:
    world = at_most(4 * SLICE)
    create = partial(type(world.backend)._create, world.backend)
    refused = lambda order: Refused(STOCKOUT) if order.spec.topology.chips == SLICE else create(order)  # noqa: E731
    world.backend._create = refused  # type: ignore[method-assign]
    gang = a_gang(world)
    world.settle(minutes=5)
    single = world.jobset_appears("single", request=a_request(topology="2x4"))
    world.settle(minutes=10, until=lambda: single.served)
    world.settle(minutes=2)
    assert (single.served, gang_of(world, gang).waits) == (True, True)
    assert "need 64 chips at once, and 56 of 64 are free" in report(world, gang)[1]
    world.ends(single)
    world.backend._create = create  # type: ignore[method-assign]
    world.settle(minutes=30, until=lambda: gang.served)
    assert gang.served


def test_nothing_is_bought_for_a_gang_of_which_an_operator_holds_a_claim() -> None:
    world = World()
    has_capacity_for(world, 0)
    gang = a_gang(world)
    world.settle(minutes=2)
    world.store.edit_slice(CLUSTER, world.record(gang).id, hold=True)
    has_capacity_for(world, 4)
    world.settle(minutes=100)
    created = len(world.backend.ordered(Verb.CREATE))
    world.settle(minutes=180)
    assert (world.pools, len(world.backend.ordered(Verb.CREATE))) == ([], created)
    assert "llama-slice-0 is held by an operator" in gang_of(world, gang).message
    world.store.edit_slice(CLUSTER, world.record(gang).id, hold=False)
    world.publisher.request_reconcile(CLUSTER, [world.record(gang).last_claim])
    world.settle(minutes=20, until=lambda: gang.served)
    assert gang.served


def test_slices_are_not_let_go_for_a_while_in_which_none_could_be_made_as_the_cluster_was_paused() -> None:
    world = World()
    has_capacity_for(world, 3)
    gang = a_gang(world)
    world.settle(minutes=20, until=lambda: gang_of(world, gang).held_since is not None)
    FakeSettings(world.store).pause(CLUSTER, "maintenance")
    world.settle(minutes=90)
    has_capacity_for(world, 4)
    FakeSettings(world.store).resume(CLUSTER)
    world.settle(minutes=30, until=lambda: gang.served)
    assert (gang.served, gang_of(world, gang).tries) == (True, 0)


def test_slices_of_a_gang_of_which_an_operator_released_one_are_let_go_and_not_bought_again() -> None:
    world = World()
    gang = a_gang(world)
    world.settle(minutes=15, until=lambda: gang.served)
    world.store.edit_slice(CLUSTER, world.record(gang).id, release_requested=True, release_forced=True)
    world.publisher.request_reconcile(CLUSTER, [world.record(gang).last_claim])
    world.settle(minutes=6)
    for index in range(4):
        world.cluster.removes_pod(gang, index)
    world.settle(minutes=240)
    assert (world.pools, len(world.backend.ordered(Verb.CREATE))) == ([], 4)
    assert "llama-slice-0 was released by an operator" in gang_of(world, gang).message
