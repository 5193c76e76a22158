from collections.abc import Mapping
from typing import Any

import pytest

from relay import translate
from relay.objects import Hardware, Host, Place, PoolKey, WorkloadName
from relay.translate import missing_labels
from tests.relay.objects import OPTED_OUT, SELECTOR, Json, container, jobset, node, pod, read_jobset, replicated_job
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.slices import ClaimId
from tpu_slices.wire.jobsets import jobset_state

OPTED_OUT_POD = {"metadata": {"annotations": {OPTED_OUT: "true"}}}


def test_a_jobsets_requests_are_those_of_its_tpu_templates() -> None:
    driver = replicated_job("driver", 1, containers=[container(0)])
    seen = read_jobset(jobset(spec={"replicatedJobs": [driver, replicated_job("workers", 3)]}))
    assert seen is not None
    (request,) = seen.requests
    assert (request.replicated_job, request.replicas, request.chips_per_pod) == ("workers", 3, 4)
    assert (seen.slices, seen.parse_error) == (3, None)
    assert (seen.name, seen.ref.owner.uid, seen.ref.generation, seen.ref.resource_version) == (
        WorkloadName("research", "llama"),
        "u-1",
        1,
        "10",
    )


def test_a_jobset_without_tpus_is_ignored() -> None:
    assert read_jobset(jobset(spec={"replicatedJobs": [replicated_job(containers=[container(0)])]})) is None


def test_a_jobset_whose_templates_all_opted_out_is_kept_without_requests() -> None:
    job = replicated_job()
    job["template"]["spec"]["template"] |= OPTED_OUT_POD
    seen = read_jobset(jobset(spec={"replicatedJobs": [job]}))
    assert seen is not None
    assert (seen.requests, seen.served) == ((), True)


def test_an_unparseable_jobset_is_kept_without_requests() -> None:
    seen = read_jobset(jobset(spec={"replicatedJobs": [replicated_job(overhead={"cpu": "some"})]}))
    assert seen is not None
    assert (seen.requests, seen.state) == ((), WorkloadState.ACTIVE)
    assert seen.parse_error == 'replicatedJob workers: spec.overhead.cpu: "some" is not a valid quantity'


@pytest.mark.parametrize(
    ("parts", "state"),
    [
        ({}, WorkloadState.ACTIVE),
        ({"spec": {"suspend": False}, "conditions": ["Suspended"]}, WorkloadState.ACTIVE),
        ({"spec": {"suspend": True}}, WorkloadState.SUSPENDED),
        ({"conditions": ["Completed"]}, WorkloadState.COMPLETED),
        ({"spec": {"suspend": True}, "conditions": ["Failed"]}, WorkloadState.FAILED),
        ({"metadata": {"deletionTimestamp": "2026-11-01T12:00:00Z"}}, WorkloadState.DELETED),
        (
            {"conditions": ["Completed"], "metadata": {"deletionTimestamp": "2026-11-01T12:00:00Z"}},
            WorkloadState.COMPLETED,
        ),
    ],
    ids=["fresh", "resumed, condition late", "suspended", "completed", "failed", "deleted", "completed, then deleted"],
)
def test_the_state_of_a_jobset_follows_from_spec_conditions_and_deletion(
    parts: dict[str, Any], state: WorkloadState
) -> None:
    assert jobset_state(jobset(**parts)) is state


def test_a_condition_that_is_not_true_does_not_end_a_jobset() -> None:
    running = jobset()
    running["status"]["conditions"] = [{"type": "Completed", "status": "False"}]
    assert jobset_state(running) is WorkloadState.ACTIVE


