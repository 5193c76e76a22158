"""A slice on the local Compute Engine, from nothing to READY and back: the audit log alone leads from step to step."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from tests.adapters.compute_stories import TPU7X
from tests.contracts.compute_steps import GROUPS, PARTS, POLICIES, TEMPLATES
from tests.contracts.local_compute import LocalCompute
from tests.functions.test_handlers import an_event
from tests.world import World
from tpu_slices.app import handlers
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import PoolName
from tpu_slices.flows.orders import order_of
from tpu_slices.wire.messages import Message
from tpu_slices_simulator.cluster import LiveWorkload


class OnCompute(World):
    """The whole system, whose slices are on the local Compute Engine."""

    def __init__(self) -> None:
        self.place = LocalCompute()
        super().__init__(of_cluster=self.place.cluster)
        self.deps = replace(self.deps, backend=self.place.backend)

    def step_ends(self, pool: PoolName) -> None:
        """Let the operation that runs on a pool end, and the log sink tell it."""
        self.place.finish(pool)
        self.place.wait(timedelta(seconds=1))
        for entry in self.place.told():
            handlers.handle_reconcile(an_event("cloud-operations", Message(entry, {})), self.deps)

    def tokens(self, pool: PoolName) -> int:
        """Return how many hosts have a bootstrap token, a moment later."""
        self.place.wait(timedelta(seconds=5))
        return sum("kubeadm-join-token" in each for each in self.place.metadata(pool))

    def hosts_join(self, jobset: LiveWorkload) -> None:
        record = self.record(jobset)
        self.cluster.has_nodes(order_of(record, record.attempt, self.settings))
        self.steps()
        self.steps()


def test_ended_operations_lead_a_slice_from_step_to_step() -> None:
    world = OnCompute()
    jobset = world.jobset_appears(request=TPU7X)
    world.steps()
    pool, seen = world.record(jobset).pool, []
    for _ in PARTS:
        world.step_ends(pool)
        seen.append(world.record(jobset).reason)
    assert seen == [Reason.CREATING, Reason.CREATING, Reason.HOSTS_JOINING]
    world.steps()
    assert world.tokens(pool) == 2
    world.hosts_join(jobset)
    world.settle(minutes=5)
    assert world.record(jobset).phase is Phase.READY
    assert world.tokens(pool) == 0
    world.ends(jobset)
    world.steps()
    world.steps()
    for _ in PARTS:
        world.step_ends(pool)
    assert (world.record(jobset).phase, world.place.stands(pool)) == (Phase.GONE, set())
    made = [f"{each}.insert" for each in (POLICIES, TEMPLATES, GROUPS)]
    assert world.place.requests() == [*made, *(f"{each}.delete" for each in (GROUPS, TEMPLATES, POLICIES))]
