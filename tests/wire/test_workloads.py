from collections.abc import Mapping
from typing import Any

import pytest

from tests.builders import a_job, settings
from tests.relay.objects import SELECTOR, Json, container, jobset, pod, replicated_job
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import (
    EXCLUSIVE,
    INJECT_SLICE_SELECTOR,
    SLICE_TOPOLOGY,
    Requirement,
    TemplateRequest,
    Toleration,
    WaitingLeader,
)
from tpu_slices.domain.planning.host_labels import TOPOLOGY
from tpu_slices.domain.planning.specs import SliceRequest, spec_for
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.wire.workloads import (
    BY_NODE_SELECTOR,
    OPTED_OUT,
    asks_for_tpu,
    beyond_template,
    leader_of,
    opted_out,
    request_of_pod,
    requests_of,
    volumes_of,
)

COPY_LABELS = "tpu-provisioner.cloud.google.com/copy-labels"
GIB = 1 << 30
ALWAYS = {"restartPolicy": "Always"}


def requesting(name: str = "main", *, limits: Json | None = None, **requests: Any) -> Json:
    """Return a container with these requests; `chips` are google.com/tpu."""
    amounts = {"google.com/tpu" if key == "chips" else key: amount for key, amount in requests.items()}
    return {"name": name, "resources": {"requests": amounts, **({"limits": limits} if limits else {})}}


def only_request(*, metadata: Json | None = None, **pod_spec: Any) -> TemplateRequest:
    """Return the one request of a JobSet whose template has this spec and this metadata."""
    job = replicated_job(**pod_spec)
    job["template"]["spec"]["template"]["metadata"] = metadata or {}
    (request,) = requests_of(jobset(spec={"replicatedJobs": [job]}))
    return request


def refusal(request: TemplateRequest, leader: WaitingLeader | None = None) -> Refusal:
    """Return why the domain refuses the request."""
    waiting = leader or WaitingLeader(replicated_job=request.replicated_job, job_index=0)
    known: ClusterSettings = settings()
    refusal = spec_for(SliceRequest(job=a_job(), request=request, leader=waiting, jobset_chips=16), known)
    assert isinstance(refusal, Refusal)
    return refusal


