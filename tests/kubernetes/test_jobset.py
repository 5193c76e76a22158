"""JobSet's own controller and our kubelets beside Kubernetes' own API server, controllers and scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.kubernetes.cluster import Cluster, with_controller
from tpu_standins.clients.api import Api
from tpu_standins.clients.objects import Object
from tpu_standins.testing.jobsets import API, EXCLUSIVE, POOL, annotated
from tpu_standins.testing.parts import found, items, program, run, waited
from tpu_standins.testing.places import TEST, Place, namespace_for
from tpu_standins.testing.waiting import until

CRD = "jobsets.jobset.x-k8s.io"
pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Iterator[Api]:
    processes, kubeconfig = cluster.processes, cluster.plane.kubeconfig
    with with_controller(cluster), closing(Api.of(kubeconfig)) as connected:
        processes.wait_until_ready(*processes.start(program("kubelet", kubeconfig)))
        yield connected
        processes.end(cluster.child("kubelet"))


class JobSets(Place):
    """A place for JobSets."""

    def jobset(self, pod: Object | None = None, **spec: object) -> Object:
        """Return a JobSet whose Job wants a pool of this place for itself."""
        resources = {"limits": {"google.com/tpu": "4", "cpu": "1000m"}}
        containers = [{"name": "main", "image": "trainer:1", "resources": resources}]
        own = {"restartPolicy": "Never", "containers": containers, "nodeSelector": {TEST: self.name}}
        job = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "backoffLimit": 0}
        template = {"spec": job | {"template": (pod or {}) | {"spec": own}}}
        metadata = {"name": "train", "namespace": self.name, "annotations": {EXCLUSIVE: POOL}}
        jobs = [{"name": "slice", "groupName": "default", "replicas": 1, "template": template}]
        return {"apiVersion": API, "kind": "JobSet", "metadata": metadata, "spec": {"replicatedJobs": jobs} | spec}

    def events(self, reason: str) -> list[Object]:
        return [event for event in items(self.api, "events", self.name) if event["reason"] == reason]


@pytest.fixture
def place(api: Api, request: pytest.FixtureRequest) -> JobSets:
    """A place of the test's own, with the account that pods need."""
    return JobSets(api, namespace_for(api, request.node.name))


def test_its_events_are_those_of_the_newer_api(place: JobSets) -> None:
    place.add_pools("a")
    place.api.create("jobsets", place.jobset(pod=annotated(run_seconds="1")))
    waited(lambda: place.events("AllJobsCompleted"), "the event")
    (event,) = place.events("AllJobsCompleted")
    assert event["eventTime"]
    assert (event["action"], event["reportingComponent"], event["source"]) == ("Reconciling", "jobset", {})
    assert (event["firstTimestamp"], event["lastTimestamp"]) == (None, None)


def test_the_same_manifest_again_is_admitted_as_another_generation(place: JobSets) -> None:
    for generation in (1, 2):
        applied = place.api.apply("jobsets", place.jobset(suspend=True), manager="test")
        assert applied["metadata"]["generation"] == generation


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


def test_the_lease_of_a_host_is_renewed_again_and_again(place: JobSets) -> None:
    place.add_pools("a", hosts=1)

    def renewed(after: str) -> str:
        lease = found(place.api, "leases", "kube-node-lease", f"{place.name}-a-0")
        time = str(lease["spec"]["renewTime"]) if lease else ""
        return time if time > after else ""

    first = until(lambda: renewed(""), "its lease")
    second = until(lambda: renewed(first), "a renewal")
    until(lambda: renewed(second), "another renewal")


def test_ours_does_not_start_beside_another_api_server_than_ours(cluster: Cluster, api: Api) -> None:
    before = api.get("customresourcedefinitions", None, CRD)["metadata"]
    said = run("jobset", cluster.plane.kubeconfig)
    assert (said.returncode, said.stdout) == (1, "")
    assert "JobSet cannot run in this cluster: it is not the embedded API server" in said.stderr
    assert api.get("customresourcedefinitions", None, CRD)["metadata"]["resourceVersion"] == before["resourceVersion"]


@pytest.mark.parametrize("module", ["jobset", "kubelet"])
def test_a_cluster_that_does_not_answer_is_said(module: str, cluster: Cluster, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere.kubeconfig"
    nowhere.write_text(cluster.plane.kubeconfig.read_text().replace(cluster.plane.address, "https://127.0.0.1:1"))
    said = run(module, nowhere)
    assert said.returncode == 1
    assert "cannot run in this cluster" in said.stderr
    assert "Traceback" not in said.stderr