@pytest.mark.parametrize(
    ("parts", "served"),
    [
        ({}, True),
        ({"spec": {"managedBy": "jobset.sigs.k8s.io/jobset-controller"}}, True),
        ({"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}}, False),
        ({"metadata": {"annotations": {OPTED_OUT: "true"}}}, False),
        ({"metadata": {"labels": {OPTED_OUT: "true"}}}, False),
        ({"metadata": {"annotations": {OPTED_OUT: "false"}}}, True),
    ],
    ids=["plain", "named controller", "another controller", "opted out", "opted out by label", "opted in"],
)
def test_a_jobset_is_served_unless_it_opted_out_or_has_another_controller(parts: dict[str, Any], served: bool) -> None:
    seen = read_jobset(jobset(**parts))
    assert seen is not None
    assert seen.served is served


def test_an_unschedulable_leader_waits() -> None:
    seen = translate.leader(pod(1))
    assert seen is not None
    assert seen.waiting
    assert (seen.workload, seen.workload_uid) == (WorkloadName("research", "llama"), "u-1")
    assert seen.place == Place("workers", 1)
    assert (seen.job, seen.node) == ("llama-workers-1", None)
    assert seen.hardware == Hardware(4, "tpu-v4-podslice", "2x2x4")


def test_a_leader_is_recognized_by_its_annotation_too() -> None:
    key = "batch.kubernetes.io/job-completion-index"
    assert translate.leader(pod(labels={key: None}, metadata={"annotations": {key: "0"}})) is not None


@pytest.mark.parametrize(
    "labels",
    [
        {"batch.kubernetes.io/job-completion-index": "1"},
        {"batch.kubernetes.io/job-completion-index": None},
        {"jobset.sigs.k8s.io/replicatedjob-name": None},
        {"jobset.sigs.k8s.io/job-index": None},
        {"jobset.sigs.k8s.io/job-index": "-1"},
        {"jobset.sigs.k8s.io/job-index": "1e3"},
        {"jobset.sigs.k8s.io/job-index": "9" * 5000},
    ],
)
def test_a_pod_that_is_no_leader_of_a_jobsets_job_is_ignored(labels: dict[str, str | None]) -> None:
    assert translate.leader(pod(labels=labels)) is None


@pytest.mark.parametrize(
    "parts",
    [
        {"status": {"phase": "Running"}},
        {"status": {"conditions": []}},
        {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}},
        {"status": {"conditions": [{"type": "PodScheduled", "status": "True"}]}},
        {"spec": {"schedulingGates": [{"name": "kueue.x-k8s.io/topology"}]}},
        {"spec": {"nodeName": "n-1"}},
        {"metadata": {"deletionTimestamp": "2026-11-01T12:00:00Z"}},
        OPTED_OUT_POD,
        {"labels": {OPTED_OUT: "true"}},
        {"spec": {"containers": [container(0)]}},
    ],
)
def test_a_leader_that_is_scheduled_or_requests_nothing_of_us_does_not_wait(parts: dict[str, Any]) -> None:
    seen = translate.leader(pod(**parts))
    assert seen is not None
    assert not seen.waiting


@pytest.mark.parametrize("selected", [{}, *({key: value} for key, value in SELECTOR.items())], ids=str)
def test_a_leader_that_selects_no_whole_slice_waits_so_that_it_is_told_why_there_is_none(selected: Json) -> None:
    seen = translate.leader(pod(spec={"nodeSelector": selected}))
    assert seen is not None
    assert seen.waiting


def test_the_hardware_of_a_leader_is_known_by_node_affinity_too() -> None:
    asked = [{"key": key, "operator": "In", "values": [value]} for key, value in SELECTOR.items()]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": asked}]}}
    seen = translate.leader(pod(spec={"nodeSelector": {}, "affinity": {"nodeAffinity": required}}))
    assert seen is not None
    assert seen.hardware == Hardware(4, "tpu-v4-podslice", "2x2x4")


@pytest.mark.parametrize(
    "key", ["cloud.google.com/compute-class", "cloud.google.com/gke-queued", "cloud.google.com/gke-flex-start"]
)
def test_a_leader_that_selects_gkes_own_provisioners_waits_with_its_selector(key: str) -> None:
    seen = translate.leader(pod(spec={"nodeSelector": {**SELECTOR, key: "true"}}))
    assert seen is not None
    assert seen.waiting
    assert (key, "true") in (seen.asks.node_selector or ())


@pytest.mark.parametrize(
    ("phase", "on"), [("Running", "n-1"), ("Pending", "n-1"), ("Succeeded", None), ("Failed", None)]
)
def test_a_leader_is_bound_to_its_node_until_it_ends(phase: str, on: str | None) -> None:
    seen = translate.leader(pod(spec={"nodeName": "n-1"}, status={"phase": phase, "conditions": []}))
    assert seen is not None
    assert seen.node == on


def test_a_node_of_ours_names_its_pool() -> None:
    seen = translate.host(node(attempt=3))
    assert seen is not None
    assert seen.pool == PoolKey(ClaimId("tpu-llama-0-aaaaaaaaaaaaa"), 3)
    assert (seen.workload_uid, seen.expected, seen.usable) == ("u-1", 4, True)


POOL = "tpu-llama-0-aaaaaaaaaaaaa-3"
OUR_KEYS = ("nodepool-manager", "tpu-slice-id", "tpu-slice-attempt", "tpu-slice-owner-uid")
REPLACED: Mapping[str, str | None] = {**dict.fromkeys(f"google.com/{key}" for key in OUR_KEYS), "team": "a"}


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param(REPLACED, id="all of ours are gone"),
        pytest.param({"google.com/tpu-slice-id": "tpu-gemma-0-bbbbbbbbbbbbb"}, id="another slice's"),
        pytest.param({"google.com/tpu-slice-attempt": "4"}, id="another attempt's"),
    ],
)
def test_a_host_is_its_pools_whatever_labels_people_give_that(labels: Mapping[str, str | None]) -> None:
    seen = translate.host(node(attempt=3, labels={**labels, "cloud.google.com/gke-nodepool": POOL}))
    assert seen is not None
    assert seen.pool == PoolKey(ClaimId("tpu-llama-0-aaaaaaaaaaaaa"), 3)
    assert seen.usable


