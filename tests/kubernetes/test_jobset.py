"""JobSet and the kubelets beside Kubernetes' own API server, controllers and scheduler."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.local.clients.api import Api
from infra.local.clients.errors import ApiError
from infra.local.clients.labels import OURS
from infra.local.clients.objects import Object
from infra.local.jobset.installation import is_installed_by_others
from infra.local.jobset.manifests import CONFIGURATIONS, CRD
from tests.kubernetes.cluster import Cluster
from tests.local.clients.places import TEST, Place, namespace_for
from tests.local.clients.programs import found, items, program, run, set_ready, waited
from tests.local.jobset.builders import API, EXCLUSIVE, POOL, annotated, condition

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]
WEBHOOKS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Iterator[Api]:
    processes, kubeconfig = cluster.processes, cluster.plane.kubeconfig
    processes.wait_until_ready(*processes.start(program("jobset", kubeconfig), program("kubelet", kubeconfig)))
    connected = Api.of(kubeconfig)
    yield connected
    connected.close()
    for name in ("kubelet", "jobset"):
        processes.end(cluster.child(name))


class JobSets(Place):
    """A place for JobSets."""

    def jobset(self, replicas: int = 2, hosts: int = 2, pod: Object | None = None, **spec: object) -> Object:
        """Return a JobSet whose Jobs each want a pool of this place for themselves."""
        resources = {"limits": {"google.com/tpu": "4", "cpu": "1000m"}}
        containers = [{"name": "main", "image": "trainer:1", "resources": resources}]
        own = {"restartPolicy": "Never", "containers": containers, "nodeSelector": {TEST: self.name}}
        job = {"parallelism": hosts, "completions": hosts, "completionMode": "Indexed", "backoffLimit": 0}
        template = {"spec": job | {"template": (pod or {}) | {"spec": own}}}
        metadata = {"name": "train", "namespace": self.name, "annotations": {EXCLUSIVE: POOL}}
        jobs = [{"name": "slice", "groupName": "default", "replicas": replicas, "template": template}]
        return {"apiVersion": API, "kind": "JobSet", "metadata": metadata, "spec": {"replicatedJobs": jobs} | spec}

    def read(self) -> Object:
        return self.api.get("jobsets", self.name, "train")

    def phases(self) -> list[str]:
        return [pod["status"]["phase"] for pod in items(self.api, "pods", self.name)]

    def wait_for_phases(self, *phases: str) -> None:
        waited(lambda: sorted(self.phases()) == sorted(phases), f"pods {phases}")

    def wait_for_end(self, state: str) -> None:
        waited(lambda: self.read().get("status", {}).get("terminalState") == state, state)

    def pools(self, job: str) -> set[str]:
        """Return the pools in which the pods of a Job are."""
        return self.pools_with("job-name", job)

    def events(self, reason: str) -> list[Object]:
        return [event for event in items(self.api, "events", self.name) if event["reason"] == reason]


@pytest.fixture
def place(api: Api, request: pytest.FixtureRequest) -> JobSets:
    """A place of the test's own, with the account that pods need."""
    return JobSets(api, namespace_for(api, request.node.name))


def test_each_job_has_a_pool_for_itself_and_after_a_restart_it_completes(place: JobSets) -> None:
    place.add_pools("a", "b", "c")
    pod = annotated(run_seconds="5", fail_until_restart="1")
    place.api.create("jobsets", place.jobset(pod=pod, failurePolicy={"maxRestarts": 1}))
    place.wait_for_end("Completed")
    assert place.read()["status"]["restarts"] == 1
    assert condition(place.read(), "RestartingJobSet")["status"] == "False"
    pools = [place.pools(f"train-slice-{index}") for index in (0, 1)]
    assert [len(each) for each in pools] == [1, 1]
    assert pools[0] != pools[1]


def test_its_events_are_those_of_the_newer_api(place: JobSets) -> None:
    place.add_pools("a")
    place.api.create("jobsets", place.jobset(replicas=1, pod=annotated(run_seconds="5")))
    waited(lambda: place.events("AllJobsCompleted"), "the event")
    (event,) = place.events("AllJobsCompleted")
    assert event["eventTime"]
    assert (event["action"], event["reportingComponent"], event["source"]) == ("Reconciling", "jobset", {})
    assert (event["firstTimestamp"], event["lastTimestamp"]) == (None, None)