def test_every_field_of_a_template_is_read() -> None:
    spread = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-central2-b"]}
    named = {"key": "metadata.name", "operator": "NotIn", "values": ["n-1"]}
    term = {"matchExpressions": [spread, {"key": "pool", "operator": "Exists"}], "matchFields": [named]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    request = only_request(
        metadata={"labels": {"team": "vision"}, "annotations": {COPY_LABELS: "team", "other": "x"}},
        containers=[requesting(chips=4, cpu="100500m", memory="100Gi")],
        affinity={"nodeAffinity": required},
        tolerations=[{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}, {"key": "a", "value": "b"}],
    )
    assert request == TemplateRequest(
        replicated_job="workers",
        replicas=2,
        accelerator="tpu-v4-podslice",
        topology="2x2x4",
        chips_per_pod=4,
        node_selector=tuple(sorted(SELECTOR.items())),
        affinity=(
            (
                Requirement(key="topology.kubernetes.io/zone", operator="In", values=("us-central2-b",)),
                Requirement(key="pool", operator="Exists"),
                Requirement(key="metadata.name", operator="NotIn", values=("n-1",)),
            ),
        ),
        tolerations=(
            Toleration(key="spot", operator="Exists", effect="NoSchedule"),
            Toleration(key="a", operator="Equal", value="b"),
        ),
        cpu_milli=100_500,
        memory_bytes=100 * GIB,
        parallelism=1,
        completions=1,
        first_job=0,
        labels=(("team", "vision"),),
        requested_annotations=((COPY_LABELS, "team"),),
    )


def test_replicated_jobs_without_chips_have_no_request() -> None:
    driver = replicated_job("driver", 1, containers=[container(0)])
    (request,) = requests_of(jobset(spec={"replicatedJobs": [driver, replicated_job("workers", None)]}))
    assert (request.replicated_job, request.replicas) == ("workers", 1)
    assert not asks_for_tpu(jobset(spec={"replicatedJobs": [driver]}))


@pytest.mark.parametrize("section", ["labels", "annotations"])
def test_a_template_that_opted_out_has_no_request(section: str) -> None:
    job = replicated_job("theirs")
    job["template"]["spec"]["template"]["metadata"] = {section: {OPTED_OUT: "true"}}
    mixed = jobset(spec={"replicatedJobs": [job, replicated_job("ours")]})
    assert [request.replicated_job for request in requests_of(mixed)] == ["ours"]
    assert asks_for_tpu(jobset(spec={"replicatedJobs": [job]}))
    assert opted_out(jobset(metadata={section: {OPTED_OUT: "true"}}))
    assert not opted_out(jobset(metadata={section: {OPTED_OUT: "false"}}))


@pytest.mark.parametrize(
    ("pod_spec", "chips", "cpu", "memory"),
    [
        ({"containers": [requesting(chips=4, cpu="1", memory="1Gi")]}, 4, 1000, GIB),
        ({"containers": [requesting(chips="2", cpu="0.5"), requesting(chips="2", cpu="1500m")]}, 4, 2000, 0),
        ({"containers": [requesting(chips=4, cpu="0.5m"), requesting(cpu="0.1m")]}, 4, 1, 0),
        ({"containers": [requesting(limits={"google.com/tpu": 4, "cpu": 2, "memory": "1Gi"})]}, 4, 2000, GIB),
        ({"containers": [requesting(chips=4, cpu="1", limits={"google.com/tpu": "8", "cpu": "7"})]}, 4, 1000, 0),
        ({"containers": [requesting(chips=4)], "initContainers": [requesting(chips=8, cpu="3")]}, 8, 3000, 0),
        ({"containers": [requesting(chips=4)], "initContainers": [requesting(chips=1), requesting(chips=3)]}, 4, 0, 0),
        ({"containers": [requesting(chips=4)], "initContainers": [requesting(chips=2) | ALWAYS]}, 6, 0, 0),
        (
            {
                "containers": [requesting(chips=1)],
                "initContainers": [requesting(chips=2) | ALWAYS, requesting(chips=4)],
            },
            6,
            0,
            0,
        ),
        (
            {
                "containers": [requesting(chips=1)],
                "initContainers": [requesting(chips=4), requesting(chips=2) | ALWAYS],
            },
            4,
            0,
            0,
        ),
        ({"containers": [requesting(chips=4, cpu="1")], "overhead": {"cpu": "250m", "memory": "1Gi"}}, 4, 1250, GIB),
        ({"containers": [requesting(chips=4, cpu="1")], "resources": {"requests": {"cpu": "9"}}}, 4, 9000, 0),
        (
            {"containers": [requesting(chips=4, cpu="1")], "resources": {"limits": {"cpu": "9", "memory": "1Gi"}}},
            4,
            1000,
            GIB,
        ),
        ({"containers": [requesting(chips=4, memory="8000E")]}, 4, 0, (1 << 63) - 1),
    ],
    ids=[
        "one",
        "several",
        "rounded once, up",
        "a limit stands for a request",
        "a request counts, not its limit",
        "starting takes more than running",
        "one start after the other",
        "a sidecar runs on",
        "a sidecar beside a later start",
        "a sidecar after an earlier start",
        "overhead",
        "the pod's own request",
        "the pod's own limit",
        "no further than Kubernetes counts",
    ],
)
def test_a_pods_request_is_the_most_that_it_needs_at_one_time(
    pod_spec: Json, chips: int, cpu: int, memory: int
) -> None:
    request = only_request(**pod_spec)
    assert (request.chips_per_pod, request.cpu_milli, request.memory_bytes) == (chips, cpu, memory)


@pytest.mark.parametrize(
    ("pod_spec", "message"),
    [
        (
            {"containers": [requesting(chips="four")]},
            r'container main: resources\.requests\.google\.com/tpu: "four" is no',
        ),
        ({"containers": [requesting(chips="0.5")]}, "google.com/tpu: the containers request 0.5, which must be"),
        (
            {"containers": [requesting(chips=4, cpu="lots")]},
            r'replicatedJob workers: container main: .*cpu: "lots" is no',
        ),
        ({"overhead": {"memory": "-1"}}, r'spec\.overhead\.memory: "-1" is not a valid quantity'),
        ({"resources": {"requests": {"cpu": ""}}}, r"resources\.requests\.cpu: "),
        ({"nodeSelector": {"rack": 7}}, "7 must be a string: put it in quotes"),
        ({"tolerations": [{"value": True}]}, "True must be a string"),
        ({"containers": None}, "does not match the Kubernetes API"),
        ({"affinity": {"nodeAffinity": []}, "tolerations": ["all"]}, "replicatedJob workers: does not match the"),
    ],
)
def test_a_malformed_field_is_named(pod_spec: Json, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        only_request(**pod_spec)


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ({"kind": "JobSet"}, "spec.replicatedJobs: spec is missing"),
        ({"spec": {"replicatedJobs": [{}]}}, "spec.replicatedJobs: name is missing"),
        ({"spec": {"replicatedJobs": [{"name": "a"}]}}, "replicatedJob a: template is missing"),
        ({"spec": {"replicatedJobs": [replicated_job() | {"replicas": "2"}]}}, 'replicas: "2" is not a valid number'),
        ({"spec": {"replicatedJobs": [replicated_job() | {"replicas": -1}]}}, 'replicas: "-1" is not a valid number'),
    ],
)
def test_a_malformed_jobset_is_an_error_that_names_what_is_missing(manifest: Json, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        requests_of(manifest)


@pytest.mark.parametrize("required", [{"nodeSelectorTerms": [{}]}, {"nodeSelectorTerms": []}, {}])
def test_a_required_affinity_that_no_node_meets_is_refused(required: Json) -> None:
    request = only_request(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})
    assert "nodeSelectorTerms" in refusal(request).message


