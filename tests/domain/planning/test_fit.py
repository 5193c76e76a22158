"""Whether a slice's pods could run on its hosts; a refusal names the key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import a_job, a_request, a_spec, settings
from tpu_slices.domain.catalogue.accelerators import shape_of
from tpu_slices.domain.catalogue.topology import Topology
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import (
    IDLE_HOSTS,
    MountedVolume,
    PodRule,
    PodRuleKind,
    Requirement,
    TemplateRequest,
    Toleration,
)
from tpu_slices.domain.model.slices import SliceSpec, Taint, WorkloadJob
from tpu_slices.domain.planning.fit import fit, idle_hosts, pool_fits

GIB = 1 << 30
HOST = shape_of("tpu-v6e-slice", Topology((4, 4)), 4).machine
SPOT = Taint("cloud.google.com/gke-spot", "true")


def why_not(request: TemplateRequest, spec: SliceSpec | None = None, selector: Mapping[str, str] | None = None) -> str:
    """Return every obstacle, one a line; empty: the pods fit."""
    selected = {**dict(request.node_selector), **(selector or {})}
    return "\n".join(each.message for each in fit(request, selected, a_job(), spec or a_spec(), settings()))


def why_no_pool(job: WorkloadJob, spec: SliceSpec, known: ClusterSettings) -> str:
    return "\n".join(each.message for each in pool_fits(job, spec, known))


def a_term(*requirements: tuple[str, str, str]) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(key=key, operator=operator, values=tuple(values.split())) for key, operator, values in requirements
    )


ZONE = "topology.kubernetes.io/zone"


@pytest.mark.parametrize(
    "term",
    [
        pytest.param(a_term((ZONE, "In", "us-central2-a us-central2-b")), id="in"),
        pytest.param(a_term((ZONE, "NotIn", "us-central2-c")), id="not in"),
        pytest.param(a_term(("cloud.google.com/gke-nodepool", "Exists", "")), id="exists, whatever it is"),
        pytest.param(a_term(("nvidia.com/gpu", "DoesNotExist", "")), id="does not exist"),
        pytest.param(a_term(("metadata.name", "NotIn", "bad-node")), id="not on a certain node"),
        pytest.param(a_term(("cloud.google.com/gke-accelerator-count", "Gt", "3")), id="more than"),
        pytest.param(a_term(("cloud.google.com/gke-accelerator-count", "Lt", "5")), id="less than"),
        pytest.param(a_term(("google.com/nodepool-manager", "In", "tpu-provisioner")), id="our own label"),
        pytest.param(a_term((ZONE, "Exists", ""), ("kubernetes.io/arch", "In", "amd64")), id="both"),
    ],
)
def test_node_affinity_that_the_hosts_meet_is_accepted(term: tuple[Requirement, ...]) -> None:
    assert not why_not(a_request(affinity=(term,)))


@pytest.mark.parametrize(
    ("term", "message"),
    [
        (a_term((ZONE, "In", "us-east5-a")), f"{ZONE}: the pod's node affinity requires In us-east5-a, .*\"us-cen"),
        (a_term((ZONE, "NotIn", "us-central2-b")), f"{ZONE}: .*NotIn us-central2-b"),
        (a_term(("gpu", "Exists", "")), "gpu: .*requires Exists, and the hosts of this slice do not have it"),
        (a_term((ZONE, "DoesNotExist", "")), f"{ZONE}: .*DoesNotExist"),
        (a_term(("cloud.google.com/gke-nodepool", "In", "mine")), "gke-nodepool: .*In mine"),
        (a_term(("metadata.name", "In", "node-1")), "metadata.name: .*In node-1"),
        (a_term(("cloud.google.com/gke-accelerator-count", "Gt", "4")), "count: .*Gt 4"),
        (a_term(("cloud.google.com/gke-accelerator-count", "Gt", "5")), "count: .*Gt 5"),
        (a_term(("cloud.google.com/gke-accelerator-count", "Lt", "4")), "count: .*Lt 4"),
        (a_term(("cloud.google.com/gke-accelerator-count", "Lt", "3")), "count: .*Lt 3"),
        (a_term(("kubernetes.io/arch", "Gt", "4")), "arch: .*Gt 4"),
        (a_term((ZONE, "Exists", ""), ("team", "In", "a")), "team: .*In a"),
        (a_term((ZONE, "Near", "us")), f"{ZONE}: .*Near us"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[-1].operator,
)
def test_node_affinity_that_no_host_would_meet_is_refused_by_its_key(
    term: tuple[Requirement, ...], message: str
) -> None:
    assert re.search(message, why_not(a_request(affinity=(term,))))


def test_one_matching_term_is_enough() -> None:
    assert not why_not(a_request(affinity=(a_term(("gpu", "Exists", "")), a_term((ZONE, "Exists", "")))))


def test_an_empty_term_matches() -> None:
    assert not why_not(a_request(affinity=((),)))


requirements = st.builds(
    Requirement,
    key=st.sampled_from([ZONE, "team", "kubernetes.io/arch"]),
    operator=st.sampled_from(["In", "Exists"]),
    values=st.tuples(st.sampled_from(["us-central2-b", "amd64", "a"])),
)
OPPOSITE = {"In": "NotIn", "Exists": "DoesNotExist"}


@given(requirements)
def test_of_a_requirement_and_its_opposite_exactly_one_holds(one: Requirement) -> None:
    other = Requirement(key=one.key, operator=OPPOSITE[one.operator], values=one.values)
    assert holds(one) is not holds(other)


def holds(requirement: Requirement) -> bool:
    return not why_not(a_request(affinity=((requirement,),)))


@pytest.mark.parametrize(
    "toleration",
    [
        pytest.param(Toleration(key=SPOT.key, value="true", effect="NoSchedule"), id="exactly"),
        pytest.param(Toleration(key=SPOT.key, operator="Exists"), id="any value"),
        pytest.param(Toleration(key=SPOT.key, value="true"), id="any effect"),
        pytest.param(Toleration(operator="Exists"), id="every taint"),
    ],
)
def test_a_tolerated_taint_is_accepted(toleration: Toleration) -> None:
    assert not why_not(a_request(tolerations=(toleration,)), a_spec(taints=(SPOT,)))


@pytest.mark.parametrize(
    "tolerations",
    [
        pytest.param((), id="none"),
        pytest.param((Toleration(key=SPOT.key, value="false"),), id="another value"),
        pytest.param((Toleration(key="google.com/tpu", operator="Exists"),), id="another taint"),
        pytest.param((Toleration(key=SPOT.key, operator="Exists", effect="NoExecute"),), id="another effect"),
        pytest.param((Toleration(),), id="no key and no Exists"),
    ],
)
def test_a_taint_that_is_not_tolerated_is_refused_by_its_key(tolerations: tuple[Toleration, ...]) -> None:
    assert re.search(
        r"cloud.google.com/gke-spot: .*add a toleration",
        why_not(a_request(tolerations=tolerations), a_spec(taints=(SPOT,))),
    )


def test_a_pod_may_request_all_that_is_allocatable() -> None:
    assert HOST.allocatable_memory_gib is not None
    assert not why_not(
        a_request(cpu_milli=HOST.allocatable_cpu_milli or 0, memory_bytes=HOST.allocatable_memory_gib * GIB)
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cpu_milli": 180_000}, "cpu: a pod requests 180000m, and a ct6e-standard-4t node has 179480m allocatable"),
        (
            {"memory_bytes": 720 * GIB},
            "memory: a pod requests 720.0Gi, and a ct6e-standard-4t node has 687Gi allocatable",
        ),
    ],
    ids=["cpu", "memory"],
)
def test_a_pod_that_requests_more_than_is_allocatable_is_refused(changes: dict[str, Any], message: str) -> None:
    assert re.search(message, why_not(a_request(**changes)))


def test_a_volume_in_the_slices_zone_is_accepted() -> None:
    assert not why_not(a_request(volumes=(MountedVolume(name="data", zones=("us-central2-a", "us-central2-b")),)))


def test_a_volume_in_another_zone_is_refused_by_its_claim() -> None:
    assert re.search(
        r"persistentVolumeClaim data: .*us-east5-a, .*are in us-central2-b",
        why_not(a_request(volumes=(MountedVolume(name="data", zones=("us-east5-a",)),))),
    )


NAMESPACED_JOB = "alpha.jobset.sigs.k8s.io/namespaced-job"


def test_exclusive_placement_by_node_selector_is_accepted_where_the_relay_labels_the_nodes() -> None:
    assert not why_not(a_request(), a_spec(exclusive_nodes=True), selector={NAMESPACED_JOB: "research_llama-slice-0"})


def test_jobsets_taint_on_exclusive_nodes_needs_no_toleration_in_the_template() -> None:
    taint = Taint("alpha.jobset.sigs.k8s.io/no-schedule", "true")
    assert not why_not(
        a_request(), a_spec(exclusive_nodes=True, taints=(taint,)), selector={NAMESPACED_JOB: "research_llama-slice-0"}
    )


@pytest.mark.parametrize("value", ["research_llama-slice-1", "other_llama-slice-0"])
def test_a_selector_for_another_jobs_nodes_is_refused(value: str) -> None:
    assert re.search(
        NAMESPACED_JOB, why_not(a_request(), a_spec(exclusive_nodes=True), selector={NAMESPACED_JOB: value})
    )


def test_exclusive_placement_without_its_annotations_is_refused() -> None:
    assert re.search(NAMESPACED_JOB, why_not(a_request(), selector={NAMESPACED_JOB: "research_llama-slice-0"}))


def test_a_slice_of_more_hosts_than_a_pool_may_have_is_refused() -> None:
    assert re.search(
        r"gke-tpu-topology: .*needs 1024 hosts, and a slice may have at most 1000",
        why_no_pool(a_job(), a_spec(hosts=1024), settings()),
    )


def test_the_maximum_of_hosts_per_pool_is_a_setting() -> None:
    assert not why_no_pool(a_job(), a_spec(hosts=1024), settings(hosts_per_slice=2000))
    assert not why_no_pool(a_job(), a_spec(hosts=1024), settings(hosts_per_slice=1024))
    assert why_no_pool(a_job(), a_spec(hosts=1024), settings(hosts_per_slice=1023))


def test_labels_longer_than_gke_allows_are_refused_by_key() -> None:
    labels = tuple((f"example.com/label-{number}", "x" * 60) for number in range(6))
    assert re.search(
        r"node labels: .* GKE allows 1024: .*example.com/label-0",
        why_no_pool(a_job(), a_spec(node_labels=labels), settings()),
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [("team", "a b"), ("team", "x" * 64), ("te am", "x"), ("a/b/c", "x"), ("x" * 64, "x"), ("Example.com/x", "y")],
)
def test_an_invalid_label_is_refused(key: str, value: str) -> None:
    assert re.search("is not a valid node label", why_no_pool(a_job(), a_spec(node_labels=((key, value),)), settings()))


@pytest.mark.parametrize(("key", "value"), [("team", ""), ("example.com/Team_1", "A.b-c_D"), ("x" * 63, "x" * 63)])
def test_a_valid_label_is_accepted(key: str, value: str) -> None:
    assert not why_no_pool(a_job(), a_spec(node_labels=((key, value),)), settings())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"ephemeral_bytes": 50 * GIB},
            "ephemeral-storage: a pod requests 50.0Gi, .* has at most 49.0Gi allocatable with pools.boot_disk_gb 100",
        ),
        ({"unoffered": ("hugepages-1Gi",)}, "hugepages-1Gi: a pod requests it, and a ct6e-standard-4t node has none"),
        ({"unoffered": ("nvidia.com/gpu",)}, "nvidia.com/gpu: a pod requests it, .*: remove the request"),
        (
            {"volumes": (MountedVolume(name="data", zones=()),)},
            "persistentVolumeClaim data: there is none in the namespace, .*: create it, or remove the volume",
        ),
    ],
    ids=["disk", "huge pages", "GPUs", "a volume that does not exist"],
)
def test_a_pod_that_no_slice_can_help_is_refused_by_its_key(changes: dict[str, Any], message: str) -> None:
    assert re.search(message, why_not(a_request(**changes)))


def test_a_pod_may_request_the_disk_that_gke_leaves() -> None:
    assert not why_not(a_request(ephemeral_bytes=49 * GIB))


@pytest.mark.parametrize(("parallelism", "completions"), [(8, 8), (5, 4), (4, 8)])
def test_more_pods_than_hosts_are_refused_and_both_fields_named(parallelism: int, completions: int) -> None:
    request = a_request(parallelism=parallelism, completions=completions)
    assert why_not(request) == (
        f"parallelism, completions: the Job has {parallelism} and {completions}, and a slice of tpu-v6e-slice "
        "4x4 has 4 hosts of 4 chips, one for each pod: set both to 4, or select a larger topology"
    )


@pytest.mark.parametrize(("parallelism", "completions"), [(1, 4), (2, 4), (4, 2)])
def test_fewer_pods_at_a_time_than_hosts_are_refused(parallelism: int, completions: int) -> None:
    assert why_not(a_request(parallelism=parallelism, completions=completions, replicas=32)) == (
        f"parallelism, completions: the Job has {parallelism} and {completions}, and a slice of tpu-v6e-slice 4x4 has "
        "4 hosts of 4 chips, one for each pod. Programs that wait for the whole slice hang (each of its 32 Jobs gets a "
        "slice of its own): set both to 4, select a smaller topology, or, if hosts are to stay idle, set the "
        'annotation tpu-provisioner.cloud.google.com/idle-hosts: "true" on the pods'
    )


@pytest.mark.parametrize(("parallelism", "completions"), [(1, 1), (2, 4), (4, 2)])
def test_hosts_that_are_meant_to_stay_idle_are_a_caveat(parallelism: int, completions: int) -> None:
    meant = ((IDLE_HOSTS, "true"),)
    request = a_request(parallelism=parallelism, completions=completions, requested_annotations=meant)
    assert not why_not(request)
    assert idle_hosts(request, a_job(), a_spec()) == (
        f"replicatedJob slice: parallelism, completions: the Job has {parallelism} and {completions}, and a slice of "
        "tpu-v6e-slice 4x4 has 4 hosts of 4 chips, one for each pod. Hosts stay idle, and programs that wait "
        "for the whole slice hang: set both to 4"
    )


@pytest.mark.parametrize(("hosts", "told"), [(1, "has 1 host of 4 chips"), (2, "has 2 hosts of 4 chips")])
def test_the_hosts_of_a_slice_are_counted_in_words(hosts: int, told: str) -> None:
    assert told in why_not(a_request(parallelism=9, completions=9), a_spec(hosts=hosts))


@pytest.mark.parametrize("pods", [4, None])
def test_nothing_is_said_of_as_many_pods_as_hosts_or_of_a_pod_alone(pods: int | None) -> None:
    request = a_request(parallelism=pods, completions=pods)
    assert (why_not(request), idle_hosts(request, a_job(), a_spec())) == ("", "")


def test_of_an_affinity_every_unmet_requirement_of_the_nearest_term_is_named() -> None:
    near, far = a_term((ZONE, "Exists", ""), ("team", "In", "a"), ("tier", "In", "b")), a_term(*[("x", "In", "y")] * 3)
    keys = [line.partition(":")[0] for line in why_not(a_request(affinity=(far, near))).splitlines()]
    assert keys == ["team", "tier"]


@pytest.mark.parametrize(
    ("key", "remedy"),
    [
        ("cloud.google.com/gke-spot", "do not have it: select it with the node selector"),
        ("team", "do not have it: remove the requirement, or prefer it"),
        ("kubernetes.io/hostname", "have a value that is not known before they exist: remove"),
    ],
)
def test_an_affinity_that_is_not_met_comes_with_its_remedy(key: str, remedy: str) -> None:
    assert remedy in why_not(a_request(affinity=(a_term((key, "In", "true")),)))


def rule(kind: str, key: str, *, itself: bool) -> TemplateRequest:
    return a_request(pod_rules=(PodRule(kind=PodRuleKind(kind), topology_key=key, selects_itself=itself),))


POOL, HOST_NAME = "cloud.google.com/gke-nodepool", "kubernetes.io/hostname"


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (rule("podAffinity", POOL, itself=False), "demands pods of others on hosts that are made for these alone"),
        (rule("podAffinity", HOST_NAME, itself=False), "demands pods of others"),
        (rule("podAffinity", "rack", itself=True), "is a label that the hosts of this slice do not have"),
        (rule("topologySpreadConstraints", "rack", itself=True), "is a label that the hosts of this slice do not have"),
        (rule("podAntiAffinity", POOL, itself=True), "keeps the pods of one slice apart, whose 4 hosts share it"),
        (rule("podAntiAffinity", ZONE, itself=True), "keeps the pods of one slice apart"),
    ],
)
def test_a_rule_that_cannot_hold_on_fresh_hosts_is_refused_by_its_key(request_: TemplateRequest, why: str) -> None:
    (only,) = request_.pod_rules
    assert why_not(request_).startswith(f"{only.kind}: its topologyKey {only.topology_key} {why}")


@pytest.mark.parametrize(
    "request_",
    [
        rule("podAffinity", POOL, itself=True),
        rule("podAffinity", ZONE, itself=False),
        rule("podAntiAffinity", HOST_NAME, itself=True),
        rule("podAntiAffinity", POOL, itself=False),
        rule("podAntiAffinity", "rack", itself=True),
        rule("topologySpreadConstraints", HOST_NAME, itself=True),
    ],
)
def test_a_rule_that_may_hold_is_accepted(request_: TemplateRequest) -> None:
    assert not why_not(request_)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("cloud.google.com/gke-tpu-slice", "is a label of super-, sub- or dynamic slicing that the hosts"),
        ("rack", "rack is a label that the hosts of this slice do not have"),
        (HOST_NAME, "all pods of a slice are placed on one host, and this slice has 4"),
    ],
)
def test_exclusive_placement_that_no_pod_could_follow_is_refused_by_its_annotation(key: str, message: str) -> None:
    why = why_not(a_request(exclusive_topology=key))
    assert why.startswith("alpha.jobset.sigs.k8s.io/exclusive-topology: ")
    assert message in why
    assert why.endswith(f"set it to {POOL}")


@pytest.mark.parametrize("key", [POOL, ZONE, ""])
def test_exclusive_placement_by_a_label_of_the_hosts_is_accepted(key: str) -> None:
    assert not why_not(a_request(exclusive_topology=key))
