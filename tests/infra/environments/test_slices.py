"""Static slices: what Terraform makes of the variables, compared with what the provisioner would make."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from google.cloud.container_v1 import NodePool

from infra.environments.training.catalogue import catalogue
from tests.builders import a_job, a_spec
from tests.infra.environments.planned import Plan, plan_of
from tpu_slices.adapters.gke.requests import as_rest
from tpu_slices.domain.catalogue.accelerators import CATALOGUE, shape_of
from tpu_slices.domain.catalogue.topology import Topology
from tpu_slices.domain.model.clusters import PoolSettings
from tpu_slices.domain.model.slices import Capacity, CapacityKind, SliceSpec, Taint, claim_id
from tpu_slices.domain.planning.host_labels import host_labels
from tpu_slices.ports.backend import PoolOrder
from tpu_standins.gke.paths import policy_path
from tpu_standins.gke.refusals import refusal
from tpu_standins.gke.rules import Ask
from tpu_standins.testing.gke import DEMO, a_cluster, a_state

pytestmark = [
    pytest.mark.emulators,
    pytest.mark.enable_socket,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed"),
]

RESERVED = "projects/hall/reservations/hall-7/reservationBlocks/b3"
CAPACITIES: Mapping[str, Capacity] = {
    "on_demand": Capacity(),
    "spot": Capacity(CapacityKind.SPOT),
    "reservation": Capacity(CapacityKind.RESERVATION, RESERVED),
    "flex_start": Capacity(CapacityKind.FLEX_START, max_run_duration=timedelta(days=7)),
}
TYPES = ("v4-32", "v4-8", "v5litepod-8", "v5p-128", "v6e-64", "tpu7x-8", "tpu7x-32")
KNOWN = catalogue()["types"]
EVERYWHERE = {label: ["us-central2-b"] for label in CATALOGUE}
"""The local GKE has one zone."""
SETTINGS = PoolSettings(workload_policy="trainer-{topology}", image_streaming=True)
JOB = a_job()


def cases() -> dict[str, dict[str, Any]]:
    """Return a pool of each type and capacity that exist together."""
    return {
        f"{name}-{kind.replace('_', '')}": {
            "type": name,
            "capacity": kind,
            **({"reservation": RESERVED} if kind == "reservation" else {}),
        }
        for name in TYPES
        for kind in CAPACITIES
        if not (name.startswith("v4") and kind == "flex_start")
    }


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    folder = tmp_path_factory.mktemp("cases")
    return plan_of(folder, tpu_pools=cases(), more_tpu_zones=EVERYWHERE, subnet_ip_range="10.128.0.0/16")


def asked_for(pool: Mapping[str, Any]) -> dict[str, Any]:
    """Return what Google's provider asks GKE for: the REST API's node pool, without what is not known."""
    rest = {
        "name": pool["name"],
        "locations": pool["node_locations"],
        "initialNodeCount": pool["node_count"],
        "autoscaling": {"enabled": True, **found} if (found := _camel(pool["autoscaling"])) else None,
        "placementPolicy": _camel(pool["placement_policy"]),
        "management": _camel(pool["management"]),
        "maxPodsConstraint": {"maxPodsPerNode": pool["max_pods_per_node"]},
        "upgradeSettings": _camel(pool["upgrade_settings"]),
        "maintenancePolicy": _camel(pool["maintenance_policy"]),
        "nodeDrainConfig": _camel(pool["node_drain_config"]),
        "config": _camel(pool["node_config"]),
    }
    return in_json(NodePool.from_json(json.dumps({name: value for name, value in rest.items() if value})))


def in_json(pool: NodePool) -> dict[str, Any]:
    text = NodePool.to_json(pool, use_integers_for_enums=False, always_print_fields_with_no_presence=False)
    found: dict[str, Any] = json.loads(text)
    return found


def _camel(value: Any) -> Any:
    """Return a block as in the REST API: a block is a list of one, but for those that are many there."""
    if isinstance(value, dict):
        many = {"taint": "taints", "secondary_boot_disks": "secondaryBootDisks"}
        return {
            many.get(name, _name(name)): [_camel(each) for each in inner] if name in many else _camel(inner)
            for name, inner in value.items()
            if inner not in (None, [], "")
        }
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return _camel(value[0])
    return value


def _name(snake: str) -> str:
    first, *rest = snake.split("_")
    return first + "".join(word.title() for word in rest)


def provisioned(pool: Mapping[str, Any]) -> PoolOrder:
    """Return the order of such a slice, as if a pod had asked the provisioner for it."""
    spec = spec_of(pool)
    return PoolOrder(
        cluster_path=DEMO, cluster_gke_id=None, slice_id=claim_id(JOB), attempt=1, job=JOB, spec=spec, settings=SETTINGS
    )


def spec_of(pool: Mapping[str, Any]) -> SliceSpec:
    kind = next(kind for kind in CATALOGUE.values() for each in kind.machines if each.name == pool["machine_type"])
    topology = Topology.parse(pool["topology"])
    shape = shape_of(kind.label, topology, pool["chips_per_host"])
    return a_spec(
        accelerator=kind.label,
        topology=topology,
        machine_type=shape.machine.name,
        hosts=shape.hosts,
        chips_per_host=shape.machine.chips,
        placement=shape.placement,
        boot_disk=kind.boot_disks[0],
        zone="us-central2-b",
        capacity=CAPACITIES[pool["capacity"]],
        node_labels=(),
        taints=(Taint("cloud.google.com/gke-spot", "true"),) if pool["capacity"] == "spot" else (),
    )


def of_the_slice(pool: dict[str, Any]) -> dict[str, Any]:
    """Return what decides which hosts a slice gets, and how: not whose it is, nor what Terraform alone says."""
    config = dict(pool["config"])
    for name in ("labels", "resourceLabels", "serviceAccount", "imageType"):
        config.pop(name, None)
    placement = dict(pool.get("placementPolicy", {}))
    if "policyName" in placement:
        placement.pop("tpuTopology", None)  # which GKE adds: see tpu_pools.tf
    upgrades = {
        name: value for name, value in pool["upgradeSettings"].items() if name == "strategy" and value != "SURGE"
    }
    rest = {name: value for name, value in pool.items() if name not in {"name", "config", "placementPolicy"}}
    return {**rest, "config": config, "placementPolicy": placement, "upgradeSettings": upgrades}


@pytest.mark.parametrize("name", cases())
def test_a_static_slice_has_the_hosts_of_a_provisioned_one(planned: Plan, name: str) -> None:
    case = cases()[name]
    asked = (*KNOWN[case["type"]].values(), case["capacity"])
    [flavor] = [
        each
        for each in planned.outputs["flavors"].values()
        if (each["machine_type"], each["topology"], each["capacity"]) == asked
    ]
    pool = asked_for(planned.pools()[f"{name}-0"])
    assert of_the_slice(pool) == of_the_slice(dict(as_rest(provisioned(flavor))))


@pytest.mark.parametrize("name", cases())
def test_gke_accepts_a_static_slice_as_far_as_the_local_gke_knows(planned: Plan, name: str) -> None:
    asked = asked_for(planned.pools()[f"{name}-0"])
    placement = asked.get("placementPolicy", {})
    state = a_state(a_cluster(release_channel="REGULAR"))
    if "policyName" in placement:
        topology = placement.pop("tpuTopology")
        state = state.with_policy(policy_path(a_cluster().path, placement["policyName"]), topology)
    pool = NodePool.from_json(json.dumps(asked))
    assert refusal("CreateNodePool", Ask(state=state, cluster_path=DEMO, name=pool.name, spec=pool)) is None


def test_kueue_knows_the_nodes_of_a_flavor_by_the_labels_that_gke_gives_them(planned: Plan) -> None:
    for flavor in planned.outputs["flavors"].values():
        spec = spec_of(flavor)
        labels = host_labels(spec, JOB, SETTINGS)
        assert flavor["node_labels"].items() <= labels.items()
        assert flavor["accelerator"] == spec.accelerator
        tainted = {taint["key"]: taint["value"] for taint in flavor["node_taints"]}
        assert tainted == {"google.com/tpu": "present", **{taint.key: taint.value for taint in spec.taints}}


def test_the_chips_are_those_of_the_pools_and_nobody_types_them(planned: Plan) -> None:
    chips = {
        name: pool["node_config"][0]["machine_type"].rpartition("-")[2].rstrip("t")
        for name, pool in planned.pools().items()
    }
    hosts = {
        name: pool["node_count"] or pool["autoscaling"][0]["max_node_count"] for name, pool in planned.pools().items()
    }
    assert planned.outputs["chips"] == sum(int(chips[name]) * hosts[name] for name in chips)
    assert planned.outputs["chips"] == sum(flavor["chips"] for flavor in planned.outputs["flavors"].values())
