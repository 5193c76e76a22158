"""The training environment, as far as its builds can see it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tests.infra.builds.cloud import CLUSTER, Cloud
from tests.infra.builds.played import Call, Reply

SLICE = {"google.com/tpu-slice-id": "s-1"}
FLAVOR = {
    "accelerator": "tpu-v4-podslice",
    "capacity": "on_demand",
    "hosts": 4,
    "chips_per_host": 4,
    "slices": 2,
    "node_labels": {"cloud.google.com/gke-tpu-accelerator": "tpu-v4-podslice"},
    "node_taints": [{"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}],
}


@dataclass
class Training(Cloud):
    region: ClassVar[str] = "us-central2"
    cluster: ClassVar[str] = "trainer"
    bucket: ClassVar[str] = "google_storage_bucket.artifacts"
    made: ClassVar[dict[str, list[str]]] = {
        "infrastructure": ["google_compute_network.network", CLUSTER, "google_storage_bucket.artifacts"],
        "configuration": ['kubernetes_namespace_v1.training["tpu-training"]', "helm_release.kueue"],
    }
    defaults: ClassVar[dict[str, dict[str, Any]]] = {"configuration": {"tpu_namespace": "tpu-training"}}

    jobsets: set[str] = field(default_factory=set)
    queues: bool = False
    """Whether Kueue is there."""
    stopped: bool = False
    """Whether its queues are."""
    suspended: bool = False
    """Whether the JobSets are."""
    admitted: int = 0
    bought: bool = True
    """Whether the provisioner releases slices of JobSets that are gone."""
    flavors: dict[str, Any] = field(default_factory=lambda: {"v4": FLAVOR})
    defaulted: str = "true Indexed"
    report: str = "16 devices, 4 here"
    ends: str = "Completed"

    def outputs(self, root: str) -> dict[str, Any]:
        if root == "configuration":
            return {"local_queues": {"tpu-training": "tpu-training"}}
        chips = sum(each["slices"] * each["hosts"] * each["chips_per_host"] for each in self.flavors.values())
        return {"flavors": self.flavors, "chips": chips, "provisioner_settings": "zone: us-central2-b\n"}

    def applied(self, root: str) -> None:
        if root == "infrastructure":
            self.status, self.compute["networks"] = "RUNNING", ["training"]
        else:
            self.queues = True

    def destroyed(self, root: str) -> None:
        if root == "configuration":
            assert self.status == "RUNNING", "the cluster does not answer"
            assert not self.jobsets, "a namespace waits for finalizers that nobody takes away any more"
            self.queues = self.stopped = self.suspended = False
            return
        assert not self.states["configuration"], "the configuration would be lost"
        assert SLICE not in self.pools.values(), "a slice is orphaned"
        self.status, self.compute["networks"] = "", []

    def answers(self, said: str) -> Iterator[tuple[str, str]]:
        yield "get --raw /readyz", "ok"
        yield "patch --local", '{"kind": "JobSet"}'
        yield "create --dry-run=server", self.defaulted
        yield "label clusterqueues --all .*--dry-run=server", "labeled"
        yield "wait (clusterqueues|localqueues) --all", "condition met"
        yield "get (clusterqueues|localqueues) --all-namespaces", "tpu-training: it points to no ClusterQueue"
        yield "admittedWorkloads", str(self.admitted)
        yield from self._jobset(said)
        yield from self._draining(said)

    def _jobset(self, said: str) -> Iterator[tuple[str, str]]:
        if "kubectl create --filename" in said:
            assert not self.stopped
            self.jobsets.add("smoke-check")
        if "delete jobset smoke-check" in said:
            self.jobsets.discard("smoke-check")
        yield "create --filename build/smoke/jobset.json", "created"
        yield "delete jobset smoke-check", "deleted"
        yield "get jobset smoke-check", f"Suspended {self.ends}"
        yield "logs .*--tail=-1", "\n".join(["noise", *[self.report] * 4])
        yield "describe jobset|get workloads,pods|get events", "what is known of it"

    def _draining(self, said: str) -> Iterator[tuple[str, str]]:
        yield "get customresourcedefinitions leaderworkersets", ""
        yield "get customresourcedefinitions", "crd/it" if self.queues else ""
        yield "get clusterqueues.kueue.x-k8s.io --output name", "clusterqueue/cluster-queue"
        if "HoldAndDrain" in said:
            self.stopped = True
        yield "patch clusterqueue/cluster-queue .*HoldAndDrain", "patched"
        yield "get jobsets.* --selector !kueue.x-k8s.io/queue-name", "tpu-training alone\n" if self.jobsets else ""
        yield "get jobs.* --selector !kueue.x-k8s.io/queue-name", ""
        if "patch jobsets.jobset.x-k8s.io alone --namespace tpu-training" in said:
            assert self.stopped, "others are admitted"
            self.suspended = True
        yield "patch jobsets.* alone .*suspend", "patched"
        yield "get namespaces", "default kube-system kueue-system tpu-slice-provisioner tpu-training"
        if re.search("delete .*pods.* --namespace tpu-training", said):
            assert self.suspended or not self.jobsets, "the provisioner would take so many deletions for a mistake"
            assert "jobsets" in said or not self.queues
            self.jobsets.clear()
        yield "delete .*pods.* --all --namespace (default|tpu-training) ", "deleted"
        yield "get persistentvolumes", ""

    def sleep(self, call: Call) -> Reply:
        """Let time pass: the provisioner deletes what nobody needs."""
        if self.bought and (self.suspended or not self.jobsets):
            self.pools = {name: labels for name, labels in self.pools.items() if labels != SLICE}
        return super().sleep(call)