def test_it_is_suspended_and_resumed(place: JobSets) -> None:
    place.add_pools("a")
    place.api.create("jobsets", place.jobset(replicas=1, pod=annotated(run_seconds="600")))
    place.wait_for_phases("Running", "Running")
    place.api.patch("jobsets", place.name, "train", {"spec": {"suspend": True}})
    place.wait_for_phases()
    waited(lambda: condition(place.read(), "Suspended").get("status") == "True", "the condition")
    place.api.patch("jobsets", place.name, "train", {"spec": {"suspend": False}})
    place.wait_for_phases("Running", "Running")
    assert condition(place.read(), "Suspended")["reason"] == "ResumeJobs"


def test_it_takes_all_that_it_owns_with_it(place: JobSets) -> None:
    place.add_pools("a")
    place.api.create("jobsets", place.jobset(replicas=1, pod=annotated(run_seconds="600")))
    place.wait_for_phases("Running", "Running")
    place.api.delete("jobsets", place.name, "train")
    owned = ("pods", "jobs", "services")
    waited(lambda: not any(items(place.api, plural, place.name) for plural in owned), "the end of all")


def test_a_host_that_shuts_down_ends_its_pods_and_the_jobset_begins_anew_elsewhere(place: JobSets) -> None:
    place.add_pools("a", "b")
    created = place.jobset(replicas=1, pod=annotated(run_seconds="600"), failurePolicy={"maxRestarts": 1})
    place.api.create("jobsets", created)
    place.wait_for_phases("Running", "Running")
    (pool,) = place.pools("train-slice-0")
    shutting = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "node is shutting down"}
    for host in range(2):
        place.api.patch("nodes", None, f"{pool}-{host}", {"status": {"conditions": [shutting]}}, status=True)
    waited(lambda: place.read()["status"]["restarts"] == 1, "the restart")
    place.wait_for_phases("Running", "Running")
    assert place.pools("train-slice-0") == {f"{place.name}-{'b' if pool.endswith('a') else 'a'}"}


def test_a_job_that_cannot_be_created_ends_all_that_would_follow(place: JobSets) -> None:
    wrong = place.jobset(replicas=1)
    (job,) = wrong["spec"]["replicatedJobs"]
    bad = job["template"]["spec"] | {"backoffLimit": -1}
    wrong["spec"]["replicatedJobs"] += [
        {"name": "bad", "replicas": 2, "template": {"spec": bad}},
        job | {"name": "later"},
    ]
    place.api.create("jobsets", wrong)
    waited(lambda: any("series" in event for event in place.events("JobCreationFailed")), "a second refusal")
    (event,) = place.events("JobCreationFailed")
    first, second = event["message"].split("\n")
    assert first.startswith('job "train-bad-0" creation failed with error: Job.batch "train-bad-0" is invalid: ')
    assert second.startswith('job "train-bad-1" creation failed with error: ')
    assert [job["metadata"]["name"] for job in items(place.api, "jobs", place.name)] == ["train-slice-0"]
    assert "status" not in place.read()


