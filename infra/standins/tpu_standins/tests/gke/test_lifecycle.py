"""The lifecycle of a pool, with a stepped clock."""

import pytest
from google.cloud import container_v1 as gke

from tpu_standins.gke.codes import Code
from tpu_standins.gke.state import Kind
from tpu_standins.testing.gke import DEMO, World, a_cluster, a_pool, a_single_host, a_state, a_world_with, pool_path

Status = gke.NodePool.Status
Run = gke.Operation.Status


def test_a_create_is_pending_then_running_then_done() -> None:
    world = World()
    name = world.create().name
    assert world.operation(name).status == Run.PENDING
    world.after(1)
    assert world.operation(name).status == Run.RUNNING
    assert world.pool().status == Status.PROVISIONING
    world.after(10)
    ended = world.operation(name)
    assert (ended.status, ended.error.code, bool(ended.end_time)) == (Run.DONE, 0, True)
    assert world.pool().status == Status.RUNNING


def test_hosts_join_together_then_turn_ready_then_offer_chips() -> None:
    world = World()
    operation = world.create().name
    world.after(4.9)
    assert world.nodes.nodes == {}
    assert world.operation(operation).status == Run.RUNNING
    world.after(0.2)
    assert list(world.conditions().values()) == ["False", "False"]
    assert world.operation(operation).status == Run.DONE
    world.after(1)
    assert list(world.conditions().values()) == ["True", "True"]
    assert world.chips() == ["0", "0"]
    world.after(1)
    assert world.chips() == ["4", "4"]


def test_an_operation_names_its_pool_by_the_projects_number() -> None:
    operation = World().create()
    assert operation.name == "operation-1800000000000-00000000-0000-4000-8000-000000000001"
    assert operation.operation_type == gke.Operation.Type.CREATE_NODE_POOL
    rest = "locations/us-central2/clusters/demo/nodePools/pool"
    assert operation.target_link == f"https://container.googleapis.com/v1/projects/123456789012/{rest}"


def test_a_pool_shows_gkes_defaults_and_taint() -> None:
    world = World()
    world.create()
    pool = world.pool()
    assert (pool.management.auto_upgrade, pool.management.auto_repair) == (True, True)
    assert [taint.key for taint in pool.config.taints] == ["google.com/tpu"]
    assert pool.config.disk_type == "pd-standard"


def test_a_delete_while_creating_is_refused_and_fine_afterwards() -> None:
    world = World()
    creating = world.create().name
    refused = world.delete_refused()
    assert (refused.code, refused.rule) == (Code.FAILED_PRECONDITION, "pool-busy")
    assert creating in refused.message
    world.after(10)
    deleting = world.delete().name
    assert world.pool().status == Status.STOPPING
    world.after(3)
    assert world.operation(deleting).status == Run.DONE
    assert world.refused("GetNodePool", gke.GetNodePoolRequest(name=pool_path())).code == Code.NOT_FOUND


def test_the_hosts_of_a_stopping_pool_are_cordoned_then_gone() -> None:
    world = World()
    world.create()
    world.after(10)
    world.delete()
    world.after(1)
    assert [node["spec"]["unschedulable"] for node in world.nodes.nodes.values()] == [True, True]
    world.after(1.1)
    assert world.nodes.nodes == {}


def test_a_second_delete_is_refused_while_the_first_runs() -> None:
    world = World()
    world.create()
    world.after(10)
    world.delete()
    assert world.delete_refused().code == Code.FAILED_PRECONDITION
    world.after(3)
    assert world.delete_refused().code == Code.NOT_FOUND


def test_a_second_create_is_refused_with_400_first_and_with_409_later() -> None:
    world = World()
    world.create()
    assert world.create_refused().code == Code.FAILED_PRECONDITION
    world.after(10)
    assert world.create_refused().code == Code.ALREADY_EXISTS


def test_a_stockout_ends_late_and_its_pool_must_be_deleted_before_the_name_is_free() -> None:
    world = a_world_with(Kind.STOCKOUT)
    name = world.create().name
    world.after(5.9)
    assert world.operation(name).status == Run.RUNNING
    world.after(0.2)
    ended = world.operation(name)
    assert (ended.status, ended.error.code) == (Run.DONE, Code.RESOURCE_EXHAUSTED)
    assert "[GCE_STOCKOUT]: Instance 'gke-demo-pool-" in ended.error.message
    assert "does not have enough resources available to fulfill the request" in ended.error.message
    assert ended.nodepool_conditions[0].code == gke.StatusCondition.Code.GCE_STOCKOUT
    assert world.pool().status == Status.ERROR
    assert world.nodes.nodes == {}
    assert world.create_refused().code == Code.ALREADY_EXISTS
    world.delete()
    world.after(3)
    world.create()
    world.after(10)
    assert world.pool().status == Status.RUNNING


def test_quota_ends_quickly_and_its_bracket_stands_in_the_detail() -> None:
    world = a_world_with(Kind.QUOTA)
    name = world.create().name
    world.after(1.1)
    ended = world.operation(name)
    assert (ended.status, ended.error.code) == (Run.DONE, Code.RESOURCE_EXHAUSTED)
    assert "exceeded.  Limit: 0.0 in region us-central2." in ended.error.message
    assert "[GCE_QUOTA_EXCEEDED]" in ended.detail
    assert "[GCE_QUOTA_EXCEEDED]" in world.pool().status_message