def test_a_preference_requires_nothing() -> None:
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}]}
    assert only_request(affinity={"nodeAffinity": preferred}).affinity == ()


@pytest.mark.parametrize(
    ("on_jobset", "on_job", "exclusive"),
    [
        ((), (), False),
        ((EXCLUSIVE, BY_NODE_SELECTOR), (), True),
        ((), (EXCLUSIVE, BY_NODE_SELECTOR), True),
        ((EXCLUSIVE,), (BY_NODE_SELECTOR,), True),
        ((BY_NODE_SELECTOR,), (EXCLUSIVE,), False),
        ((EXCLUSIVE,), (), False),
    ],
)
def test_nodes_are_exclusive_where_jobset_places_by_node_selector(
    on_jobset: tuple[str, ...], on_job: tuple[str, ...], exclusive: bool
) -> None:
    job = replicated_job()
    job["template"]["metadata"] = {"annotations": dict.fromkeys(on_job, "")}
    placed = jobset(spec={"replicatedJobs": [job]}, metadata={"annotations": dict.fromkeys(on_jobset, "")})
    assert [request.exclusive_nodes for request in requests_of(placed)] == [exclusive]


@pytest.mark.parametrize(
    ("fields", "pods"),
    [
        ({}, (1, 1)),
        ({"parallelism": 4}, (4, 4)),
        ({"parallelism": 2, "completions": 4}, (2, 4)),
        ({"completions": 4}, (1, 4)),
    ],
)
def test_the_pods_of_a_job_are_as_kubernetes_counts_them(fields: Json, pods: tuple[int, int]) -> None:
    job = replicated_job()
    job["template"]["spec"] |= fields
    (request,) = requests_of(jobset(spec={"replicatedJobs": [job]}))
    assert (request.parallelism, request.completions) == pods


@pytest.mark.parametrize("number", ["4", -1, 1 << 31, 1.5])
def test_a_number_of_pods_that_is_none_is_named(number: Any) -> None:
    job = replicated_job()
    job["template"]["spec"]["parallelism"] = number
    with pytest.raises(ValueError, match=f'replicatedJob workers: parallelism: "{number}" is not a valid number'):
        requests_of(jobset(spec={"replicatedJobs": [job]}))


def test_exclusive_placement_by_topology_has_its_key() -> None:
    job = replicated_job()
    placed = jobset(spec={"replicatedJobs": [job]}, metadata={"annotations": {EXCLUSIVE: "rack"}})
    assert [request.exclusive_topology for request in requests_of(placed)] == ["rack"]
    placed["metadata"]["annotations"][BY_NODE_SELECTOR] = "true"
    assert [request.exclusive_topology for request in requests_of(placed)] == [""]


@pytest.mark.parametrize("section", ["labels", "annotations"])
def test_the_marks_of_slices_that_gke_forms_are_read_of_job_and_pod(section: str) -> None:
    job = replicated_job()
    job["template"]["metadata"] = {section: {INJECT_SLICE_SELECTOR: "true"}}
    job["template"]["spec"]["template"]["metadata"] = {"annotations": {SLICE_TOPOLOGY: "2x4"}}
    (request,) = requests_of(jobset(spec={"replicatedJobs": [job]}))
    assert request.slicing == ((SLICE_TOPOLOGY, "2x4"), (INJECT_SLICE_SELECTOR, "true"))


