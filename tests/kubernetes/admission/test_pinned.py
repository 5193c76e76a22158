"""Pods of the real controllers under the admission policy: each workload is whole on its own slices, and alone there.

Kubernetes' own API server, controllers and scheduler, and the controllers of JobSet and LeaderWorkerSet. Nothing keeps
the pods together but the policy; nodes are added while they wait, with the labels that the functions give a slice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing

import pytest

from tests.builders import a_job, a_spec, an_owner
from tests.infra.admission.pods import of_jobset
from tests.infra.admission.settings import MANIFEST
from tests.kubernetes.admission.created import created, placement_of
from tests.kubernetes.cluster import Cluster, with_controller
from tpu_slices.domain.model.slices import OwnerKind, WorkloadJob, WorkloadUid
from tpu_slices.domain.planning.keys import KEY_LABEL, key_of
from tpu_slices.domain.planning.pool_labels import labels_of
from tpu_standins.clients.api import Api
from tpu_standins.clients.objects import Object
from tpu_standins.controllers.catalogue import JOBSET, LWS
from tpu_standins.testing.parts import POOL, add_node, items, program, waited
from tpu_standins.testing.places import TEST, Place, namespace_for

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]
STATIC = "static"
BEFORE = 3
"""The Jobs of each JobSet before those with slices."""
IDLE = {"name": "idle", "image": "idle:1"}


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Iterator[Api]:
    processes, kubeconfig = cluster.processes, cluster.plane.kubeconfig
    assert cluster.kubectl("apply", "--server-side", "-f", str(MANIFEST)).code == 0
    with with_controller(cluster, JOBSET), with_controller(cluster, LWS), closing(Api.of(kubeconfig)) as connected:
        processes.wait_until_ready(*processes.start(program("kubelet", kubeconfig)))
        yield connected
        for plural in ("deployments", "jobsets", "leaderworkersets"):
            for each in connected.list(plural)["items"]:
                connected.delete(plural, each["metadata"]["namespace"], each["metadata"]["name"])
        waited(lambda: not connected.list("leaderworkersets")["items"], "the end of all LeaderWorkerSets")
        waited(lambda: not connected.list("deployments")["items"], "the end of all Deployments")
        processes.end(cluster.child("kubelet"))
    cluster.unpin()


class Pinned(Place):
    """A place for workloads of slices of two hosts."""

    def pod(self) -> Object:
        """Return a template that selects nothing but the shape of its hosts."""
        resources = {"limits": {"google.com/tpu": "4"}}
        containers = [{"name": "main", "image": "trainer:1", "resources": resources}]
        selector = {TEST: self.name}
        return {"spec": {"restartPolicy": "Never", "containers": containers, "nodeSelector": selector}}

    def jobset(self, name: str, jobs: int) -> str:
        """Create a JobSet of as many Jobs; return its UID."""
        job = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "backoffLimit": 0}
        template = {"spec": job | {"template": self.pod()}}
        driver = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [IDLE]}}}}
        replicated = [
            {"name": "driver", "groupName": "default", "replicas": BEFORE, "template": driver},
            {"name": "slice", "groupName": "default", "replicas": jobs, "template": template},
        ]
        return self._created("jobsets", name, {"replicatedJobs": replicated})

    def group(self, name: str) -> str:
        template = self.pod()
        del template["spec"]["restartPolicy"]
        groups = {"size": 2, "workerTemplate": {"metadata": {}, **template}}
        return self._created("leaderworkersets", name, {"replicas": 1, "leaderWorkerTemplate": groups})

    def job(self, name: str) -> str:
        job = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "template": self.pod()}
        return self._created("jobs", name, job)

    def deployment(self, name: str) -> None:
        template = self.pod()
        del template["spec"]["restartPolicy"]
        labels = {"app": name}
        template["metadata"] = {"labels": labels}
        body = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
        self._created("deployments", name, body)

    def _created(self, plural: str, name: str, spec: Object) -> str:
        metadata = {"name": name, "namespace": self.name}
        uid: str = self.api.create(plural, {"metadata": metadata, "spec": spec})["metadata"]["uid"]
        return uid

    def add_slice(self, pool: str, labels: Mapping[str, str]) -> None:
        """Add two hosts with labels."""
        for host in range(2):
            node = f"{self.name}-{pool}-{host}"
            add_node(self.api, node, f"{self.name}-{pool}", **{**labels, TEST: self.name})

    def with_chips(self) -> list[Object]:
        pods = items(self.api, "pods", self.name)
        return [pod for pod in pods if pod["spec"]["containers"][0]["name"] != IDLE["name"]]

    def users(self) -> dict[str, set[str]]:
        """Return by pool, without the namespace, the names of the workloads and groups whose pods are bound there."""
        found = defaultdict[str, set[str]](set)
        for pod in self.with_chips():
            node = pod["spec"].get("nodeName")
            if node is not None:
                pool = self.api.get("nodes", None, node)["metadata"]["labels"][POOL]
                found[pool.removeprefix(f"{self.name}-")].add(_user(pod))
        return dict(found)


def _user(pod: Object) -> str:
    labels = pod["metadata"]["labels"]
    for label in ("batch.kubernetes.io/job-name", "leaderworkerset.sigs.k8s.io/name", "app"):
        if label in labels:
            name: str = labels[label]
            return name
    raise AssertionError(labels)


@pytest.fixture
def place(api: Api, request: pytest.FixtureRequest) -> Pinned:
    return Pinned(api, namespace_for(api, request.node.name))


def a_slice(place: Pinned, kind: OwnerKind, name: str, uid: str, index: int = 0) -> dict[str, str]:
    """Return the labels that the functions give to the hosts of the slice of a Job or group."""
    job: WorkloadJob = a_job(
        owner=an_owner(name, namespace=place.name, kind=kind, uid=WorkloadUid(uid)),
        replicated_job="slice" if kind is OwnerKind.JOBSET else "",
        job_index=index,
    )
    return labels_of(job, 1, a_spec(key=key_of(job, BEFORE)))


def is_placed(cluster: Cluster) -> bool:
    """Return whether a new pod would be pinned."""
    pod, made = of_jobset(), created(cluster, of_jobset()).object
    return made is not None and placement_of(made) != placement_of(pod)


def test_every_workload_is_whole_on_its_own_slices_and_others_are_on_none_of_them(place: Pinned) -> None:
    place.deployment("web")
    uids = {name: place.jobset(name, 2) for name in ("one", "two", "three")}
    slices = {
        f"{name}-slice-{index}": a_slice(place, OwnerKind.JOBSET, name, uid, index)
        for name, uid in uids.items()
        for index in (0, 1)
    }
    slices["vllm"] = a_slice(place, OwnerKind.LEADER_WORKER_SET, "vllm", place.group("vllm"))
    slices["alone"] = a_slice(place, OwnerKind.JOB, "alone", place.job("alone"))
    assert len({labels[KEY_LABEL] for labels in slices.values()}) == 8

    for name, labels in slices.items():
        place.add_slice(name, labels)
    place.add_slice(STATIC, {})

    def bound() -> int:
        return sum(1 for pod in place.with_chips() if pod["spec"].get("nodeName"))

    waited(lambda: bound() == 2 * len(slices) + 2, "all pods that have hosts")
    assert place.users() == {**{name: {name} for name in slices}, STATIC: {"web"}}


def test_a_policy_that_is_taken_away_and_applied_again_disturbs_no_pod_that_runs(
    cluster: Cluster, place: Pinned
) -> None:
    place.add_slice("first", a_slice(place, OwnerKind.JOB, "first", place.job("first")))

    def nodes() -> dict[str, str]:
        """Return by UID where pods are bound."""
        pods = place.with_chips()
        return {pod["metadata"]["uid"]: pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}

    waited(lambda: len(nodes()) == 2, "the pods of the first")
    before = nodes()
    assert cluster.kubectl("delete", "-f", str(MANIFEST)).code == 0
    waited(lambda: not is_placed(cluster), "the policy to count no more")
    assert cluster.kubectl("apply", "--server-side", "-f", str(MANIFEST)).code == 0
    waited(lambda: is_placed(cluster), "the policy to count again")
    place.add_slice("second", a_slice(place, OwnerKind.JOB, "second", place.job("second")))
    waited(lambda: len(nodes()) == 4, "the pods of the second")
    assert before.items() <= nodes().items()
    assert place.users() == {"first": {"first"}, "second": {"second"}}