def test_hosts_that_never_join_leave_a_pool_that_runs_with_error() -> None:
    world = a_world_with(Kind.NEVER_JOINS)
    name = world.create().name
    world.after(60)
    assert world.operation(name).status == Run.RUNNING
    world.after(10)
    assert "only 0 nodes out of 2 have registered" in world.operation(name).error.message
    assert world.pool().status == Status.RUNNING_WITH_ERROR


def test_a_slow_create_takes_that_much_longer() -> None:
    world = a_world_with(Kind.SLOW, seconds=100.0)
    name = world.create().name
    world.after(100)
    assert world.operation(name).status == Run.RUNNING
    world.after(10)
    assert world.operation(name).status == Run.DONE


def test_a_creation_may_run_on_after_its_nodes_have_joined() -> None:
    world = a_world_with(Kind.SLOW_END, seconds=30.0)
    name = world.create().name
    world.after(8)
    assert list(world.conditions().values()) == ["True", "True"]
    assert (world.operation(name).status, world.pool().status) == (Run.RUNNING, Status.PROVISIONING)
    world.after(28)
    assert (world.operation(name).status, world.pool().status) == (Run.DONE, Status.RUNNING)


@pytest.mark.parametrize(
    ("usable", "status", "message"), [(True, Status.RUNNING, False), (False, Status.ERROR, True)], ids=["usable", "not"]
)
def test_a_deletion_that_fails_leaves_the_pool_and_its_hosts_and_can_be_repeated(
    usable: bool, status: int, message: bool
) -> None:
    world = a_world_with(Kind.DELETE_FAILS, method="DeleteNodePool", usable=usable)
    world.create()
    world.after(10)
    name = world.delete().name
    assert world.pool().status == Status.STOPPING
    world.after(3)
    ended = world.operation(name)
    assert (ended.status, ended.error.code) == (Run.DONE, Code.INTERNAL)
    assert (world.pool().status, bool(world.pool().status_message)) == (status, message)
    assert [node["spec"].get("unschedulable", False) for node in world.nodes.nodes.values()] == [False, False]
    world.delete()
    world.after(3)
    assert world.nodes.nodes == {}


def test_the_sixth_operation_waits_for_one_of_the_five() -> None:
    world = World()
    for number in range(5):
        world.create(a_pool(f"pool-{number}"))
    assert world.create_refused(a_pool("pool-5")).code == Code.RESOURCE_EXHAUSTED
    world.after(10)
    world.create(a_pool("pool-5"))


def test_single_hosts_are_made_in_each_of_the_pools_zones() -> None:
    zones = ("us-central2-a", "us-central2-b")
    world = World(a_state(a_cluster(zones=zones)))
    world.create(a_single_host(locations=list(zones)))
    world.after(10)
    where = [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in world.nodes.nodes.values()]
    assert sorted(where) == list(zones)


def test_a_create_waits_for_an_api_server_that_is_away() -> None:
    world = World()
    world.nodes.down = True
    name = world.create().name
    world.after(20)
    assert world.operation(name).status == Run.RUNNING
    world.nodes.down = False
    world.after(1)
    assert world.operation(name).status == Run.DONE


def test_a_delete_ends_also_when_the_api_server_stays_away() -> None:
    world = World()
    world.create()
    world.after(10)
    world.nodes.down = True
    name = world.delete().name
    world.after(61)
    assert world.operation(name).status == Run.RUNNING
    world.after(3)
    assert world.operation(name).status == Run.DONE


@pytest.mark.parametrize("parent", ["projects/demo-project/locations/us-central2", "projects/demo-project/locations/-"])
def test_operations_are_listed_ended_ones_too(parent: str) -> None:
    world = World()
    first = world.create().name
    world.after(10)
    second = world.delete().name
    listed = world.ask("ListOperations", gke.ListOperationsRequest(parent=parent)).operations
    assert [(each.name, each.status) for each in listed] == [(first, Run.DONE), (second, Run.PENDING)]


def test_operations_of_other_locations_are_not_listed_and_not_found() -> None:
    world = World()
    name = world.create().name
    elsewhere = "projects/demo-project/locations/us-east5"
    assert not world.ask("ListOperations", gke.ListOperationsRequest(parent=elsewhere)).operations
    missing = gke.GetOperationRequest(name=f"{elsewhere}/operations/{name}")
    assert world.refused("GetOperation", missing).code == Code.NOT_FOUND


def test_a_cluster_shows_its_own_id_channel_and_pools() -> None:
    world = World()
    world.create()
    cluster = world.ask("GetCluster", gke.GetClusterRequest(name=DEMO))
    assert (cluster.id, cluster.location, list(cluster.locations)) == ("c0ffee", "us-central2", ["us-central2-b"])
    assert cluster.release_channel.channel == gke.ReleaseChannel.Channel.REGULAR
    assert [pool.name for pool in cluster.node_pools] == ["pool"]
    listed = world.ask("ListNodePools", gke.ListNodePoolsRequest(parent=DEMO)).node_pools
    assert [pool.status for pool in listed] == [Status.PROVISIONING]


def test_deprecated_fields_are_not_covered_and_say_so() -> None:
    request = gke.GetNodePoolRequest(project_id="demo-project", zone="us-central2", cluster_id="demo")
    refused = World().refused("GetNodePool", request)
    assert refused.code == Code.UNIMPLEMENTED
    assert "deprecated" in refused.message


def test_a_malformed_path_is_an_invalid_argument() -> None:
    assert World().refused("GetCluster", gke.GetClusterRequest(name="demo")).code == Code.INVALID_ARGUMENT
