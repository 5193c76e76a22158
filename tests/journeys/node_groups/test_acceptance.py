"""What TPU operator tests end to end on Compute Engine (X0 to X6), here with the real adapter on the local one.

X1 and X2 are about a workload policy and an instance template alone, which have no object of their own here: that each
stands, is told, and goes is shown of the parts of a group.
"""

from __future__ import annotations

import pytest

from tests.adapters.compute_stories import COMPUTE
from tests.builders import CLUSTER
from tests.contracts.compute_steps import GROUPS, MINUTE, PARTS, POLICIES, TEMPLATES
from tests.domain.planning.test_node_groups import self_managed
from tests.node_groups import Json, changed, of_a_template, one_host, two_hosts
from tests.on_compute import OnCompute
from tpu_slices.domain.model.clusters import PoolSettings
from tpu_slices.domain.model.node_groups import FINALIZER
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import PoolName, WorkloadJob, claim_id, pool_name
from tpu_slices.domain.planning.host_labels import ACCELERATOR, COUNT, GROUP_NAME, GROUP_NAMESPACE, TOPOLOGY
from tpu_slices_simulator.live import LiveWorkload
from tpu_standins.compute.state import Kind

READY = {
    "WorkloadPolicyReady": "Ready",
    "InstanceTemplateReady": "Ready",
    "ManagedInstanceGroupReady": "Ready",
    "Ready": "Ready",
}
ON_DEMAND = {"instanceConfig__provisioningModel": None, "instanceConfig__reservation": None}
NOTHING = dict.fromkeys(READY, "!Provisioning")


class Acceptance(OnCompute):
    """A self-managed cluster, and what its users and Compute Engine do."""

    def __init__(self) -> None:
        super().__init__(self_managed(pools=PoolSettings(compute=COMPUTE)))
        self.place.reserve("my-tpu-reservation", "tpu7x-standard-4t", 2)

    def applied(self, manifest: Json) -> LiveWorkload:
        """Let a user apply a TPUNodeGroup, up to the decision about it."""
        group = self.group_appears(manifest)
        self.steps()
        return group

    def ready(self, manifest: Json) -> LiveWorkload:
        group = self.applied(manifest)
        self.lives(until=lambda: self.reasons(group).get("Ready") == "Ready")
        assert self.reasons(group)["Ready"] == "Ready"
        return group

    def pool(self, group: LiveWorkload) -> PoolName:
        return self.record(group).pool

    def coming_pool(self, group: LiveWorkload) -> PoolName:
        """Return the name of a group's first pool, recorded or not."""
        return pool_name(claim_id(WorkloadJob.declared(CLUSTER, group.ref.owner)), 1)

    def labels(self, *keys: str) -> list[tuple[str | None, ...]]:
        """Return the labels of all nodes, in these keys."""
        return [tuple(node.raw["metadata"]["labels"].get(key) for key in keys) for node in self.cluster.nodes.values()]

    def events(self) -> list[str]:
        return [event["reason"] for event in self.cluster.events.values()]

    def summary(self, group: LiveWorkload) -> tuple[int, int, int]:
        found: dict[str, int] = self.status(group)["nodeSummary"]
        return found["ready"], found["reconciling"], found["failed"]


@pytest.fixture
def world() -> Acceptance:
    return Acceptance()


def test_x0_hosts_are_sent_to_the_control_plane_that_their_manifest_names_and_to_no_other(world: Acceptance) -> None:
    group = world.applied(changed(two_hosts(), bootstrapKubernetes__controlPlaneIP="10.9.9.9"))
    world.lives(minutes=3, until=lambda: world.tokens(world.pool(group)) == 2)
    assert world.tokens(world.pool(group)) == 2
    metadata = world.place.metadata(world.pool(group))
    assert {each["kubeadm-control-plane"] for each in metadata} == {"10.9.9.9:6443"}
    assert {each["kubeadm-control-plane-ip"] for each in metadata} == {"10.9.9.9"}


def test_x1_a_policy_stands_before_anything_else_and_goes_last(world: Acceptance) -> None:
    group = world.applied(two_hosts())
    pool = world.pool(group)
    assert world.reasons(group) == NOTHING
    assert (world.place.requests(), world.place.stands(pool)) == ([f"{POLICIES}.insert"], {POLICIES})
    world.step_ends(pool)
    world.steps()
    assert world.reasons(group) == {**NOTHING, "WorkloadPolicyReady": "Ready"}
    world.group_is_deleted(group)
    world.lives(minutes=5)
    assert (world.place.stands(pool), world.stands(group)) == (set(), False)
    assert world.place.requests()[-1] == f"{POLICIES}.delete"


