"""A TPUNodeGroup from its manifest until its object is gone: what its user sees, and what is bought."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.builders import CLUSTER
from tests.domain.planning.test_node_groups import EVERYTHING, self_managed
from tests.node_groups import changed, of_a_template, one_host, two_hosts
from tests.world import World
from tpu_slices.domain.model.clusters import Allowed, Policy
from tpu_slices.domain.model.observations import Busy, Failure, FailureKind
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.ports.errors import Temporary
from tpu_slices.wire.workloads import CHIPS
from tpu_slices_simulator.cluster import NOT_READY
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload

STOCKOUT = Failure(FailureKind.STOCKOUT, "ZONE_RESOURCE_POOL_EXHAUSTED: us-central1-c has not enough resources")
READY = {
    "WorkloadPolicyReady": "Ready",
    "InstanceTemplateReady": "Ready",
    "ManagedInstanceGroupReady": "Ready",
    "Ready": "Ready",
}


@pytest.fixture
def world() -> World:
    return World(of_cluster=self_managed())


def ready(world: World, **owner: Any) -> LiveWorkload:
    group = world.group_appears(**owner)
    world.settle(minutes=5, until=lambda: world.reasons(group).get("Ready") == "Ready")
    assert world.reasons(group)["Ready"] == "Ready"
    return group


def bought(world: World) -> int:
    """Return how many slices were created."""
    return len({*world.backend.ordered(Verb.CREATE)})


def told(world: World) -> list[str]:
    return [event["reason"] for event in world.cluster.events.values()]


def summary(world: World, group: LiveWorkload) -> tuple[int, int, int]:
    found: dict[str, int] = world.status(group)["nodeSummary"]
    return found["ready"], found["reconciling"], found["failed"]


def test_a_group_gets_its_slice_and_its_status_tells_how_far_it_is(world: World) -> None:
    group = world.group_appears()
    world.steps()
    assert world.reasons(group) == dict.fromkeys(READY, "!Provisioning")
    assert summary(world, group) == (0, 2, 0)
    world.settle(minutes=5)
    assert world.reasons(group) == READY
    assert summary(world, group) == (2, 0, 0)
    assert world.status(group)["observedGeneration"] == 1
    assert told(world) == ["ChildResourcesProvisioned", "Provisioned"]


def test_a_single_host_has_no_condition_for_a_policy(world: World) -> None:
    group = world.group_appears(one_host())
    world.settle(minutes=5)
    assert world.reasons(group) == {kind: why for kind, why in READY.items() if kind != "WorkloadPolicyReady"}


def test_hosts_that_join_one_by_one_are_told(world: World) -> None:
    world.cluster.unusable_hosts = 1
    group = world.group_appears()
    world.settle(minutes=5)
    assert world.reasons(group)["Ready"] == "!AwaitingNodeJoin"
    assert summary(world, group) == (1, 1, 0)
    assert told(world) == ["ChildResourcesProvisioned", "NodesJoining"]
    all_join(world)
    assert world.reasons(group) == READY
    assert told(world) == ["ChildResourcesProvisioned", "NodesJoining", "Provisioned"]


def all_join(world: World) -> None:
    """Let every host be as kubelets report it that are well."""
    for node in list(world.cluster.nodes.values()):
        world.cluster.changes_node(node, {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    world.settle(minutes=1)


def test_hosts_that_do_not_join_are_waited_for_and_never_replaced(world: World) -> None:
    """How long a join takes is up to the user, and hosts that are given back may not be had again."""
    world.cluster.unusable_hosts = 1
    group = world.group_appears()
    world.settle(minutes=300)
    assert world.reasons(group)["Ready"] == "!AwaitingNodeJoin"
    assert world.backend.ordered(Verb.DELETE) == []


def test_a_group_that_nobody_uses_stays_and_is_bought_once(world: World) -> None:
    group = ready(world)
    world.settle(minutes=600)
    assert world.reasons(group) == READY
    assert (bought(world), world.backend.ordered(Verb.DELETE)) == (1, [])


def test_a_group_stays_however_long_its_relay_is_silent(world: World) -> None:
    ready(world)
    world.relay_is_dead = True
    world.settle(minutes=300)
    assert (len(world.pools), world.backend.ordered(Verb.DELETE)) == (1, [])


def test_nothing_is_bought_before_the_object_is_held(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise Temporary("the API server refused: 403 Forbidden")

    with monkeypatch.context() as patch:
        patch.setattr(world.api_server, "patch_group", refuse)
        group = world.group_appears()
        world.settle(minutes=10)
        assert (world.records, world.backend.calls) == ({}, [])
    world.settle(minutes=5)
    assert world.reasons(group) == READY


def test_a_deletion_waits_for_the_slice_and_leaves_nothing(world: World) -> None:
    group = ready(world)
    world.group_is_deleted(group)
    world.steps()
    assert world.stands(group)
    assert world.reasons(group)["Ready"] in {"!ClosingHosts", "!DeletingMIG"}
    world.settle(minutes=5)
    assert not world.stands(group)
    assert (world.pools, world.cluster.nodes) == ([], {})
    assert world.record(group).phase is Phase.GONE
    assert told(world)[-1] == "Cleanup"


def test_a_group_that_is_deleted_while_it_is_created_goes_once_that_has_ended(world: World) -> None:
    group = world.group_appears()
    world.steps()
    world.group_is_deleted(group)
    world.settle(minutes=10)
    assert (world.stands(group), world.pools, world.cluster.nodes) == (False, [], {})


def test_a_group_that_is_deleted_before_it_was_ever_recorded_goes_at_once(world: World) -> None:
    group = world.group_appears()
    world.cluster_lives()
    world._facts.clear()
    world.group_is_deleted(group)
    world.settle(minutes=2)
    assert not world.stands(group)
    assert world.backend.calls == []


def test_a_group_that_is_gone_past_its_finalizer_is_released(world: World) -> None:
    group = ready(world)
    group.manifest["metadata"]["finalizers"] = []
    world.group_is_deleted(group)
    world.settle(minutes=5)
    assert world.pools == []


def test_another_finalizer_keeps_the_object_and_not_the_slice(world: World) -> None:
    group = ready(world)
    group.manifest["metadata"]["finalizers"].append("example.com/theirs")
    world.group_is_deleted(group)
    world.settle(minutes=5)
    assert world.stands(group)
    assert group.manifest["metadata"]["finalizers"] == ["example.com/theirs"]
    assert world.pools == []


def test_a_word_that_is_lost_keeps_no_object_for_ever(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    group = ready(world)
    with monkeypatch.context() as patch:
        patch.setattr(world.publisher, "announce_node_group", lambda *_: None)
        world.group_is_deleted(group)
        world.settle(minutes=4)
        assert world.record(group).phase is Phase.GONE
        assert world.stands(group)
    world.settle(minutes=6)
    assert not world.stands(group)


def test_what_is_refused_says_every_reason_and_goes_without_a_trace(world: World) -> None:
    group = world.group_appears(changed(two_hosts(), nodeCount=4, project="other-project"))
    world.settle(minutes=2)
    condition = world.status(group)["conditions"]["Ready"]
    assert (condition["status"], condition["reason"]) == ("False", "RequestRejected")
    assert "spec.nodeCount" in condition["message"]
    assert "spec.project" in condition["message"]
    assert world.reasons(group)["ManagedInstanceGroupReady"] == "!RequestRejected"
    assert told(world) == ["RequestRejected"]
    world.group_is_deleted(group)
    world.settle(minutes=3)
    assert (world.stands(group), world.backend.calls) == (False, [])


def test_a_group_that_cannot_be_read_says_so(world: World) -> None:
    group = world.group_appears(changed(two_hosts(), topology=4))
    world.settle(minutes=2)
    assert "spec.topology: Input should be a valid string" in world.status(group)["conditions"]["Ready"]["message"]


def test_new_settings_let_a_refused_group_have_its_slice(world: World) -> None:
    strict = Policy(everyone=Allowed(reservations=("ours",), service_accounts=("*",)))
    world.store.put_settings(self_managed(policy=strict, version="strict"))
    group = world.group_appears()
    world.settle(minutes=2)
    assert "reservations: my-tpu-reservation is not allowed" in world.status(group)["conditions"]["Ready"]["message"]
    world.store.put_settings(self_managed(policy=Policy(everyone=EVERYTHING), version="open"))
    world.settle(minutes=60, until=lambda: world.reasons(group) == READY)
    assert world.reasons(group) == READY


def test_a_stockout_is_told_and_passes_by_itself(world: World) -> None:
    group = world.group_appears()
    world.steps()
    world.backend.fail(world.record(group).pool, STOCKOUT)
    world.settle(minutes=20, until=lambda: world.record(group).phase is Phase.WAITING)
    world.cluster_lives()
    assert world.reasons(group)["Ready"] == "!InstancesCreationFailed"
    assert "ZONE_RESOURCE_POOL_EXHAUSTED" in world.status(group)["conditions"]["Ready"]["message"]
    world.settle(minutes=10)
    assert world.reasons(group) == READY
    assert Counter(told(world))["InstancesCreationFailed"] == 1


def test_capacity_that_compute_engine_waits_for_is_waited_for(world: World) -> None:
    group = world.group_appears()
    world.settle(minutes=10, until=lambda: world.backend.pools[world.record(group).pool].hosts_change)
    world.backend.await_hosts(world.record(group).pool, "no capacity in us-central1-c yet")
    world.settle(minutes=120)
    assert world.record(group).reason is Reason.AWAITING_CAPACITY
    assert world.reasons(group)["ManagedInstanceGroupReady"] == "!AwaitingCapacity"
    assert world.reasons(group)["WorkloadPolicyReady"] == "Ready"
    assert world.backend.ordered(Verb.DELETE) == []


def test_a_template_of_the_users_is_not_ours_to_make(world: World) -> None:
    group = world.group_appears(of_a_template())
    world.settle(minutes=3)
    assert world.reasons(group)["InstanceTemplateReady"] == "ExternalTemplate"


def test_a_template_that_is_refused_is_told_once(world: World) -> None:
    world.backend.refuses_creations = Failure(FailureKind.CONFIGURATION, "machineType is n1-standard-1")
    group = world.group_appears(of_a_template())
    world.settle(minutes=5)
    assert world.reasons(group)["InstanceTemplateReady"] == "!InvalidTemplate"
    assert Counter(told(world)) == {"InvalidInstanceTemplate": 1, "RequestRejected": 1}
    world.settle(minutes=30)
    assert Counter(told(world)) == {"InvalidInstanceTemplate": 1, "RequestRejected": 1}


def test_a_host_that_is_not_ready_any_more_shows_at_once_and_when_it_is_back(world: World) -> None:
    group = ready(world)
    world.a_host_breaks()
    world.steps()
    assert world.reasons(group)["Ready"] == "!NodeNotReady"
    assert summary(world, group) == (1, 0, 1)
    assert "NodeNotReady" in told(world)
    all_join(world)
    assert world.reasons(group) == READY
    assert summary(world, group) == (2, 0, 0)


def test_chips_that_went_show_at_once(world: World) -> None:
    group = ready(world)
    world.cluster.changes_node(next(iter(world.cluster.nodes.values())), {"status": {"allocatable": {CHIPS: "3"}}})
    world.steps()
    assert world.reasons(group)["Ready"] == "!TPUUnhealthy"
    assert summary(world, group) == (1, 0, 1)


def test_a_host_that_is_gone_shows_at_once(world: World) -> None:
    group = ready(world)
    world.cluster.loses_node(next(iter(world.cluster.nodes)))
    world.relay_publishes()
    world.deliver()
    world.relay_writes()
    assert world.reasons(group)["Ready"] == "!NodeLost"
    assert summary(world, group) == (1, 0, 1)


def test_machines_that_compute_engine_repairs_are_told(world: World) -> None:
    group = ready(world)
    pool = world.backend.pools[world.record(group).pool]
    pool.seen = Busy("it recreates an instance")
    world.cluster.changes_node(next(iter(world.cluster.nodes.values())), NOT_READY)
    world.steps()
    assert world.reasons(group)["Ready"] == "!Unstable"


def test_a_slice_that_is_broken_for_good_is_made_again_under_another_name(world: World) -> None:
    group = ready(world)
    first = world.record(group).pool
    world.backend.wreck(first, Failure(FailureKind.HOSTS, "all instances were preempted"))
    world.cluster.machines_go(next(iter(world.cluster.nodes.values())).pool)
    world.settle(minutes=60, until=lambda: world.reasons(group) == READY)
    assert world.reasons(group) == READY
    assert world.pools == [world.record(group).pool] != [first]


def test_lost_records_wake_nothing_up_and_lose_nothing(world: World) -> None:
    group = ready(world)
    world.loses_its_records()
    world.settle(minutes=60)
    assert bought(world) == 1
    assert world.reasons(group) == READY
    world.group_is_deleted(group)
    world.settle(minutes=40)
    assert (world.stands(group), world.pools) == (False, [])


def test_a_restarted_relay_changes_nothing(world: World) -> None:
    group = ready(world)
    before = group.manifest
    world.relay_restarts()
    world.settle(minutes=30)
    assert group.manifest == before
    assert bought(world) == 1


def test_groups_of_one_name_in_two_namespaces_have_a_slice_each(world: World) -> None:
    one, other = ready(world), ready(world, namespace="serving")
    assert world.record(one).pool != world.record(other).pool
    world.group_is_deleted(one)
    world.settle(minutes=5)
    assert world.pools == [world.record(other).pool]


def test_a_release_by_an_operator_is_told_and_not_undone(world: World) -> None:
    group = ready(world)
    record = world.record(group)
    world.store.edit_slice(CLUSTER, record.id, release_requested=True, next_reconcile_at=world.clock.now())
    world.settle(minutes=30)
    assert world.pools == []
    assert world.stands(group)
    assert world.reasons(group)["Ready"].startswith("!")


def test_the_report_names_the_kind(world: World) -> None:
    group = ready(world)
    world.group_is_deleted(group)
    world.settle(minutes=5)
    reports = [update.report.message for _, update in world.publisher.reports]
    assert reports[-1] == "The TPUNodeGroup was deleted; no slices are left."


def test_a_silent_relay_is_no_demand_for_a_group_that_is_not_bought_yet(world: World) -> None:
    world.backend.refuses_creations = STOCKOUT
    world.group_appears()
    world.settle(minutes=2)
    world.relay_is_dead = True
    world.settle(minutes=30)
    world.backend.refuses_creations = None
    world.settle(minutes=60)
    assert world.pools == []
    world.relay_is_dead = False
    world.settle(minutes=20)
    assert len(world.pools) == 1
