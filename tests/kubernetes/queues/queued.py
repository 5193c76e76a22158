"""Kueue's own controller beside JobSet's on a control plane, and JobSets that wait in its queues. No kubelet runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from infra.local.plan import REPOSITORY
from tests.cluster.asking import done, path
from tests.cluster.servers import with_jobsets
from tests.kubernetes.cluster import Cluster, started, with_controller
from tpu_standins.controllers.catalogue import KUEUE, built
from tpu_standins.controllers.installing import install_kinds
from tpu_standins.kubernetes.control_plane import ControlPlane
from tpu_standins.kubernetes.programs import Programs
from tpu_standins.prerequisites import Tools
from tpu_standins.testing.waiting import until

Json = dict[str, Any]
API = "/apis/kueue.x-k8s.io/v1beta2"
QUEUE_LABEL, PRIORITY_LABEL = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
ACCELERATOR, TOPOLOGY = "cloud.google.com/gke-tpu-accelerator", "cloud.google.com/gke-tpu-topology"
[EXAMPLE, _] = yaml.safe_load_all((REPOSITORY / "examples" / "kueue" / "jobsets.yaml").read_text())
ENDS = ("Completed", "Failed")


@contextmanager
def a_cluster(programs: Programs, tools: Tools, folder: Path) -> Iterator[Cluster]:
    """Start a control plane that knows the kinds of both controllers, and JobSet's."""

    def with_kinds(plane: ControlPlane) -> None:
        with_jobsets(plane)
        install_kinds(built(KUEUE, os.environ), plane.kubeconfig)

    with started(programs, tools, folder, with_kinds) as cluster, with_controller(cluster):
        yield cluster


def with_kueue(cluster: Cluster, configuration: Path | None = None) -> Any:
    """Run Kueue within the block, with its project's configuration or another one."""
    return with_controller(cluster, KUEUE, configuration)


def applied(cluster: Cluster, *manifests: Json) -> None:
    """Apply manifests, which Kueue's webhooks judge."""
    said = cluster.apply("-f", "-", stdin=yaml.safe_dump_all(manifests))
    assert said.code == 0, said.error


@dataclass(frozen=True)
class Team:
    """A namespace with a queue, and its JobSets."""

    cluster: Cluster
    namespace: str = "default"
    queue: str = "team-a"

    def submit(self, name: str, *, jobs: int = 1, priority: str = "", **pod: Any) -> None:
        """Create a JobSet of so many slices of 16 chips on 4 hosts; `pod` changes its pods, `selector` their hosts."""
        labels = {QUEUE_LABEL: self.queue} | ({PRIORITY_LABEL: priority} if priority else {})
        body = a_jobset(name, labels, jobs, **pod)
        done(self.cluster.api.post(path("jobsets", self.namespace), body))

    def workload(self, jobset: str) -> Json:
        """Return a JobSet's Workload; empty while there is none."""
        found = self.cluster.api.read(f"{API}/namespaces/{self.namespace}/workloads")["items"]
        return next((one for one in found if one["metadata"]["ownerReferences"][0]["name"] == jobset), {})

    def condition(self, jobset: str, kind: str) -> Json:
        """Return a condition of a JobSet's Workload; empty while it has none of this type."""
        conditions = self.workload(jobset).get("status", {}).get("conditions", [])
        return next((one for one in conditions if one["type"] == kind), {})

    def holds(self, jobset: str, kind: str) -> bool:
        return self.condition(jobset, kind).get("status") == "True"

    def flavor(self, jobset: str) -> str:
        """Return the flavor that a JobSet was admitted to."""

        def admitted() -> str:
            status = self.workload(jobset).get("status", {})
            holds = {each["type"] for each in status.get("conditions", []) if each["status"] == "True"}
            if "Admitted" not in holds or "admission" not in status:
                return ""
            (assigned,) = status["admission"]["podSetAssignments"]
            return str(assigned["flavors"]["google.com/tpu"])

        return until(admitted, lambda: f"{jobset} to be admitted, not {self.workload(jobset)}")

    def suspended(self, jobset: str) -> bool:
        return self.cluster.api.read(path("jobsets", self.namespace, jobset))["spec"].get("suspend") is True

    def pods(self, jobset: str) -> list[Json]:
        labels = f"jobset.sigs.k8s.io/jobset-name={jobset}"
        found: list[Json] = self.cluster.api.read(path("pods", self.namespace), labelSelector=labels)["items"]
        return found

    def runs(self, jobset: str, pods: int = 4) -> None:
        """Wait until a JobSet has its pods, which no host takes."""
        until(lambda: len(self.pods(jobset)) == pods, lambda: f"{pods} pods of {jobset}: {self.workload(jobset)}")

    def waits(self, jobset: str, text: str) -> None:
        """Wait until a JobSet has no quota, with this message; it has no pods then."""

        def told() -> bool:
            reserved = self.condition(jobset, "QuotaReserved")
            return (reserved.get("status"), text in reserved.get("message", "")) == ("False", True)

        until(told, lambda: f"{jobset} to wait: {text}, not {self.workload(jobset)}")
        assert self.suspended(jobset)
        until(lambda: self.pods(jobset) == [], "no pods")

    def evicted(self, jobset: str, reason: str) -> None:
        """Wait until an Event says that Kueue evicted a JobSet's Workload; Kueue may have admitted it again since."""
        name = until(lambda: self.workload(jobset), f"the Workload of {jobset}")["metadata"]["name"]
        about = f"involvedObject.kind=Workload,involvedObject.name={name}"

        def told() -> list[str]:
            found = self.cluster.api.read(path("events", self.namespace), fieldSelector=about)["items"]
            return [each["reason"] for each in found]

        until(lambda: f"EvictedDueTo{reason}" in told(), lambda: f"{jobset} evicted for {reason}: {told()}")

    def succeeds(self, jobset: str) -> None:
        """Let a JobSet's pods end."""
        for pod in self.pods(jobset):
            name = pod["metadata"]["name"]
            done(
                self.cluster.api.patch(path("pods", self.namespace, name, "status"), {"status": {"phase": "Succeeded"}})
            )
        until(lambda: self.holds(jobset, "Finished"), f"the end of {jobset}")

    def remove(self, *jobsets: str) -> None:
        for each in jobsets:
            done(self.cluster.api.delete(path("jobsets", self.namespace, each)))
        until(lambda: not any(self.workload(name) for name in jobsets), "no Workloads")

    def clear(self) -> None:
        """Remove what a test left, so that the next one has the queue for itself."""
        found = self.cluster.api.read(path("jobsets", self.namespace))["items"]
        self.remove(*(each["metadata"]["name"] for each in found))


def a_jobset(
    name: str, labels: dict[str, str], jobs: int = 1, hosts: int = 4, selector: dict[str, str] | None = None, **pod: Any
) -> Json:
    """Return the example's JobSet, by another name, with other labels and pods."""
    [replicated] = EXAMPLE["spec"]["replicatedJobs"]
    job = replicated["template"]["spec"]
    asked = job["template"]["spec"] | {"nodeSelector": job["template"]["spec"]["nodeSelector"] | (selector or {})} | pod
    spec = job | {"parallelism": hosts, "completions": hosts, "template": {"spec": asked}}
    made = replicated | {"replicas": jobs, "template": {"spec": spec}}
    metadata = {"name": name, "labels": labels}
    return {**EXAMPLE, "metadata": metadata, "spec": EXAMPLE["spec"] | {"replicatedJobs": [made]}}