def test_x2_a_template_stands_before_the_group_that_is_made_of_it_and_goes_after_it(world: Acceptance) -> None:
    group = world.applied(two_hosts())
    pool = world.pool(group)
    world.step_ends(pool)
    assert world.place.stands(pool) == {POLICIES, TEMPLATES}
    world.step_ends(pool)
    world.steps()
    assert world.reasons(group) == {
        **NOTHING,
        "WorkloadPolicyReady": "Ready",
        "InstanceTemplateReady": "Ready",
    }
    world.group_is_deleted(group)
    world.lives(minutes=5)
    assert (world.place.stands(pool), world.stands(group)) == (set(), False)
    deleted = [each for each in world.place.requests() if each.endswith(".delete")]
    assert deleted[-2:] == [f"{TEMPLATES}.delete", f"{POLICIES}.delete"]


def test_x3_a_single_host_is_ready_without_a_policy_and_its_one_node_is_labelled(world: Acceptance) -> None:
    group = world.ready(one_host())
    assert world.reasons(group) == {kind: why for kind, why in READY.items() if kind != "WorkloadPolicyReady"}
    assert world.place.requests() == [f"{TEMPLATES}.insert", f"{GROUPS}.insert"]
    assert world.summary(group) == (1, 0, 0)
    assert world.labels(ACCELERATOR, COUNT, GROUP_NAMESPACE, GROUP_NAME) == [("tpu7x", "4", "research", "group")]


def test_x4_two_hosts_are_ready_with_all_that_is_told_on_the_way(world: Acceptance) -> None:
    group = world.applied(two_hosts())
    pool, seen = world.pool(group), [world.reasons(group)]
    assert group.manifest["metadata"]["finalizers"] == [FINALIZER]
    for _ in PARTS:
        world.step_ends(pool)
        world.steps()
        seen.append(world.reasons(group))
    policy, template = {"WorkloadPolicyReady": "Ready"}, {"InstanceTemplateReady": "Ready"}
    stands = {**READY, "Ready": "!AwaitingNodeJoin"}
    assert seen == [NOTHING, {**NOTHING, **policy}, {**NOTHING, **policy, **template}, stands]
    world.place.wait(MINUTE)
    world.machines_join(at_most=1)
    world.steps()
    assert world.summary(group) == (1, 1, 0)
    world.lives(until=lambda: world.reasons(group)["Ready"] == "Ready")
    assert (world.reasons(group), world.summary(group)) == (READY, (2, 0, 0))
    assert world.labels(ACCELERATOR, TOPOLOGY, COUNT) == 2 * [("tpu7x", "2x2x2", "4")]
    assert world.events() == ["ChildResourcesProvisioned", "NodesJoining", "Provisioned"]


def test_x5_a_template_of_the_users_is_used_and_not_made_nor_deleted(world: Acceptance) -> None:
    world.place.bring_template("our-hosts")
    before = len(world.place.requests())
    group = world.ready(of_a_template())
    pool = world.pool(group)
    assert world.reasons(group) == {**READY, "InstanceTemplateReady": "ExternalTemplate"}
    assert world.place.requests()[before:] == [f"{POLICIES}.insert", f"{GROUPS}.insert"]
    world.group_is_deleted(group)
    world.lives(minutes=5)
    assert (world.stands(group), world.place.stands(pool)) == (False, set())
    assert world.place.stands(PoolName("our-hosts")) == {TEMPLATES}


@pytest.mark.parametrize("manifest", [two_hosts(), one_host()], ids=["two hosts", "one host"])
def test_x6_within_five_minutes_of_its_deletion_nothing_is_left_on_either_side(
    world: Acceptance, manifest: Json
) -> None:
    group = world.ready(manifest)
    pool = world.pool(group)
    world.group_is_deleted(group)
    world.lives(minutes=5)
    assert (world.stands(group), world.place.stands(pool)) == (False, set())
    assert (world.cluster.nodes, world.place.running()) == ({}, {})
    assert world.record(group).phase is Phase.GONE
    assert world.events()[-1] == "Cleanup"


# What TPU operator tests nowhere


def test_a_host_that_fails_after_ready_shows_until_compute_engine_has_restarted_it(world: Acceptance) -> None:
    group = world.ready(changed(two_hosts(), **ON_DEMAND))
    world.place.press("kill", instance=min(path.name for path in world.place.running()))
    world.machines_join()
    world.steps()
    assert (world.reasons(group)["Ready"], world.summary(group)) == ("!NodeNotReady", (1, 0, 1))
    world.lives(minutes=3, until=lambda: world.reasons(group) == READY)
    assert (world.reasons(group), world.summary(group)) == (READY, (2, 0, 0))


