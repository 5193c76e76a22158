"""A case for each row of the table of refusals, and the messages of those that are known from GKE."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from google.cloud import container_v1 as gke

from tpu_standins.cloud.rules import OURS
from tpu_standins.gke.codes import Code
from tpu_standins.gke.paths import ClusterPath, policy_path
from tpu_standins.gke.refusals import RULES, refusal
from tpu_standins.gke.rules import Ask, Refusal
from tpu_standins.gke.state import Operation, State
from tpu_standins.testing.gke import (
    ANYWHERE,
    DEMO,
    Policy,
    World,
    a_cluster,
    a_pool,
    a_single_host,
    a_state,
    of_flex_start,
)

_Reserve = gke.ReservationAffinity.Type
_Type = gke.Operation.Type
_MINUTE = timedelta(minutes=1)
_REPAIRED = gke.NodeManagement(auto_upgrade=True, auto_repair=True)


_LABELS = gke.NodeLabels(labels={"team": "a"})
_BILLING = gke.ResourceLabels(labels={"team": "a"})


@dataclass(frozen=True)
class Case:
    name: str
    rule: str
    pool: gke.NodePool
    state: State | None = None
    method: str = "CreateNodePool"
    cluster: str = DEMO
    operation: Operation | None = None
    update: gke.UpdateNodePoolRequest | None = None


def _configured(**config: Any) -> gke.NodePool:
    return a_pool(config=config)


def _up_to(hosts: int) -> gke.NodePoolAutoscaling:
    return gke.NodePoolAutoscaling(enabled=True, max_node_count=hosts, location_policy=ANYWHERE)


def _labelled(**labels: str) -> gke.NodePool:
    return _configured(labels={key.replace("__", "/").replace("_", "."): value for key, value in labels.items()})


def _placed(**policy: Any) -> gke.NodePool:
    return a_pool(placement_policy=Policy(**policy))


V7X = "tpu7x-standard-4t"


def _by_policy(name: str, machine: str = V7X, **policy: Any) -> gke.NodePool:
    return a_pool(placement_policy=Policy(policy_name=name, **policy), config={"machine_type": machine})


def _policy_elsewhere(name: str) -> State:
    return a_state().with_policy(policy_path(ClusterPath("demo-project", "us-east5", "demo"), name), "2x2x2")


def _compact(topology: str, **changes: Any) -> gke.NodePool:
    return a_pool(placement_policy=Policy(type_=Policy.Type.COMPACT, tpu_topology=topology), **changes)


def _tainted(*taints: gke.NodeTaint) -> gke.NodePool:
    return _configured(taints=taints)


def _reserved(kind: int, key: str = "", *values: str) -> gke.ReservationAffinity:
    return gke.ReservationAffinity(consume_reservation_type=kind, key=key, values=values)


def _from(*reservation: str) -> gke.NodePool:
    return _configured(reservation_affinity=_reserved(_Reserve.SPECIFIC_RESERVATION, RESERVATION, *reservation))


def _cache(image: str) -> gke.SecondaryBootDisk:
    return gke.SecondaryBootDisk(mode=gke.SecondaryBootDisk.Mode.CONTAINER_IMAGE_CACHE, disk_image=image)


def _operation(kind: int, target: str = DEMO, ended: float | None = None) -> Operation:
    name = f"operation-1-{target[-4:]}"
    return Operation(name=name, kind=kind, cluster=DEMO, target=target, started=0, due=1, ended=ended)


def _during(kind: int, *targets: str, limit: int = 5) -> State:
    state = a_state(a_cluster(concurrent_operations=limit))
    for target in targets:
        state = state.with_operation(_operation(kind, target))
    return state


def _with_pool() -> State:
    world = World()
    world.create()
    world.after(30)
    return world.plane.look()[0]


TAINT = gke.NodeTaint(key="team", value="a", effect=gke.NodeTaint.Effect.NO_SCHEDULE)
IMAGE = "projects/p/global/images/i"
POLICY = policy_path(ClusterPath("demo-project", "us-central2", "demo"), "tpu-provisioner-2x2x2")
KEY = "projects/p/locations/l/keyRings/r/cryptoKeys/k"
RESERVATION = "compute.googleapis.com/reservation-name"
SECOND = {"network": "second", "subnetwork": "second-b"}
ELSEWHERE = "projects/demo-project/locations/us-central2/clusters/other"

CASES = (
    Case("another cluster", "cluster-unknown", a_pool(), cluster=ELSEWHERE),
    Case("a cluster of another location", "cluster-unknown", a_pool(), cluster=DEMO.replace("central2", "east5")),
    Case("confidential nodes", "field-not-covered", _configured(confidential_nodes={"enabled": True})),
    Case("a sandbox", "field-not-covered", _configured(sandbox_config={"type_": gke.SandboxConfig.Type.GVISOR})),
    Case("a pod range", "field-not-covered", a_pool(network_config={"pod_range": "pods"})),
    Case(
        "as many hosts as there are", "field-not-covered", a_pool(best_effort_provisioning={"min_provision_nodes": 1})
    ),
    Case("a name of 41 characters", "pool-name", a_pool("p" * 41)),
    Case("a name with capitals", "pool-name", a_pool("Pool")),
    Case("a name that starts with a digit", "pool-name", a_pool("1-pool")),
    Case("a name that ends with a dash", "pool-name", a_pool("pool-")),
    Case("no name", "pool-name", a_pool("")),
    Case("a zone of another region", "zone-of-another-region", a_pool(locations=["us-east5-b"])),
    Case("a region for a zone", "zone-of-another-region", a_pool(locations=["us-central2"])),
    Case("a zone that does not exist", "zone-unknown", a_pool(locations=["us-central2-z"])),
    Case("a zone twice", "zone-twice", a_pool(locations=["us-central2-b", "us-central2-b"])),
    Case("no TPU machine", "machine-type-not-covered", _configured(machine_type="n2-standard-4")),
    Case("v3 without a known topology", "machine-type-not-covered", _configured(machine_type="ct3p-hightpu-4t")),
    Case("no machine type", "machine-type-not-covered", _configured(machine_type="")),
    Case("a TPU machine of no such size", "machine-type-unknown", _configured(machine_type="ct5lp-hightpu-3t")),
    Case("a workload policy that is not there", "policy-unknown", _by_policy("mine")),
    Case("a workload policy of no topology", "policy-unknown", _by_policy("tpu-provisioner-large")),
    Case("a workload policy that wires nothing tpu7x has", "policy-unknown", _by_policy("tpu-provisioner-4x2x2")),
    Case("a workload policy of another region", "policy-unknown", _by_policy("mine"), _policy_elsewhere("mine")),
    Case(
        "a workload policy that was removed",
        "policy-unknown",
        _by_policy("tpu-provisioner-2x2x2"),
        a_state().with_policy(POLICY, None),
    ),
    Case(
        "a workload policy where there are none",
        "policy-unknown",
        _by_policy("tpu-provisioner-2x2x2"),
        a_state(a_cluster(policies=None)),
    ),
    Case("a workload policy for v6e", "policy-for-v6e-not-covered", _by_policy("mine", "ct6e-standard-4t")),
    Case("a workload policy for v4", "policy-not-taken", _placed(policy_name="tpu-provisioner-2x2x2")),
    Case("a workload policy for one host", "policy-not-taken", _by_policy("tpu-provisioner-2x2x1")),
    Case(
        "a workload policy for one tpu7 host",
        "policy-not-taken",
        _by_policy("tpu-provisioner-2x2x1", "tpu7-standard-4t"),
    ),
    Case(
        "a workload policy for hosts of one chip",
        "policy-not-taken",
        _by_policy("tpu-provisioner-2x2x2", "tpu7x-standard-1t"),
    ),
    Case(
        "a workload policy and COMPACT",
        "compact-for-v7",
        _by_policy("tpu-provisioner-2x2x2", type_=Policy.Type.COMPACT, tpu_topology="2x2x2"),
    ),
    Case(
        "a workload policy and another topology",
        "policy-of-another-topology",
        _by_policy("tpu-provisioner-2x2x2", tpu_topology="2x2x4"),
    ),
    Case("v7 of two hosts, COMPACT", "compact-for-v7", _compact("2x2x2", config={"machine_type": V7X})),
    Case(
        "tpu7 of two hosts, COMPACT", "compact-for-v7", _compact("2x2x2", config={"machine_type": "tpu7-standard-4t"})
    ),
    Case(
        "v7 of two hosts, a topology alone",
        "policy-missing",
        a_pool(placement_policy=Policy(tpu_topology="2x2x2"), config={"machine_type": V7X}),
    ),
    Case(
        "v7 of two hosts, nothing said", "policy-missing", a_pool(placement_policy=None, config={"machine_type": V7X})
    ),
    Case(
        "v7 wired as none is",
        "topology-illegal-for-the-machine",
        _by_policy("mine"),
        a_state().with_policy(POLICY.replace("tpu-provisioner-2x2x2", "mine"), "4x2x2"),
    ),
    Case(
        "tpu7 of eight cubes",
        "topology-illegal-for-the-machine",
        _by_policy("tpu-provisioner-8x8x8", "tpu7-standard-4t"),
    ),
    Case("v7 with too few hosts", "size-is-not-the-slice", _by_policy("tpu-provisioner-2x2x4")),
    Case("a topology in words", "topology-malformed", _compact("2 by 2")),
    Case("a topology of four dimensions", "topology-malformed", _compact("2x2x2x2")),
    Case("v4 2x2x1 with a topology", "topology-on-a-single-host", _compact("2x2x1", initial_node_count=1)),
    Case(
        "v5e 2x4 of eight-chip machines with a topology",
        "topology-on-a-single-host",
        _compact("2x4", initial_node_count=1, config={"machine_type": "ct5lp-hightpu-8t"}),
    ),
    Case("an unsorted topology", "topology-illegal-for-the-machine", _compact("4x2x2")),
    Case("a topology between the cubes", "topology-illegal-for-the-machine", _compact("2x2x6")),
    Case("a flat topology for v4", "topology-illegal-for-the-machine", _compact("4x4")),
    Case(
        "several hosts of eight chips",
        "topology-illegal-for-the-machine",
        _compact("4x4", config={"machine_type": "ct6e-standard-8t"}),
    ),
    Case("COMPACT and no topology", "compact-without-topology", _placed(type_=Policy.Type.COMPACT)),
    Case("a topology and no COMPACT", "topology-without-compact", _placed(tpu_topology="2x2x2")),
    Case(
        "a slice in two zones",
        "multi-host-in-several-zones",
        a_pool(locations=["us-central2-a", "us-central2-b"]),
        a_state(a_cluster(zones=("us-central2-a", "us-central2-b"))),
    ),
    Case(
        "a slice in all zones of the cluster, none given",
        "multi-host-in-several-zones",
        a_pool(locations=[]),
        a_state(a_cluster(zones=("us-central2-a", "us-central2-b"))),
    ),
    Case("no nodes", "empty-not-covered", a_pool(initial_node_count=0)),
    Case("half a slice", "size-is-not-the-slice", a_pool(initial_node_count=1)),
    Case("a slice and a half", "size-is-not-the-slice", a_pool(initial_node_count=3)),
    Case(
        "autoscaling without a maximum per zone",
        "largest-size-is-not-the-slice",
        a_pool(autoscaling=gke.NodePoolAutoscaling(enabled=True, total_max_node_count=2)),
    ),
    Case("1,024 hosts", "too-many-nodes-in-a-zone", _compact("16x16x16", initial_node_count=1_024)),
    Case("a label with a space", "label-syntax", _labelled(team="a b")),
    Case("a label value of 64 characters", "label-syntax", _labelled(team="a" * 64)),
    Case("a label key with two slashes", "label-syntax", _configured(labels={"a/b/c": "d"})),
    Case("a label of JobSet's", "label-of-kubernetes", _labelled(jobset_sigs_k8s_io__replica="0")),
    Case("a label of the scheduler's", "label-of-kubernetes", _labelled(kubernetes_io__hostname="mine")),
    Case("a role", "label-of-kubernetes", _configured(labels={"node-role.kubernetes.io/tpu": ""})),
    Case(
        "the accelerator's label",
        "label-set-by-gke",
        _configured(labels={"cloud.google.com/gke-tpu-accelerator": "tpu-v4-podslice"}),
    ),
    Case("spot's label", "label-set-by-gke", _configured(labels={"cloud.google.com/gke-spot": "true"})),
    Case("a name under gke-", "label-set-by-gke", _configured(labels={"cloud.google.com/gke-mine": "a"})),
    Case("a compute class", "label-set-by-gke", _configured(labels={"cloud.google.com/compute-class": "a"})),
    Case("a reservation's label", "label-set-by-gke", _configured(labels={"cloud.google.com/reservation-name": "a"})),
    Case("many long labels", "labels-too-long", _labelled(**{f"label{n}": "v" * 60 for n in range(16)})),
    Case("a resource label with a dot", "resource-label-syntax", _configured(resource_labels={"job": "a.b"})),
    Case("a resource label with capitals", "resource-label-syntax", _configured(resource_labels={"Job": "a"})),
    Case("a resource label that starts with a digit", "resource-label-syntax", _configured(resource_labels={"1a": ""})),
    Case("a resource label of 64", "resource-label-syntax", _configured(resource_labels={"a": "a" * 64})),
    Case(
        "65 resource labels",
        "resource-label-syntax",
        _configured(resource_labels={f"label-{n}": "" for n in range(65)}),
    ),
    Case("a taint without effect", "taint-syntax", _tainted(gke.NodeTaint(key="team", value="a"))),
    Case("a taint without key", "taint-syntax", _tainted(gke.NodeTaint(effect=TAINT.effect))),
    Case("the same taint twice", "taint-twice", _tainted(TAINT, TAINT)),
    Case("a taint's value with a space", "taint-syntax", _tainted(gke.NodeTaint(key="a", value="b c", effect=1))),
    Case("a tag with capitals", "network-tag", _configured(tags=["Nodes"])),
    Case("a tag with an underscore", "network-tag", _configured(tags=["tpu", "tpu_nodes"])),
    Case("a tag of 64 characters", "network-tag", _configured(tags=["t" * 64])),
    Case("65 tags", "network-tag", _configured(tags=[f"tag-{n}" for n in range(65)])),
    Case("33 KB of metadata", "metadata-too-large", _configured(metadata={"script": "x" * 33_000})),
    Case(
        "auto-upgrade off in a channel",
        "auto-upgrade-in-a-release-channel",
        a_pool(management=gke.NodeManagement(auto_repair=True)),
    ),
    Case(
        "a persistent disk for v6e",
        "disk-type-of-another-family",
        _compact("4x4", config={"machine_type": "ct6e-standard-4t", "disk_type": "pd-balanced"}, initial_node_count=4),
    ),
    Case(
        "a standard disk for v5p, by boot_disk",
        "disk-type-of-another-family",
        _configured(machine_type="ct5p-hightpu-4t", boot_disk=gke.BootDisk(disk_type="pd-standard")),
    ),
    Case(
        "a persistent disk for v7",
        "disk-type-of-another-family",
        a_single_host(config={"machine_type": V7X, "disk_type": "pd-ssd"}),
    ),
    Case("a disk of 9 GB", "disk-too-small", _configured(disk_size_gb=9)),
    Case("a key by its name alone", "kms-key", _configured(boot_disk_kms_key="my-key")),
    Case("confidential storage without a key", "confidential-storage", _configured(enable_confidential_storage=True)),
    Case(
        "confidential storage on a persistent disk",
        "confidential-storage",
        _configured(enable_confidential_storage=True, boot_disk_kms_key=KEY, disk_type="pd-ssd"),
    ),
    Case(
        "a secondary disk by its name alone",
        "secondary-boot-disk",
        _configured(secondary_boot_disks=[_cache("images")], gcfs_config={"enabled": True}),
    ),
    Case(
        "a secondary disk of a family of images",
        "secondary-boot-disk",
        _configured(secondary_boot_disks=[_cache("projects/p/global/images/family/f")], gcfs_config={"enabled": True}),
    ),
    Case(
        "a secondary disk for nothing",
        "secondary-boot-disk",
        _configured(secondary_boot_disks=[gke.SecondaryBootDisk(disk_image=IMAGE)], gcfs_config={"enabled": True}),
    ),
    Case(
        "a secondary disk without image streaming",
        "secondary-boot-disk",
        _configured(secondary_boot_disks=[_cache(IMAGE)]),
    ),
    Case("a person for a service account", "service-account-format", _configured(service_account="me@example.com")),
    Case("spot and preemptible", "spot-and-preemptible", _configured(spot=True, preemptible=True)),
    Case(
        "spot from a reservation",
        "spot-with-reservation",
        _configured(spot=True, reservation_affinity=_reserved(_Reserve.SPECIFIC_RESERVATION, RESERVATION, "mine")),
    ),
    Case(
        "spot from whatever reservation there is",
        "spot-with-reservation",
        _configured(spot=True, reservation_affinity=_reserved(_Reserve.ANY_RESERVATION)),
    ),
    Case("a specific reservation without a name", "reservation-affinity", _from()),
    Case(
        "a specific reservation under another key",
        "reservation-affinity",
        _configured(reservation_affinity=_reserved(_Reserve.SPECIFIC_RESERVATION, "reservation", "mine")),
    ),
    Case("a reservation's name that is none", "reservation-affinity", _from("My Own")),
    Case("a sub-block of no block", "reservation-affinity", _from("hall/reservationSubBlocks/s")),
    Case("a project and no reservation", "reservation-affinity", _from("projects/p")),
    Case(
        "any reservation, and a name",
        "reservation-affinity",
        _configured(reservation_affinity=_reserved(_Reserve.ANY_RESERVATION, RESERVATION, "mine")),
    ),
    Case(
        "300 pods per node",
        "max-pods",
        a_pool(max_pods_constraint=gke.MaxPodsConstraint(max_pods_per_node=300)),
    ),
    Case("7 pods per node", "max-pods", a_pool(max_pods_constraint=gke.MaxPodsConstraint(max_pods_per_node=7))),
    Case(
        "an additional subnetwork without network",
        "networks",
        a_pool(network_config={"additional_node_network_configs": [{"subnetwork": "second"}]}),
    ),
    Case(
        "an additional network without subnetwork",
        "networks",
        a_pool(network_config={"additional_node_network_configs": [{"network": "second"}]}),
    ),
    Case("DRANET on v4", "networks", a_pool(network_config={"accelerator_network_profile": "auto"})),
    Case(
        "DRANET beside an additional network",
        "networks",
        a_single_host(
            config={"machine_type": V7X},
            network_config={"accelerator_network_profile": "auto", "additional_node_network_configs": [SECOND]},
        ),
    ),
    Case(
        "queued, from any reservation",
        "queued-with-reservation",
        a_pool(queued_provisioning=gke.NodePool.QueuedProvisioning(enabled=True)),
    ),
    Case(
        "queued",
        "queued-not-covered",
        of_flex_start(queued_provisioning=gke.NodePool.QueuedProvisioning(enabled=True)),
    ),
    Case(
        "flex-start of v4",
        "flex-start-machine",
        of_flex_start(
            config={"machine_type": "ct4p-hightpu-4t"},
            placement_policy=Policy(type_=Policy.Type.COMPACT, tpu_topology="2x2x4"),
        ),
    ),
    Case("flex-start with nodes", "flex-start-size", of_flex_start(initial_node_count=4)),
    Case(
        "flex-start that always has a node",
        "flex-start-size",
        of_flex_start(autoscaling={"enabled": True, "min_node_count": 1, "max_node_count": 4}),
    ),
    Case(
        "flex-start with a location policy",
        "flex-start-size",
        of_flex_start(autoscaling={"enabled": True, "max_node_count": 4, "location_policy": 1}),
    ),
    Case("flex-start of half a slice", "largest-size-is-not-the-slice", of_flex_start(autoscaling=_up_to(2))),
    Case("flex-start that is repaired", "flex-start-repair", of_flex_start(management=_REPAIRED)),
    Case("flex-start with surge upgrades", "flex-start-upgrades", of_flex_start(upgrade_settings={"max_surge": 1})),
    Case(
        "short-lived without flex-start",
        "flex-start-upgrades",
        a_pool(upgrade_settings={"strategy": gke.NodePoolUpdateStrategy.SHORT_LIVED}),
    ),
    Case("flex-start of spot", "flex-start-paid-otherwise", of_flex_start(config={"spot": True})),
    Case(
        "flex-start of any reservation",
        "flex-start-paid-otherwise",
        of_flex_start(config={"reservation_affinity": _reserved(_Reserve.ANY_RESERVATION)}),
    ),
    Case("flex-start without end", "flex-start-run-duration", of_flex_start(config={"max_run_duration": None})),
    Case("flex-start for a minute", "flex-start-run-duration", of_flex_start(config={"max_run_duration": _MINUTE})),
    Case(
        "flex-start for 8 days",
        "flex-start-run-duration",
        of_flex_start(config={"max_run_duration": 8 * 1440 * _MINUTE}),
    ),
    Case("an end without flex-start", "flex-start-run-duration", _configured(max_run_duration=60 * _MINUTE)),
    Case("a master upgrade", "cluster-busy", a_pool(), _during(_Type.UPGRADE_MASTER, DEMO)),
    Case(
        "a create under way",
        "pool-busy",
        a_pool(),
        _during(_Type.CREATE_NODE_POOL, f"{DEMO}/nodePools/pool"),
    ),
    Case("a pool of that name", "pool-exists", a_pool(), _with_pool()),
    Case(
        "five operations",
        "too-many-operations",
        a_pool(),
        _during(_Type.CREATE_NODE_POOL, *(f"{DEMO}/nodePools/p-{n}" for n in range(5))),
    ),
    Case(
        "two operations where two are allowed",
        "too-many-operations",
        a_pool(),
        _during(_Type.DELETE_NODE_POOL, f"{DEMO}/nodePools/p-1", f"{DEMO}/nodePools/p-2", limit=2),
    ),
    Case("delete in another cluster", "cluster-unknown", a_pool(), method="DeleteNodePool", cluster=ELSEWHERE),
    Case("delete what is not there", "pool-unknown", a_pool(), method="DeleteNodePool"),
    Case("update what is not there", "pool-unknown", a_pool(), method="UpdateNodePool"),
    *(
        Case(
            name,
            rule,
            a_pool(),
            _with_pool(),
            method="UpdateNodePool",
            update=gke.UpdateNodePoolRequest(name=f"{DEMO}/nodePools/pool", **changes),
        )
        for name, rule, changes in (
            ("update nothing", "update-of-nothing", {}),
            ("update the version", "update-not-covered", {"node_version": "-"}),
            ("update two things", "update-of-two", {"labels": _LABELS, "resource_labels": _BILLING}),
            ("update what was updated since", "update-outdated", {"labels": _LABELS, "etag": "x"}),
        )
    ),
    Case("get what is not there", "pool-unknown", a_pool(), method="GetNodePool"),
    Case("list another cluster", "cluster-unknown", a_pool(), method="ListNodePools", cluster=ELSEWHERE),
    Case("get another cluster", "cluster-unknown", a_pool(), method="GetCluster", cluster=ELSEWHERE),
    *(
        Case(f"cancel {kind!r}", "not-cancellable", a_pool(), method="CancelOperation", operation=_operation(kind))
        for kind in (_Type.CREATE_NODE_POOL, _Type.DELETE_NODE_POOL, _Type.AUTO_REPAIR_NODES, _Type.UPGRADE_MASTER)
    ),
    Case(
        "cancel what has ended",
        "operation-ended",
        a_pool(),
        method="CancelOperation",
        operation=_operation(_Type.UPGRADE_NODES, ended=2.0),
    ),
)


def _answer(case: Case) -> Refusal | None:
    state = case.state or a_state()
    ask = Ask(
        state=state,
        cluster_path=case.cluster,
        name=case.pool.name,
        spec=case.pool,
        operation=case.operation,
        update=case.update,
    )
    return refusal(case.method, ask)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}: {case.name}")
def test_gke_refuses(case: Case) -> None:
    answer = _answer(case)
    assert answer is not None
    (row,) = {row.name: row for row in RULES[case.method] if row.name == case.rule}.values()
    assert (answer.rule, answer.code) == (case.rule, row.code)
    assert answer.message


def test_each_row_has_a_case_a_fact_and_its_words_source() -> None:
    rows = [row for rules in RULES.values() for row in rules]
    assert {row.name for row in rows} == {case.rule for case in CASES}
    assert all(row.fact and row.words for row in rows)
    limits = [row for row in rows if row.fact == "a limit of the local GKE"]
    assert limits
    assert all(row.words == OURS and row.code is Code.UNIMPLEMENTED for row in limits)


ACCEPTED: dict[str, Callable[[], gke.NodePool]] = {
    "a v4 slice": a_pool,
    "a name of 40 characters": lambda: a_pool("p" * 40),
    "a single v4 host": a_single_host,
    "three single v5e hosts": lambda: a_single_host(config={"machine_type": "ct5lp-hightpu-4t"}),
    "a v5e slice of 2x4 on two hosts": lambda: _compact("2x4", config={"machine_type": "ct5lp-hightpu-4t"}),
    "a tpu7x slice": lambda: _by_policy("tpu-provisioner-2x2x2"),
    "a tpu7 slice": lambda: _by_policy("tpu-provisioner-2x2x2", "tpu7-standard-4t"),
    "a single tpu7x host": lambda: a_single_host(config={"machine_type": V7X}),
    "a single tpu7 host of one chip": lambda: a_single_host(config={"machine_type": "tpu7-standard-1t"}),
    "DRANET on tpu7x": lambda: a_single_host(
        config={"machine_type": V7X, "labels": {"cloud.google.com/gke-networking-dra-driver": "true"}},
        network_config={"accelerator_network_profile": "auto"},
    ),
    "flex-start": of_flex_start,
    "flex-start of one host": lambda: of_flex_start(
        config={"machine_type": "ct5p-hightpu-4t"}, placement_policy=None, autoscaling=_up_to(1)
    ),
    "a v6e slice": lambda: _compact("4x4", initial_node_count=4, config={"machine_type": "ct6e-standard-4t"}),
    "the zone left to the cluster": lambda: a_pool(locations=[]),
    "labels of ours and of Kueue": lambda: _configured(
        labels={"google.com/tpu-slice-id": "a", "kueue.x-k8s.io/queue-name": "tpu", "node.kubernetes.io/x": ""}
    ),
    "the two labels of GKE's that TPU Provisioner sets": lambda: _configured(
        labels={"cloud.google.com/gke-tpu-ici-resiliency": "false", "cloud.google.com/gke-location-hint": "cell"}
    ),
    "taints of every effect": lambda: _tainted(*(gke.NodeTaint(key="team", value="a", effect=e) for e in (1, 2, 3))),
    "spot and its taint": lambda: _configured(
        spot=True, taints=[gke.NodeTaint(key="cloud.google.com/gke-spot", value="true", effect=TAINT.effect)]
    ),
    "spot without a reservation": lambda: _configured(
        spot=True, reservation_affinity=_reserved(_Reserve.NO_RESERVATION)
    ),
    "a reservation by its name": lambda: _from("r"),
    "a reservation of another project": lambda: _from("projects/p/reservations/r"),
    "a block of a reservation": lambda: _from("r/reservationBlocks/b"),
    "a block of a shared reservation": lambda: _from("projects/p/reservations/r/reservationBlocks/b"),
    "a sub-block of a shared reservation": lambda: _from(
        "projects/p/reservations/r/reservationBlocks/b/reservationSubBlocks/s"
    ),
    "disks with everything": lambda: _configured(
        disk_type="hyperdisk-balanced",
        disk_size_gb=200,
        boot_disk_kms_key=KEY,
        enable_confidential_storage=True,
        secondary_boot_disks=[_cache(IMAGE)],
        gcfs_config={"enabled": True},
    ),
    "64 resource labels": lambda: _configured(resource_labels={f"label-{n}": "a_1-b" for n in range(64)}),
    "tags, shielded VMs, the metadata server and another network": lambda: a_pool(
        config={
            "tags": ["tpu", "t" * 63],
            "shielded_instance_config": {"enable_secure_boot": True, "enable_integrity_monitoring": True},
            "workload_metadata_config": {"mode": gke.WorkloadMetadataConfig.Mode.GKE_METADATA},
        },
        network_config={"additional_node_network_configs": [SECOND]},
    ),
    "auto-upgrade as the channel wants it": lambda: a_pool(
        management=gke.NodeManagement(auto_upgrade=True, auto_repair=True)
    ),
    "autoscaling to the slice's size": lambda: a_pool(
        autoscaling=gke.NodePoolAutoscaling(enabled=True, max_node_count=2)
    ),
    "a service account": lambda: _configured(service_account="nodes@demo-project.iam.gserviceaccount.com"),
    "few pods per node": lambda: a_pool(max_pods_constraint=gke.MaxPodsConstraint(max_pods_per_node=15)),
}


@pytest.mark.parametrize("pool", ACCEPTED.values(), ids=ACCEPTED)
def test_gke_accepts(pool: Callable[[], gke.NodePool]) -> None:
    spec = pool()
    assert refusal("CreateNodePool", Ask(state=a_state(), cluster_path=DEMO, name=spec.name, spec=spec)) is None


def test_auto_upgrade_may_be_off_outside_release_channels() -> None:
    pool = a_pool(management=gke.NodeManagement(auto_repair=True))
    state = a_state(a_cluster(release_channel=None))
    assert refusal("CreateNodePool", Ask(state=state, cluster_path=DEMO, name="pool", spec=pool)) is None


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (
            "pool-name",
            (
                'Invalid value for field "node_pool.name": "Pool". Must be a match of regex '
                "'(?:[a-z](?:[-a-z0-9]{0,38}[a-z0-9])?)' (only lowercase alphanumerics and '-' allowed, must start "
                "with a letter and end with an alphanumeric, and must be no longer than 40 characters)."
            ),
        ),
        ("machine-type-unknown", 'Invalid machine type "ct5lp-hightpu-3t" in zone "us-central2-b": GCE_NOT_FOUND'),
        (
            "largest-size-is-not-the-slice",
            "Maximum node count 0 is not a valid size of TPU pod slice with topology 2x2x2",
        ),
        (
            "label-set-by-gke",
            (
                'Node labels with key "cloud.google.com/compute-class" are managed by GKE or Kubernetes and must not '
                "be manually specified."
            ),
        ),
        (
            "compact-for-v7",
            (
                "Creation of a managed instance group with tpu7x-standard-4t machine type with placement policy is "
                "not supported. Use workload policy instead."
            ),
        ),
        ("flex-start-run-duration", "Required field 'resource.requestedRunDuration' not specified"),
        ("network-tag", f"Invalid tag {'t' * 64}: must be no more than 63 characters."),
        ("label-of-kubernetes", "Applying kubernetes label is not allowed: node-role.kubernetes.io/tpu."),
        (
            "auto-upgrade-in-a-release-channel",
            "Auto_upgrade cannot be false when release_channel REGULAR is set.",
        ),
        ("cluster-busy", "Cluster is running incompatible operation operation-1-demo."),
        ("pool-exists", f"Already exists: {DEMO}/nodePools/pool."),
        (
            "too-many-operations",
            'Too many operations: cluster "demo" hits the concurrent operations quota 5, please try again later.',
        ),
        ("cluster-unknown", f"Not found: {ELSEWHERE}."),
        ("pool-unknown", 'Not found: node pool "pool" not found.'),
    ],
)
def test_it_says_so_in_gkes_words(rule: str, text: str) -> None:
    answers = [_answer(case) for case in CASES if case.rule == rule]
    assert text in [answer.message for answer in answers if answer]


def test_both_missing_managements_are_named_at_once() -> None:
    answer = _answer(Case("", "", a_pool(management=gke.NodeManagement())))
    assert answer is not None
    assert answer.message == "Auto_upgrade and auto_repair cannot be false when release_channel REGULAR is set."
