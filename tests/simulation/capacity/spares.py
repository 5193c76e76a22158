"""Looks, in calm, whether the spares stand that the settings ask for."""

from __future__ import annotations

from tests.simulation.promises import Promise, broken
from tests.simulation.standing import by_id, ours, slice_of
from tpu_slices.domain.capacity.spares import seats_of
from tpu_slices.domain.catalogue.topology import Topology
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices_simulator.simulation import Simulation


def stand(world: Simulation) -> None:
    """Check that each spare stands, unless nothing pins pods, somebody waits, or its chips do not fit into a limit."""
    seats = seats_of(world.settings)
    known = by_id(world.records.values())
    has = {known[slice_of(pool)].claimed_by for pool in ours(world) if slice_of(pool) in known and pool.hosts_joined}
    lacking = sorted(seats.keys() - has)
    live = [each for each in world.workloads.values() if each.state is WorkloadState.ACTIVE]
    if not lacking or world.story.crosses or not all(each.served for each in live):
        return
    policy, chips = world.settings.policy, {seat: _chips(seats[seat].spare.topology) for seat in lacking}
    bought = {pool.name: pool.order.spec for pool in ours(world) if pool.order is not None}
    used = sum(spec.chips for spec in bought.values() if spec is not None)
    if policy.chips_per_cluster is not None and used + min(chips.values()) > policy.chips_per_cluster:
        return
    broken(Promise.SPARES_STAND, f"{lacking} do not stand, with {used} chips in all", world)


def _chips(topology: str) -> int:
    return Topology.parse(topology).chips
