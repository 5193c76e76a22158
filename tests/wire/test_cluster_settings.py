from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import CLUSTER, MINUTE, settings
from tpu_slices.domain.model.capacity import Across, Advice, NamespaceSettings, Warm
from tpu_slices.domain.model.clusters import (
    Allowed,
    Backoff,
    ClusterSettings,
    ComputeSettings,
    Join,
    Limits,
    PodsOf,
    Policy,
    PoolSettings,
    Upgrades,
)
from tpu_slices.domain.model.notifications import NotificationRule, Occasion
from tpu_slices.domain.model.observations import FailureKind
from tpu_slices.domain.model.slices import CapacityKind, ClusterId, Network
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.cluster_settings import decode_settings, encode_settings

EVERYONE = Allowed(
    capacity=(CapacityKind.ON_DEMAND, CapacityKind.SPOT),
    zones=("us-central2-*",),
    accelerators=("tpu-v6e-slice", "tpu-v5*"),
    reservations=("hall-*",),
    service_accounts=("tpu-*@p.iam.gserviceaccount.com",),
    additional_networks=("vpc-*:*",),
    copied_labels=("team",),
    workload_policies=("tpu7x-*",),
    chips_per_slice=256,
)
PATH = "projects/p/locations/us-central2/clusters/c"


def read(**document: Any) -> ClusterSettings:
    return decode_settings(CLUSTER, {"path": PATH, **document}, "edition-1")


def test_a_path_alone_is_valid() -> None:
    assert read() == ClusterSettings(cluster=CLUSTER, version="edition-1", path=PATH)


COMPUTE: dict[str, Any] = {
    "image": "projects/ubuntu-os-accelerator-images/global/images/family/ubuntu-accel-2404-amd64-tpu-tpu7x",
    "subnetwork": "regions/us-central1/subnetworks/tpu",
    "join": "kubeadm",
    "control_plane": "10.0.0.2:6443",
    "kubernetes": "1.36",
    "scopes": ["https://www.googleapis.com/auth/logging.write"],
}
SELF_MANAGED: dict[str, Any] = {"path": "projects/p/locations/us-central1", "compute": COMPUTE}