@pytest.mark.parametrize("pool", ["default-pool", "tpu-llama-0-aaaaaaaaaaaaa", "tpu-llama-0-aaaaaaaaaaaaa-0", "-1", ""])
def test_a_host_without_our_labels_whose_pool_is_not_named_as_ours_is_ignored(pool: str) -> None:
    assert translate.host(node(labels={**REPLACED, "cloud.google.com/gke-nodepool": pool})) is None


def test_the_nodes_of_a_pool_are_listed_by_its_name() -> None:
    assert (
        translate.hosts_of(PoolKey(ClaimId("tpu-llama-0-aaaaaaaaaaaaa"), 3)) == f"cloud.google.com/gke-nodepool={POOL}"
    )


@pytest.mark.parametrize(
    "labels",
    [
        {"google.com/tpu-slice-id": None},
        {"google.com/tpu-slice-attempt": None},
        {"google.com/tpu-slice-attempt": "x"},
        {"google.com/tpu-slice-id": "llama"},
    ],
)
def test_another_node_is_ignored(labels: dict[str, str | None]) -> None:
    assert translate.host(node(labels=labels)) is None


@pytest.mark.parametrize(
    ("parts", "usable"),
    [
        ({}, True),
        ({"offers": "8"}, True),
        ({"ready": False}, False),
        ({"offers": "3"}, False),
        ({"offers": "0"}, False),
        ({"offers": ""}, False),
        ({"labels": {"cloud.google.com/gke-accelerator-count": None}, "offers": "0"}, False),
        ({"labels": {"cloud.google.com/gke-accelerator-count": None}, "offers": "1"}, True),
    ],
)
def test_a_host_is_usable_when_it_is_ready_and_offers_all_its_chips(parts: dict[str, Any], usable: bool) -> None:
    seen = translate.host(node(**parts))
    assert seen is not None
    assert seen.usable is usable


@pytest.mark.parametrize(
    ("label", "maintained"), [("ONGOING", True), ("PENDING", False), (None, False)], ids=["ongoing", "pending", "none"]
)
def test_a_host_is_maintained_while_gkes_label_says_so(label: str | None, maintained: bool) -> None:
    seen = translate.host(node(labels={"cloud.google.com/active-node-maintenance": label}))
    assert seen is not None
    assert (seen.maintained, seen.usable) == (maintained, True)


def test_a_host_that_is_being_deleted_is_not_usable() -> None:
    terminating = node()
    terminating["metadata"]["deletionTimestamp"] = "2026-11-01T12:00:00Z"
    seen = translate.host(terminating)
    assert seen is not None
    assert not seen.usable


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({}, 4),
        ({"cloud.google.com/gke-tpu-topology": "4x4x4"}, 16),
        ({"cloud.google.com/gke-tpu-topology": None}, None),
        ({"cloud.google.com/gke-accelerator-count": None}, None),
        ({"cloud.google.com/gke-accelerator-count": "0"}, None),
    ],
)
def test_the_hosts_of_a_slice_follow_from_topology_and_chips(
    labels: dict[str, str | None], expected: int | None
) -> None:
    seen = translate.host(node(labels=labels))
    assert seen is not None
    assert seen.expected == expected


def test_an_exclusive_host_is_not_usable_before_it_is_labeled() -> None:
    labels = {
        "google.com/tpu-slice-exclusive-nodes": "true",
        "google.com/tpu-provisioner-parent-namespace": "research",
        "google.com/tpu-provisioner-parent-name": "llama-workers-0",
    }
    bare = translate.host(node(labels=labels))
    assert bare is not None
    assert bare.unlabeled is not None
    assert not bare.usable
    labeled = node(labels=labels | {"alpha.jobset.sigs.k8s.io/namespaced-job": "research_llama-workers-0"})
    labeled["spec"] = bare.unlabeled["spec"]
    seen = translate.host(labeled)
    assert seen is not None
    assert (seen.unlabeled, seen.usable) == (None, True)


@pytest.mark.parametrize("cordoned", [True, False])
def test_a_cordoned_host_is_not_usable(cordoned: bool) -> None:
    seen = translate.host(node(0, spec={"unschedulable": cordoned}))
    assert seen is not None
    assert (seen.cordoned, seen.usable) == (cordoned, not cordoned)