def test_spot_hosts_that_are_preempted_are_told_and_come_back_as_another_slice(world: Acceptance) -> None:
    spot = changed(two_hosts(), instanceConfig__provisioningModel="SPOT", instanceConfig__reservation=None)
    group = world.ready(spot)
    first = world.pool(group)
    world.place.press("preempt", instance=min(path.name for path in world.place.running()))
    world.lives(minutes=2, until=lambda: world.reasons(group)["Ready"] == "!Preempted")
    assert (world.reasons(group)["Ready"], world.summary(group)) == ("!Preempted", (0, 0, 2))
    assert "1 of 2 instances are gone" in world.status(group)["conditions"]["Ready"]["message"]
    world.lives(minutes=15, until=lambda: world.reasons(group) == READY)
    assert world.reasons(group) == READY
    assert (world.place.stands(first), world.place.stands(world.pool(group))) == (set(), set(PARTS))


def test_a_stockout_is_told_and_the_group_is_ready_once_it_is_over(world: Acceptance) -> None:
    group = world.applied(two_hosts())
    pool = world.pool(group)
    world.place.run_out(pool)
    world.lives(minutes=30)
    assert world.reasons(group)["ManagedInstanceGroupReady"] == "!AwaitingCapacity"
    assert "ZONE_RESOURCE_POOL_EXHAUSTED" in world.status(group)["conditions"]["Ready"]["message"]
    world.place.calm_down()
    world.lives(minutes=15, until=lambda: world.reasons(group) == READY)
    assert (world.reasons(group), world.pool(group)) == (READY, pool)


@pytest.mark.parametrize("part", PARTS)
def test_a_permission_that_is_missing_is_told_and_tried_again(world: Acceptance, part: str) -> None:
    world.place.refuse(Kind.PERMISSION, part)
    group = world.group_appears(two_hosts())
    world.lives(minutes=3, until=lambda: world.reasons(group).get("Ready") == "!RequestRejected")
    assert "compute." in world.status(group)["conditions"]["Ready"]["message"]
    world.lives(minutes=120, until=lambda: world.reasons(group) == READY)
    assert (world.reasons(group), len(world.place.described())) == (READY, len(PARTS))


@pytest.mark.parametrize("part", PARTS)
def test_a_rate_limit_is_no_refusal_although_it_is_a_403_too(world: Acceptance, part: str) -> None:
    world.place.refuse(Kind.RATE, part)
    group = world.group_appears(two_hosts())
    world.lives(minutes=10, until=lambda: world.reasons(group).get("Ready") == "Ready")
    assert "RequestRejected" not in world.events()
    assert (world.reasons(group), len(world.place.described())) == (READY, len(PARTS))


@pytest.mark.parametrize("part", PARTS)
def test_what_others_have_under_its_name_is_told_and_left_to_them(world: Acceptance, part: str) -> None:
    group = world.group_appears(two_hosts())
    theirs = world.coming_pool(group)
    world.place.squat(theirs, part)
    world.lives(minutes=15, until=lambda: world.reasons(group).get("Ready") == "Ready")
    assert (world.reasons(group), world.pool(group) != theirs) == (READY, True)
    world.group_is_deleted(group)
    world.lives(minutes=15)
    assert (world.stands(group), world.place.stands(theirs)) == (False, {part})


def test_an_answer_that_is_lost_at_each_step_makes_nothing_twice(world: Acceptance) -> None:
    for part in PARTS:
        world.place.refuse(Kind.LOST_ANSWER, part)
    group = world.group_appears(two_hosts())
    world.lives(minutes=15, until=lambda: world.reasons(group).get("Ready") == "Ready")
    assert (world.reasons(group), len(world.place.described())) == (READY, len(PARTS))


def test_a_relay_that_restarts_at_each_step_changes_nothing(world: Acceptance) -> None:
    group = world.applied(two_hosts())
    pool = world.pool(group)
    for _ in PARTS:
        world.relay_restarts()
        world.step_ends(pool)
        world.relay_restarts()
    world.lives(until=lambda: world.reasons(group).get("Ready") == "Ready")
    assert world.reasons(group) == READY
    assert world.place.requests() == [f"{each}.insert" for each in PARTS]


def test_a_name_of_63_characters_and_groups_of_one_name_share_no_resource(world: Acceptance) -> None:
    manifest = changed(two_hosts(), **ON_DEMAND)
    groups = [world.group_appears(manifest, name="g" * 63, namespace=each) for each in ("research", "serving")]
    world.lives(until=lambda: all(world.reasons(each) == READY for each in groups))
    assert [world.reasons(each) for each in groups] == [READY, READY]
    assert {world.pool(each) for each in groups} == {name for name, _ in world.place.described()}