def by_affinity(*terms: Mapping[str, str]) -> TemplateRequest:
    """Return the request of a template that requires one of these sets of labels of its node, and selects nothing."""
    expressions = [
        {"matchExpressions": [{"key": key, "operator": "In", "values": [value]} for key, value in term.items()]}
        for term in terms
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": expressions}}
    return only_request(nodeSelector={}, affinity={"nodeAffinity": required})


def test_accelerator_and_topology_may_be_required_by_node_affinity() -> None:
    request = by_affinity(SELECTOR, {**SELECTOR, "team": "a"})
    assert (request.accelerator, request.topology) == ("tpu-v4-podslice", "2x2x4")
    either = by_affinity(SELECTOR, {**SELECTOR, TOPOLOGY: "4x4x4"})
    assert (either.accelerator, either.topology) == ("tpu-v4-podslice", None)
    assert by_affinity(SELECTOR, {"team": "a"}).accelerator is None


def test_local_disk_and_what_no_tpu_host_offers_are_read() -> None:
    wanted = {"google.com/tpu": 4, "ephemeral-storage": "10Gi", "hugepages-2Mi": "1Gi", "nvidia.com/gpu": "0k"}
    other = {"networking.gke.io.networks/vpc.IP": 1}
    request = only_request(containers=[{"name": "main", "resources": {"limits": wanted, "requests": other}}])
    assert (request.ephemeral_bytes, request.unoffered) == (10 * GIB, ("hugepages-2Mi",))


def test_a_leader_pod_alone_requests_one_slice() -> None:
    annotations = {EXCLUSIVE: "cloud.google.com/gke-nodepool", BY_NODE_SELECTOR: "true"}
    request = request_of_pod(pod(metadata={**pod()["metadata"], "annotations": annotations}))
    assert (request.replicated_job, request.replicas, request.chips_per_pod) == ("workers", 1, 4)
    assert (request.accelerator, request.exclusive_nodes) == ("tpu-v4-podslice", True)


def test_the_jobs_of_a_jobset_are_numbered_over_all_its_replicated_jobs() -> None:
    driver = replicated_job("driver", 2, containers=[container(0)])
    jobs = [replicated_job("a", 3), driver, replicated_job("b", None), replicated_job("c", 4)]
    found = requests_of(jobset(spec={"replicatedJobs": jobs}))
    assert {each.replicated_job: each.first_job for each in found} == {"a": 0, "b": 5, "c": 6}


def test_beyond_what_is_a_number_they_have_none() -> None:
    many = replicated_job("driver", 1_000_000_000, containers=[container(0)])
    (request,) = requests_of(jobset(spec={"replicatedJobs": [many, replicated_job("workers", 1)]}))
    assert request.first_job is None


@pytest.mark.parametrize(
    ("index", "of_all", "first"), [(1, "4", 3), (1, None, None), (1, "x", None), (4, "1", None), (1, "9" * 10, None)]
)
def test_a_leader_pod_alone_says_where_its_replicated_job_begins(
    index: int, of_all: str | None, first: int | None
) -> None:
    request = request_of_pod(pod(index, labels={"jobset.sigs.k8s.io/job-global-index": of_all}))
    assert request.first_job == first


def test_a_leader_has_its_place_its_selector_and_what_admission_added() -> None:
    leader = leader_of(pod(3, spec={"nodeSelector": {**SELECTOR, "job-key": "k"}}, labels={"team": "vision"}))
    assert (leader.replicated_job, leader.job_index) == ("workers", 3)
    assert leader.node_selector == tuple(sorted({**SELECTOR, "job-key": "k"}.items()))
    request = only_request(metadata={"labels": {"team": "vision", "jobset.sigs.k8s.io/job-index": "0"}})
    added = dict(beyond_template(leader, request).labels)
    assert "team" not in added
    assert added["jobset.sigs.k8s.io/job-index"] == "3"


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"jobset.sigs.k8s.io/job-index": None}, "Pod: jobset.sigs.k8s.io/job-index is missing"),
        ({"jobset.sigs.k8s.io/job-index": "x"}, 'label jobset.sigs.k8s.io/job-index: "x" is not a valid index'),
        ({"jobset.sigs.k8s.io/replicatedjob-name": None}, "Pod: jobset.sigs.k8s.io/replicatedjob-name is missing"),
    ],
)
def test_a_pod_without_a_place_is_an_error(labels: dict[str, str | None], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        leader_of(pod(labels=labels))


def test_a_pods_volume_claims_are_listed_once() -> None:
    volumes = [
        {"name": "b", "persistentVolumeClaim": {"claimName": "scratch"}},
        {"name": "a", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}},
        {"name": "again", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "own", "ephemeral": {}},
        {"name": "config", "configMap": {"name": "c"}},
    ]
    assert volumes_of(pod(spec={"volumes": volumes})) == ("data", "scratch")
    assert volumes_of(pod()) == ()