NAMESPACED_JOB = "alpha.jobset.sigs.k8s.io/namespaced-job"
TAINT = {"key": "alpha.jobset.sigs.k8s.io/no-schedule", "value": "true", "effect": "NoSchedule"}
OTHER = {"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}
JOB = "research_llama-workers-0"
NO_LABELS: Mapping[str, str | None] = {}


def exclusive(number: int = 0, *taints: Json, version: int = 30, labels: Mapping[str, str | None] = NO_LABELS) -> Json:
    """Return a node of a pool with exclusive nodes."""
    base: dict[str, str | None] = {
        "google.com/tpu-slice-exclusive-nodes": "true",
        "google.com/tpu-provisioner-parent-namespace": "research",
        "google.com/tpu-provisioner-parent-name": "llama-workers-0",
    }
    made = node(number, labels={**base, **labels})
    made["metadata"]["resourceVersion"] = str(version)
    if taints:
        made["spec"]["taints"] = list(taints)
    return made


def test_an_exclusive_node_gets_label_and_taint_and_keeps_its_other_taints() -> None:
    assert missing_labels(exclusive(0, OTHER, version=77)) == {
        "metadata": {"resourceVersion": "77", "labels": {NAMESPACED_JOB: JOB}},
        "spec": {"taints": [OTHER, TAINT]},
    }


@pytest.mark.parametrize(
    ("made", "taints"),
    [
        (exclusive(0, TAINT), [TAINT]),
        (exclusive(0, labels={NAMESPACED_JOB: JOB}), [TAINT]),
        (exclusive(0, OTHER, TAINT, labels={NAMESPACED_JOB: "research_another"}), [OTHER, TAINT]),
        (exclusive(0, {**TAINT, "value": "other"}, OTHER, labels={NAMESPACED_JOB: JOB}), [OTHER, TAINT]),
        (exclusive(0, {**TAINT, "effect": "NoExecute"}), [{**TAINT, "effect": "NoExecute"}, TAINT]),
    ],
    ids=["taint alone", "label alone", "another's label", "another value", "another effect"],
)
def test_a_partly_labeled_node_gets_the_missing_label_and_taint(made: Json, taints: list[Json]) -> None:
    patch = missing_labels(made)
    assert patch is not None
    assert (patch["metadata"]["labels"], patch["spec"]["taints"]) == ({NAMESPACED_JOB: JOB}, taints)


@pytest.mark.parametrize(
    "made",
    [
        node(0),
        exclusive(0, labels={"google.com/tpu-slice-exclusive-nodes": "false"}),
        exclusive(0, {**TAINT, "timeAdded": "2026-11-01T12:00:00Z"}, OTHER, labels={NAMESPACED_JOB: JOB}),
        exclusive(0, labels={"google.com/tpu-provisioner-parent-name": None}),
        exclusive(0, labels={"google.com/tpu-provisioner-parent-name": "j" * 60}),
    ],
    ids=["no exclusive pool", "set to false", "labeled", "of no Job", "longer than a label may be"],
)
def test_other_nodes_are_left_alone(made: Json) -> None:
    assert missing_labels(made) is None


def test_a_host_is_usable_once_it_is_labeled() -> None:
    seen = [translate.host(exclusive(0)), translate.host(exclusive(0, TAINT, labels={NAMESPACED_JOB: JOB}))]
    assert [each.usable for each in seen if isinstance(each, Host)] == [False, True]


OURS = "projects/demo-project/locations/us-central1"


@pytest.mark.parametrize(
    ("provider", "counts"),
    [
        ("gce://demo-project/us-central1-c/tpu-llama-0-aaaaaaaaaaaaa-1-x7k2", True),
        ("gce://demo-project/us-central1-ai1a/tpu-llama-0-aaaaaaaaaaaaa-1-x7k2", True),
        ("gce://demo-project/us-central1-c/tpu-llama-0-aaaaaaaaaaaaa-2-x7k2", False),
        ("gce://demo-project/us-central1-c/tpu-llama-0-aaaaaaaaaaaaa-10-x7k2", False),
        ("gce://demo-project/us-central1-c/their-machine", False),
        ("gce://other-project/us-central1-c/tpu-llama-0-aaaaaaaaaaaaa-1-x7k2", False),
        ("gce://demo-project/europe-west4-b/tpu-llama-0-aaaaaaaaaaaaa-1-x7k2", False),
        ("aws:///us-east-1a/i-1", False),
        ("", False),
    ],
)
def test_in_a_self_managed_cluster_only_instances_of_the_pools_group_are_its_hosts(provider: str, counts: bool) -> None:
    found = node(0, spec={"providerID": provider})
    assert (translate.host(found, OURS) is not None) is counts
    assert translate.host(found) is not None, "GKE itself labels its nodes"
