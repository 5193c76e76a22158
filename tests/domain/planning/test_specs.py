"""What a request leads to: the spec of a slice, or a refusal that names the key."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import a_job, a_leader, a_request, an_owner, settings
from tests.domain.asking import EVERYTHING, SHAPE, outcome, refusal_of, selecting, spec_of
from tpu_slices.domain.catalogue.machines import Placement
from tpu_slices.domain.catalogue.topology import Topology
from tpu_slices.domain.model.clusters import PoolSettings
from tpu_slices.domain.model.facts import TemplateRequest
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import Capacity, CapacityKind, OwnerKind, Taint
from tpu_slices.domain.planning.host_labels import TOPOLOGY, host_labels
from tpu_slices.domain.planning.specs import SliceRequest, chips_requested, spec_for
from tpu_slices.domain.records.claims import Refusal

ZONE = "topology.kubernetes.io/zone"


def test_a_plain_request_gets_the_hosts_of_its_shape() -> None:
    spec = spec_of(a_request())
    assert (spec.accelerator, spec.topology) == ("tpu-v6e-slice", Topology((4, 4)))
    assert (spec.machine_type, spec.hosts, spec.chips_per_host) == ("ct6e-standard-4t", 4, 4)
    assert (spec.placement, spec.boot_disk) == (Placement.COMPACT, "hyperdisk-balanced")
    assert (spec.zone, spec.capacity, spec.node_labels) == ("us-central2-b", Capacity(), ())


def test_the_zone_that_the_pod_selects_overrides_the_settings() -> None:
    assert spec_of(selecting({ZONE: "us-central2-c"})).zone == "us-central2-c"


def test_a_request_without_any_zone_is_refused() -> None:
    refusal = refusal_of(a_request(), zone=None)
    assert (refusal.reason, ZONE in refusal.message) == (Reason.DOES_NOT_FIT, True)


@pytest.mark.parametrize(
    ("selectors", "capacity"),
    [
        pytest.param({}, Capacity(), id="no selector: on demand"),
        pytest.param({"cloud.google.com/gke-spot": "true"}, Capacity(CapacityKind.SPOT), id="spot"),
        pytest.param(
            {"cloud.google.com/reservation-name": "r1"}, Capacity(CapacityKind.RESERVATION, "r1"), id="reservation"
        ),
        pytest.param(
            {"cloud.google.com/reservation-name": "r1", "cloud.google.com/reservation-project": "shared-project"},
            Capacity(CapacityKind.RESERVATION, "projects/shared-project/reservations/r1"),
            id="reservation of another project",
        ),
        pytest.param(
            {"cloud.google.com/reservation-name": "r1", "cloud.google.com/reservation-blocks": "b1"},
            Capacity(CapacityKind.RESERVATION, "r1/reservationBlocks/b1"),
            id="a block of a reservation",
        ),
        pytest.param(
            {
                "cloud.google.com/reservation-name": "r1",
                "cloud.google.com/reservation-project": "shared-project",
                "cloud.google.com/reservation-blocks": "b1",
                "cloud.google.com/reservation-subblocks": "s1",
            },
            Capacity(
                CapacityKind.RESERVATION,
                "projects/shared-project/reservations/r1/reservationBlocks/b1/reservationSubBlocks/s1",
            ),
            id="a sub-block of another project's",
        ),
    ],
)
def test_capacity_is_what_the_pod_selects(selectors: dict[str, str], capacity: Capacity) -> None:
    assert spec_of(selecting(selectors)).capacity == capacity


@pytest.mark.parametrize(
    "selectors",
    [
        pytest.param({"cloud.google.com/gke-accelerator-count": "4"}, id="chips of a host"),
        pytest.param({"node.kubernetes.io/instance-type": "ct6e-standard-4t"}, id="its machine type"),
        pytest.param({"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}, id="what every node has"),
        pytest.param({"iam.gke.io/gke-metadata-server-enabled": "true"}, id="the metadata server"),
    ],
)
def test_selectors_that_our_hosts_meet_are_accepted(selectors: dict[str, str]) -> None:
    assert spec_of(selecting(selectors)).node_labels == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("cloud.google.com/gke-accelerator-count", "8", id="other chips"),
        pytest.param("node.kubernetes.io/instance-type", "ct6e-standard-8t", id="another machine"),
        pytest.param("kubernetes.io/arch", "arm64", id="another architecture"),
        pytest.param("kubernetes.io/hostname", "gke-demo-1", id="one host by name"),
        pytest.param("cloud.google.com/gke-nodepool", "my-pool", id="another node pool"),
        pytest.param("cloud.google.com/gke-spot", "yes", id="spot, misspelt"),
        pytest.param("cloud.google.com/gke-spot", "false", id="not spot: only spot hosts have this label"),
        pytest.param("google.com/tpu-slice-id", "tpu-stolen", id="a forged slice of ours"),
        pytest.param("x.gke.io/y", "z", id="a name under a system domain"),
    ],
)
def test_a_selector_that_our_hosts_would_not_meet_is_refused_by_its_key(key: str, value: str) -> None:
    refusal = refusal_of(selecting({key: value}))
    assert refusal.reason is Reason.DOES_NOT_FIT
    assert refusal.message.startswith(f"replicatedJob slice: {key}: ")
    assert value in refusal.message


def test_spot_and_a_reservation_exclude_each_other() -> None:
    both = selecting({"cloud.google.com/gke-spot": "true", "cloud.google.com/reservation-name": "r1"})
    assert "gke-spot" in refusal_of(both).message


def test_a_reservations_project_without_a_reservation_is_refused() -> None:
    refusal = refusal_of(selecting({"cloud.google.com/reservation-project": "shared-project"}))
    assert "reservation-project" in refusal.message


@pytest.mark.parametrize(
    "key", ["reservation-name", "reservation-project", "reservation-blocks", "reservation-subblocks"]
)
@pytest.mark.parametrize("value", ["", "a/b", "reservations/r1", "A", "-r", "r" * 64])
def test_a_reservation_or_a_part_of_one_that_no_resource_can_be_called_is_refused(key: str, value: str) -> None:
    whole = {"reservation-name": "r1", "reservation-blocks": "b1", "reservation-subblocks": "s1"}
    selectors = {f"cloud.google.com/{name}": text for name, text in {**whole, key: value}.items()}
    refusal = refusal_of(selecting(selectors))
    assert refusal.reason is Reason.DOES_NOT_FIT
    assert f'cloud.google.com/{key}: "{value}"' in refusal.message


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        pytest.param({"accelerator": None}, "gke-tpu-accelerator", id="no accelerator"),
        pytest.param({"accelerator": "tpu-v1"}, "gke-tpu-accelerator", id="an unknown accelerator"),
        pytest.param({"topology": None}, "gke-tpu-topology", id="no topology"),
        pytest.param({"topology": "4by4"}, "gke-tpu-topology", id="a topology that cannot be read"),
        pytest.param({"topology": "3x5"}, "gke-tpu-topology", id="a topology that does not exist"),
        pytest.param({"chips_per_pod": 0}, "google.com/tpu", id="no chips"),
        pytest.param({"chips_per_pod": 3}, "google.com/tpu", id="three chips"),
    ],
)
def test_an_impossible_request_is_refused_by_its_field(changes: dict[str, Any], field: str) -> None:
    refusal = refusal_of(a_request(**changes))
    assert refusal.reason is Reason.IMPOSSIBLE_SHAPE
    assert field in refusal.message
    assert refusal.message.startswith("replicatedJob slice: ")
    assert refusal.message.endswith(".")


def test_the_parsed_topology_and_the_selector_must_agree() -> None:
    refusal = refusal_of(a_request(topology="4x8", node_selector=tuple(SHAPE.items())))
    assert (refusal.reason, "gke-tpu-topology" in refusal.message) == (Reason.DOES_NOT_FIT, True)


def test_a_tenants_selectors_become_node_labels() -> None:
    assert spec_of(selecting({"team": "a", "example.com/pool": "b"})).node_labels == (
        ("example.com/pool", "b"),
        ("team", "a"),
    )


system_keys = st.builds(
    "{}{}/{}".format,
    st.sampled_from(["", "a.", "a.b."]),
    st.sampled_from(["google.com", "kubernetes.io", "k8s.io", "gke.io"]),
    st.from_regex(r"[a-z]([a-z-]{0,8}[a-z])?", fullmatch=True),
)


@pytest.mark.slow
@given(system_keys, st.from_regex(r"[a-z0-9]{1,8}", fullmatch=True))
def test_no_tenant_sets_a_label_under_a_system_domain(key: str, value: str) -> None:
    spec = outcome(a_request(node_selector=(*SHAPE.items(), (key, value))))
    assert isinstance(spec, Refusal) or spec.node_labels == ()


plain_selectors = st.dictionaries(
    st.from_regex(r"(notgoogle\.com/|example\.org/|)[a-z]{1,8}", fullmatch=True),
    st.from_regex(r"[a-z0-9]{0,8}", fullmatch=True),
    max_size=4,
)


@given(plain_selectors)
def test_the_hosts_of_an_accepted_request_meet_every_selector(selectors: dict[str, str]) -> None:
    request = a_request(node_selector=(*SHAPE.items(), *selectors.items()))
    spec = spec_of(request)
    labels = {**host_labels(spec, a_job(), PoolSettings()), **dict(spec.node_labels)}
    assert all(labels.get(key) == value for key, value in request.node_selector)


@given(st.permutations([*SHAPE.items(), ("team", "a"), ("tier", "b")]))
def test_the_order_of_selectors_changes_nothing(pairs: list[tuple[str, str]]) -> None:
    assert spec_of(a_request(node_selector=tuple(pairs), tolerations=(EVERYTHING,))) == spec_of(
        selecting({"team": "a", "tier": "b"})
    )


def test_the_fingerprint_is_of_the_tenants_request_alone() -> None:
    moved = spec_of(a_request(), zone="us-central2-a", version="settings-2")
    assert moved.fingerprint == spec_of(a_request()).fingerprint


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(selecting({"team": "a"}), id="a further selector"),
        pytest.param(selecting({ZONE: "us-central2-b"}), id="a zone"),
        pytest.param(
            a_request(topology="4x8", node_selector=tuple({**SHAPE, TOPOLOGY: "4x8"}.items())), id="another topology"
        ),
        pytest.param(selecting({"cloud.google.com/gke-spot": "true"}), id="another capacity"),
    ],
)
def test_another_request_has_another_fingerprint(other: TemplateRequest) -> None:
    assert spec_of(other).fingerprint != spec_of(a_request()).fingerprint


def test_the_number_of_replicas_does_not_change_the_spec() -> None:
    assert spec_of(a_request(replicas=8)) == spec_of(a_request())


# what GKE itself provisions


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("cloud.google.com/compute-class", "tpu-class", id="a compute class"),
        pytest.param("cloud.google.com/gke-queued", "true", id="queued provisioning"),
    ],
)
def test_a_request_for_gkes_own_provisioners_is_refused_by_key(key: str, value: str) -> None:
    refusal = refusal_of(selecting({key: value}))
    assert refusal.reason is Reason.PROVISIONED_BY_GKE
    assert f'{key}: the pod selects "{value}", so GKE itself provisions its nodes' in refusal.message


# capacity by settings


def test_a_reservations_zone_is_used() -> None:
    reserved = selecting({"cloud.google.com/reservation-name": "r1"})
    assert spec_of(reserved, reservation_zones={"r1": "us-central2-c"}).zone == "us-central2-c"


def test_spot_hosts_have_the_spot_taint() -> None:
    assert spec_of(selecting({"cloud.google.com/gke-spot": "true"})).taints == (
        Taint("cloud.google.com/gke-spot", "true"),
    )


def test_exclusive_nodes_have_jobsets_taint_from_the_start() -> None:
    spec = spec_of(a_request(exclusive_nodes=True))
    assert (spec.exclusive_nodes, spec.taints) == (True, (Taint("alpha.jobset.sigs.k8s.io/no-schedule", "true"),))


SPOT_AND_RESERVED = [
    pytest.param({"cloud.google.com/gke-spot": "true"}, id="spot"),
    pytest.param({"cloud.google.com/reservation-name": "r1"}, id="a reservation"),
    pytest.param({"cloud.google.com/gke-flex-start": "true"}, id="flex-start"),
]


@pytest.mark.parametrize("selectors", SPOT_AND_RESERVED)
def test_forced_on_demand_every_slice_is_on_demand(selectors: dict[str, str]) -> None:
    spec = spec_of(selecting(selectors), force_on_demand=True)
    assert (spec.capacity, spec.taints) == (Capacity(), ())


@pytest.mark.parametrize("selectors", SPOT_AND_RESERVED)
def test_a_pod_that_selects_spot_or_a_reservation_is_refused_under_forced_on_demand(selectors: dict[str, str]) -> None:
    request = selecting(selectors)
    refusal = refusal_of(request, a_leader(node_selector=request.node_selector), force_on_demand=True)
    assert refusal.reason is Reason.DOES_NOT_FIT
    assert f"{next(iter(selectors))}: " in refusal.message
    assert "not bought that way" in refusal.message


# a JobSet's chips


def test_a_jobset_requests_the_chips_of_every_possible_slice() -> None:
    requests = (a_request(replicas=3), a_request(topology="2x2", replicas=2), a_request(topology="3x5", replicas=9))
    assert chips_requested(requests) == 3 * 16 + 2 * 4


@pytest.mark.parametrize(
    ("now", "requests"),
    [
        (a_request(topology="4x8", replicated_job=""), "tpu-v6e-slice 4x8"),
        (replace(a_request(replicated_job=""), accelerator=None, topology=None), "no TPU"),
    ],
)
def test_a_group_of_an_earlier_revision_that_never_had_a_slice_is_told_of_which_it_is(
    now: TemplateRequest, requests: str
) -> None:
    group = a_job(owner=an_owner(kind=OwnerKind.LEADER_WORKER_SET), replicated_job="")
    asked = SliceRequest(job=group, request=now, leader=a_leader(node_selector=tuple(SHAPE.items())), jobset_chips=0)
    refusal = spec_for(asked, settings())
    assert isinstance(refusal, Refusal)
    assert f"select tpu-v6e-slice 4x4, and the LeaderWorkerSet requests {requests}" in refusal.message