EVERYTHING: dict[str, Any] = {
    "schema": 1,
    "note": "ask the research team first",
    "gke_id": "8f3e",
    "zone": "us-central2-b",
    "zones": ["us-central2-b", "us-central2-c"],
    "reservation_zones": {"hall-7": "us-central2-c"},
    "pod_to_node_labels": ["team"],
    "force_on_demand": True,
    "max_run_duration": "12h",
    "hosts_per_slice": 2000,
    "serve": ["Deployment", "Pod", "Deployment"],
    "pools": {
        "service_account": "tpu-nodes@p.iam.gserviceaccount.com",
        "boot_disk_gb": 200,
        "boot_disk_type": "hyperdisk-balanced",
        "boot_disk_kms_key": "projects/p/locations/l/keyRings/r/cryptoKeys/k",
        "confidential_storage": True,
        "secondary_boot_disk": "projects/p/global/images/i",
        "image_streaming": True,
        "max_pods_per_node": 32,
        "auto_upgrade": False,
        "upgrades": "gke",
        "gvnic": False,
        "secure_boot": False,
        "integrity_monitoring": False,
        "network_tags": ["tpu", "batch-1"],
        "additional_networks": ["vpc-2:subnet-2"],
        "workload_policy": "tpu7x-{cores}-{topology}-{chips}-placement-policy",
        "host_maintenance_interval": "PERIODIC",
        "resource_labels": {"cost-centre": "research"},
    },
    "policy": {
        "capacity": ["on-demand", "SPOT"],
        "zones": ["us-central2-*"],
        "accelerators": ["tpu-v6e-slice", "tpu-v5*"],
        "reservations": ["hall-*"],
        "service_accounts": ["tpu-*@p.iam.gserviceaccount.com"],
        "additional_networks": ["vpc-*:*"],
        "copied_labels": ["team"],
        "workload_policies": ["tpu7x-*"],
        "chips_per_slice": 256,
        "chips_per_cluster": 1024,
        "namespaces": {"research": {"chips_per_namespace": 512, "capacity": ["reservation"]}},
    },
    "advice": "plan",
    "warm": {"for": "15m", "most_chips": 256, "most_usd_an_hour": 300, "across": "workload"},
    "namespaces": {"research": {"warm": {"for": 0}}},
    "notifications": {
        "research": {
            "ml-slack": {"when": ["waiting", "ended", "waiting"], "waiting_after": "20m"},
            "pager": {"only_if_named": True},
        }
    },
    "limits": {"demand_ttl": "20m", "requeue_after": 30, "operations": 9, "backoff": {"ip-space": {"initial": "10m"}}},
}
DECODED = ClusterSettings(
    cluster=CLUSTER,
    version="edition-1",
    path=PATH,
    gke_id="8f3e",
    zone="us-central2-b",
    zones=("us-central2-b", "us-central2-c"),
    reservation_zones={"hall-7": "us-central2-c"},
    pod_to_node_labels=("team",),
    force_on_demand=True,
    max_run_duration=timedelta(hours=12),
    hosts_per_slice=2000,
    serve=(PodsOf.DEPLOYMENT, PodsOf.POD),
    pools=PoolSettings(
        service_account="tpu-nodes@p.iam.gserviceaccount.com",
        boot_disk_gb=200,
        boot_disk_type="hyperdisk-balanced",
        boot_disk_kms_key="projects/p/locations/l/keyRings/r/cryptoKeys/k",
        confidential_storage=True,
        secondary_boot_disk="projects/p/global/images/i",
        image_streaming=True,
        max_pods_per_node=32,
        auto_upgrade=False,
        upgrades=Upgrades.GKE,
        gvnic=False,
        secure_boot=False,
        integrity_monitoring=False,
        network_tags=("tpu", "batch-1"),
        additional_networks=(Network("vpc-2", "subnet-2"),),
        workload_policy="tpu7x-{cores}-{topology}-{chips}-placement-policy",
        host_maintenance_interval="PERIODIC",
        resource_labels={"cost-centre": "research"},
    ),
    policy=Policy(
        everyone=EVERYONE,
        chips_per_cluster=1024,
        namespaces={"research": replace(EVERYONE, chips_per_namespace=512, capacity=(CapacityKind.RESERVATION,))},
    ),
    advice=Advice.PLAN,
    warm=Warm(lasts=15 * MINUTE, most_chips=256, most_usd_an_hour=300.0, across=Across.WORKLOAD),
    namespaces={"research": NamespaceSettings(warm=Warm(lasts=timedelta(0)))},
    notifications={
        "research": {
            "ml-slack": NotificationRule(when=(Occasion.WAITING, Occasion.ENDED), waiting_after=20 * MINUTE),
            "pager": NotificationRule(only_if_named=True),
        }
    },
    limits=Limits(
        demand_ttl=20 * MINUTE,
        requeue_after=timedelta(seconds=30),
        operations=9,
        backoff={**Limits().backoff, FailureKind.IP_SPACE: Backoff(10 * MINUTE, 30 * MINUTE)},
    ),
)


def test_every_setting_is_read() -> None:
    assert read(**EVERYTHING) == DECODED


def test_a_self_managed_cluster_says_how_its_hosts_are_made_and_join() -> None:
    found = read(**SELF_MANAGED)
    assert found.self_managed
    assert found.pools.compute == ComputeSettings(
        image=COMPUTE["image"],
        subnetwork="regions/us-central1/subnetworks/tpu",
        join=Join.KUBEADM,
        control_plane="10.0.0.2:6443",
        kubernetes="1.36",
        scopes=("https://www.googleapis.com/auth/logging.write",),
    )
    assert decode_settings(CLUSTER, encode_settings(found), found.version) == found
    assert not read().self_managed