def test_the_same_manifest_again_is_admitted_as_another_generation(place: JobSets) -> None:
    for generation in (1, 2):
        applied = place.api.apply("jobsets", place.jobset(suspend=True), manager="test")
        assert applied["metadata"]["generation"] == generation


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"managedBy": "nobody"}, 422, "must be a domain-prefixed path"),
        ({"ttlSecondsAfterFinished": "soon"}, 422, "in body must be of type integer"),
        ({"successPolicy": {"operator": "Most"}}, 422, 'Unsupported value: "Most": supported values: "All", "Any"'),
        ({"replicatedJobs": "many"}, 400, "the object cannot be read"),
        ({"volumeClaimPolicies": [{"templates": []}]}, 501, "not implemented locally"),
    ],
    ids=["a rule", "a type", "a choice", "another shape", "not covered"],
)
def test_what_cannot_run_is_refused(place: JobSets, change: Object, code: int, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        place.api.create("jobsets", place.jobset(**change))
    assert message in refused.value.message
    assert refused.value.code == code


def test_two_dependencies_of_one_name_are_refused(place: JobSets) -> None:
    wrong = place.jobset()
    (job,) = wrong["spec"]["replicatedJobs"]
    on = [{"name": "slice", "status": "Ready"}] * 2
    wrong["spec"]["replicatedJobs"].append(job | {"name": "work", "dependsOn": on})
    with pytest.raises(ApiError, match=r'dependsOn\[1\]: Duplicate value: {"name":"slice"}') as refused:
        place.api.create("jobsets", wrong)
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")


def test_leases_are_renewed_and_those_of_silent_nodes_are_not(place: JobSets) -> None:
    place.add_pools("a")
    living, silent = (f"{place.name}-a-{host}" for host in (0, 1))

    def renewal(node: str) -> str:
        lease = found(place.api, "leases", "kube-node-lease", node)
        return str(lease["spec"]["renewTime"]) if lease else ""

    waited(lambda: renewal(living) and renewal(silent), "the leases")
    set_ready(place.api, silent, "Unknown")
    before, last = renewal(living), renewal(silent)
    waited(lambda: renewal(living) != before, "a renewal")
    before = renewal(living)
    waited(lambda: renewal(living) != before, "another renewal")
    assert renewal(silent) == last


def test_nodes_of_others_are_not_touched(place: JobSets) -> None:
    name = f"{place.name}-other"
    place.api.create("nodes", {"metadata": {"name": name, "labels": {POOL: "other"}}})
    container = {"name": "main", "image": "i"}
    bound = {"nodeName": name, "containers": [container], "tolerations": [{"operator": "Exists"}]}
    place.api.create("pods", {"metadata": {"name": "theirs", "namespace": place.name}, "spec": bound})
    place.add_pools("a", hosts=1)
    ours = bound | {"nodeName": f"{place.name}-a-0"}
    place.api.create("pods", {"metadata": {"name": "ours", "namespace": place.name}, "spec": ours})
    waited(lambda: place.api.get("pods", place.name, "ours")["status"]["phase"] == "Running", "our pod")
    assert place.api.get("pods", place.name, "theirs")["status"]["phase"] == "Pending"
    assert found(place.api, "leases", "kube-node-lease", name) is None


def configured(api: Api) -> list[bool]:
    return [found(api, plural, None, CONFIGURATIONS) is not None for plural in WEBHOOKS]


def test_it_takes_its_webhooks_away_when_it_ends(cluster: Cluster, place: JobSets) -> None:
    running = cluster.child("jobset")
    assert configured(place.api) == [True, True]
    running.ask_to_end()
    assert running.ended(within=60)
    assert configured(place.api) == [False, False]
    cluster.processes.end(running)
    cluster.processes.wait_until_ready(*cluster.processes.start(running.program))
    assert configured(place.api) == [True, True]


def test_after_a_sudden_death_the_next_one_replaces_its_webhooks(cluster: Cluster, place: JobSets) -> None:
    killed = cluster.child("jobset")
    signal.pidfd_send_signal(killed.descriptor, signal.SIGKILL)
    assert killed.ended(within=60)
    with pytest.raises(ApiError, match="failed calling webhook"):
        place.api.create("jobsets", place.jobset(suspend=True))
    cluster.processes.end(killed)
    cluster.processes.wait_until_ready(*cluster.processes.start(killed.program))
    assert place.api.create("jobsets", place.jobset(suspend=True))["spec"]["successPolicy"] == {"operator": "All"}


def test_where_somebody_elses_jobset_is_it_does_not_start(cluster: Cluster, api: Api) -> None:
    (label,) = OURS
    api.patch("customresourcedefinitions", None, CRD, {"metadata": {"labels": {label: None}}})
    try:
        assert is_installed_by_others(api)
        said = run("jobset", cluster.plane.kubeconfig)
        assert (said.returncode, said.stderr) == (0, "")
        assert said.stdout == "This cluster has its own JobSet; ours is not started.\n"
    finally:
        api.patch("customresourcedefinitions", None, CRD, {"metadata": {"labels": dict(OURS)}})


@pytest.mark.parametrize("module", ["jobset", "kubelet"])
def test_a_cluster_that_does_not_answer_is_said(module: str, cluster: Cluster, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere.kubeconfig"
    nowhere.write_text(cluster.plane.kubeconfig.read_text().replace(cluster.plane.address, "https://127.0.0.1:1"))
    said = run(module, nowhere)
    assert said.returncode == 1
    assert "cannot run in this cluster" in said.stderr
    assert "Traceback" not in said.stderr