@given(
    seconds=st.integers(1, 86_400 * 365),
    disk=st.integers(10, 65536),
    tags=st.lists(st.from_regex(r"[a-z]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True), max_size=3),
)
def test_encoded_settings_are_decoded_unchanged(seconds: int, disk: int, tags: list[str]) -> None:
    pools = PoolSettings(boot_disk_gb=disk, network_tags=tuple(tags))
    limits = Limits(demand_ttl=timedelta(seconds=seconds), act_window=timedelta(milliseconds=seconds))
    written = settings(pools=pools, limits=limits)

    assert decode_settings(CLUSTER, encode_settings(written), written.version) == written


def test_every_setting_of_the_domain_can_be_written() -> None:
    document = encode_settings(settings())

    assert set(document) == {"schema"} | {field.name for field in fields(ClusterSettings)} - {
        "cluster",
        "version",
        "paused",
        "retired",
    }
    assert decode_settings(CLUSTER, document, "v") == replace(settings(), version="v")


def test_every_mistake_is_named_at_once_with_its_remedy() -> None:
    with pytest.raises(Permanent) as refused:
        decode_settings(
            CLUSTER,
            {
                "zone": "somewhere",
                "colour": "blue",
                "pools": {"boot_disk_gb": "100", "network_tags": ["UP"], "zone": "us-central2-b"},
                "limits": {
                    "demand_ttl": "soon",
                    "demand_tll": 900,
                    "resync_after": 0,
                    "operations": 0,
                    "backoff": {"stokout": {}, "quota": {"initial": True}, "impossible": {}},
                },
            },
            "edition-1",
        )

    kinds = (
        "a map of initial and maximum for any of stockout, quota, exhausted, reservation, reservation_awaited, "
        "ip_space, rate, busy, hosts, unknown"
    )
    durations = "seconds, or text such as 90s, 15m, 2h or 30d"
    tags = "a list of names of a-z, 0-9 and -, up to 63 characters each"
    assert set(str(refused.value).removeprefix("clusters/demo: ").split("; ")) == {
        "path: Required value: must be the cluster's full name, projects/P/locations/L/clusters/C",
        "zone: Invalid value: 'somewhere': must be the name of a zone, such as us-central2-b",
        "colour: Unknown field: remove it",
        "pools.boot_disk_gb: Invalid value: '100': must be a whole number of GB from 10 to 65536",
        f"pools.network_tags.0: Invalid value: 'UP': must be {tags}",
        "pools.zone: Unknown field: did you mean zone?",
        f"limits.demand_ttl: Invalid value: 'soon': must be {durations}",
        "limits.demand_tll: Unknown field: did you mean limits.demand_ttl?",
        f"limits.resync_after: Invalid value: 0: must be {durations}",
        "limits.operations: Invalid value: 0: must be a whole number from 1 to 100",
        f"limits.backoff.stokout: Invalid value: 'stokout': must be {kinds}",
        f"limits.backoff.impossible: Invalid value: 'impossible': must be {kinds}",
        f"limits.backoff.quota.initial: Invalid value: True: must be {durations}",
    }


@pytest.mark.parametrize("document", [{"limits": 5}, {"limits": {"backoff": []}}, {"pools": "default"}])
def test_a_value_that_should_be_a_map_is_named(document: dict[str, Any]) -> None:
    with pytest.raises(Permanent, match=r"(limits|limits\.backoff|pools): Invalid value: .*: must be "):
        read(**document)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"pools": {"confidential_storage": True}}, "pools.confidential_storage requires a key: set boot_disk_kms_key"),
        (
            {"pools": {"accelerator_network_profile": "auto", "additional_networks": ["vpc-2:subnet-2"]}},
            "pools.accelerator_network_profile excludes additional_networks: leave one of them out",
        ),
        (
            {"pools": {"accelerator_network_profile": "fast"}},
            "pools.accelerator_network_profile: Invalid value: 'fast': must be auto",
        ),
        (
            {"pools": {"host_maintenance_interval": "weekly"}},
            "pools.host_maintenance_interval: Invalid value: 'weekly': must be PERIODIC, AS_NEEDED",
        ),
        (
            {"pools": {"additional_networks": ["vpc-2"]}},
            "pools.additional_networks.0: Invalid value: 'vpc-2': must be a list",
        ),
        (
            {"pools": {"workload_policy": "x-{hosts}"}},
            "pools.workload_policy: Invalid value: 'x-{hosts}': must be a name",
        ),
        (
            {"pools": {"resource_labels": {"Team": "x"}}},
            "pools.resource_labels.Team: Invalid value: 'Team': must be a map",
        ),
        (
            {"pools": {"boot_disk_kms_key": "my-key"}},
            "pools.boot_disk_kms_key: Invalid value: 'my-key': must be projects/P/",
        ),
        (
            {"pod_to_node_labels": ["google.com/x"]},
            "pod_to_node_labels.0: Invalid value: 'google.com/x': must be a list",
        ),
        (
            {"policy": {"capacity": ["cheap"]}},
            "policy.capacity.0: Invalid value: 'cheap': must be a list of any of on_demand",
        ),
        ({"max_run_duration": "8d"}, "max_run_duration: Invalid value: '8d': must be seconds, or text such as 12h"),
        ({"max_run_duration": 599}, "max_run_duration: Invalid value: 599: must be seconds, or text such as 12h"),
        ({"policy": {"capacity": []}}, r"policy.capacity: Invalid value: \[\]: must be a list of any of on_demand"),
        (
            {"policy": {"chips_per_slice": 0}},
            "policy.chips_per_slice: Invalid value: 0: must be a whole number of chips",
        ),
        (
            {"policy": {"zones": "us-central2-b"}},
            "policy.zones: Invalid value: 'us-central2-b': must be a list of zones",
        ),
        (
            {"policy": {"namespaces": {"a": {"accelerators": ["v5e"]}}}},
            "policy.namespaces.a.accelerators.0: Invalid value: 'v5e': must be a list of accelerators such as tpu-v",
        ),
        ({"compute": COMPUTE}, "path: a cluster with compute is not one of GKE"),
        ({"path": "projects/p/locations/us-central1"}, "path: must end in /clusters/C"),
        (
            {**SELF_MANAGED, "compute": {"image": COMPUTE["image"], "join": "kubeadm"}},
            "compute.join: kubeadm requires control_plane and kubernetes: set both",
        ),
        ({**SELF_MANAGED, "compute": {}}, "compute.image: Required value: must be projects/P/global/images/I"),
        ({**SELF_MANAGED, "compute": {**COMPUTE, "kubernetes": "1.36.3"}}, "compute.kubernetes: Invalid value"),
        ({**SELF_MANAGED, "compute": {**COMPUTE, "control_plane": "10.0.0.2"}}, "compute.control_plane: Invalid"),
        ({"policy": {"zons": []}}, "policy.zons: Unknown field: did you mean policy.zones?"),
        ({"zons": []}, "zons: Unknown field: did you mean zones?"),
        ({"policy": {"namespaces": {"a": {"chips": 4}}}}, "policy.namespaces.a.chips: Unknown field"),
        (
            {"notifications": {"a": {"slack": {"when": ["blocked"]}}}},
            "notifications.a.slack.when.0: Invalid value: 'blocked': must be a list of any of waiting",
        ),
        ({"notifications": {"a": {"slack": {"after": "5m"}}}}, "notifications.a.slack.after: Unknown field"),
        ({"notifications": {"a": {"none": {}}}}, "notifications.a.none: Invalid value: 'none': must be a map of name"),
        ({"notifications": {"a": {"#ml": {}}}}, "notifications.a.#ml: Invalid value: '#ml': must be a map of namespac"),
        (
            {"policy": {"namespaces": {"a": {"chips_per_cluster": 4}}}},
            "policy.namespaces.a.chips_per_cluster: Unknown",
        ),
        ({"advice": "ladder"}, "advice: Invalid value: 'ladder': must be one of off, plan"),
        ({"advice": True}, "advice: Invalid value: True: must be one of off, plan"),
        ({"warm": {}}, "warm.for: Required value: must be seconds, or text such as 15m"),
        ({"warm": {"for": "8d"}}, "warm.for: Invalid value: '8d': must be seconds, or text such as 15m"),
        ({"warm": {"for": "1h", "across": "all"}}, "warm.across: Invalid value: 'all': must be one of workload"),
        ({"warm": {"for": "1h", "most_chip": 4}}, "warm.most_chip: Unknown field: did you mean warm.most_chips?"),
        (
            {"namespaces": {"a": {"wam": {}}}},
            "namespaces.a.wam: Unknown field: did you mean namespaces.NAMESPACE.warm?",
        ),
        (
            {"namespaces": {"a": {"warm": {"for": "1h", "most_usd_an_hour": 0}}}},
            "namespaces.a.warm.most_usd_an_hour: Invalid value: 0: must be US dollars an hour",
        ),
        ({"zones": ["here"]}, "zones.0: Invalid value: 'here': must be a list of names of zones"),
        (
            {"reservation_zones": {"r": "here"}},
            "reservation_zones.r: Invalid value: 'here': must be a map of reservations and their zones",
        ),
    ],
    ids=lambda value: value.partition(" ")[0] if isinstance(value, str) else "",
)
def test_a_mistake_is_named_with_its_remedy(document: dict[str, Any], message: str) -> None:
    with pytest.raises(Permanent, match=message):
        read(**document)


def test_settings_of_another_schema_are_an_error() -> None:
    with pytest.raises(Permanent, match="schema: Invalid value: 2: must be 1"):
        read(schema=2)


@pytest.mark.parametrize("name", ["prod.eu", "a/b", ""])
def test_a_cluster_whose_documents_could_be_anothers_is_refused(name: str) -> None:
    with pytest.raises(Permanent, match=r"is not the ID of a cluster: up to 63 of a-z, 0-9 and -"):
        decode_settings(ClusterId(name), {"path": "projects/p/locations/l/clusters/c"}, "")


@pytest.mark.parametrize("value", [9223372036854775807, 10**400, 1e300, float("inf"), float("nan"), "9" * 400 + "d"])
def test_a_duration_beyond_all_bounds_is_refused_by_its_field(value: object) -> None:
    with pytest.raises(Permanent, match=r"limits\.demand_ttl: Invalid value: "):
        read(limits={"demand_ttl": value})


def test_a_limit_of_chips_beyond_what_a_document_holds_is_refused_by_its_field() -> None:
    with pytest.raises(Permanent, match=r"policy\.chips_per_cluster: Invalid value: "):
        read(policy={"chips_per_cluster": 10**40})
