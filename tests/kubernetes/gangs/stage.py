"""A control plane with JobSet's own controller, hosts that a test adds, and the relay as a process beside it."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from infra.local.addresses import Addresses
from tests.kubernetes.cluster import Cluster, Json
from tests.kubernetes.test_relay_recovers import relaying
from tests.published import Published
from tpu_slices.domain.model.facts import SlicesWanted
from tpu_slices.domain.model.gangs import GANG
from tpu_slices.domain.planning.keys import KEY_LABEL
from tpu_standins.clients.api import Api
from tpu_standins.processes import Child
from tpu_standins.testing.jobsets import EXCLUSIVE, POOL, annotated
from tpu_standins.testing.parts import add_node, items
from tpu_standins.testing.waiting import until

HOSTS = 2
"""Of each slice."""
_SHAPE = {"cloud.google.com/gke-tpu-accelerator": "tpu-v4-podslice", "cloud.google.com/gke-tpu-topology": "2x2x2"}
_COUNT = {"cloud.google.com/gke-accelerator-count": "4"}


def replicated_job(
    name: str = "slice",
    replicas: int = 2,
    *,
    held: bool = True,
    selector: Mapping[str, str] | None = None,
    pod: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Json:
    """Return a replicatedJob; if it is held, its template brings the gate, so that no policy is needed."""
    resources = {"limits": {"google.com/tpu": "4"}}
    spec = {
        "restartPolicy": "Never",
        "nodeSelector": {**_SHAPE, **(selector or {})},
        "tolerations": [{"key": "google.com/tpu", "operator": "Exists"}],
        "containers": [{"name": "main", "image": "trainer:1", "resources": resources}],
        "schedulingGates": [{"name": GANG}] if held else [],
    }
    template = {**(pod or annotated(run_seconds="3600")), "spec": spec}
    job = {"parallelism": HOSTS, "completions": HOSTS, "completionMode": "Indexed", "backoffLimit": 0}
    return {"name": name, "replicas": replicas, "template": {"spec": job | {"template": template}}, **fields}


@dataclass
class Stage:
    """What tests do with it; each test has a namespace of its own."""

    cluster: Cluster
    addresses: Addresses
    published: Published
    api: Api
    relay: Child

    def kill_relay(self) -> None:
        os.kill(self.relay.process.pid, signal.SIGKILL)
        self.cluster.processes.end(self.relay)

    def start_relay(self) -> None:
        [self.relay] = self.cluster.processes.start(relaying(self.addresses))
        self.cluster.processes.wait_until_ready(self.relay)

    def create(self, namespace: str, *jobs: Json, gang: str = "all", **spec: Any) -> Json:
        """Create a JobSet of these replicatedJobs, each of whose Jobs has a node pool for itself."""
        metadata = {"name": "train", "namespace": namespace, "annotations": {EXCLUSIVE: POOL, GANG: gang}}
        kind = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
        return self.api.create("jobsets", {**kind, "metadata": metadata, "spec": {"replicatedJobs": [*jobs], **spec}})

    def add_slice(self, jobset: Json, claim: int) -> None:
        """Add the hosts of a claim's slice, as the functions and GKE would."""
        uid, slice_id = jobset["metadata"]["uid"], f"tpu-{jobset['metadata']['namespace']}-{claim}-aaaaaaaaaaaaa"
        labels = {
            **_SHAPE,
            **_COUNT,
            "google.com/nodepool-manager": "tpu-provisioner",
            "google.com/tpu-slice-id": slice_id,
            "google.com/tpu-slice-attempt": "1",
            "google.com/tpu-slice-owner-uid": uid,
            "google.com/tpu-provisioner-parent-namespace": jobset["metadata"]["namespace"],
            KEY_LABEL: f"{uid}.j{claim}",
        }
        for host in range(HOSTS):
            add_node(self.api, f"{slice_id}-1-{host}", f"{slice_id}-1", **labels)

    def pods(self, namespace: str, **labels: str) -> list[Json]:
        """Return the pods with these labels of JobSet."""
        wanted = {f"jobset.sigs.k8s.io/{key.replace('_', '-')}": value for key, value in labels.items()}
        return [
            pod for pod in items(self.api, "pods", namespace) if wanted.items() <= pod["metadata"]["labels"].items()
        ]

    def running(self, namespace: str, count: int, **labels: str) -> list[Json]:
        """Wait until so many pods with these labels run, and return them."""

        def found() -> list[Json]:
            pods = [pod for pod in self.pods(namespace, **labels) if pod["status"]["phase"] == "Running"]
            return pods if len(pods) == count else []

        return until(found, f"{count} pods that run")

    def held(self, namespace: str, count: int) -> list[Json]:
        """Wait until so many pods are held, and return them."""

        def found() -> list[Json]:
            pods = [*filter(is_held, self.pods(namespace))]
            return pods if len(pods) == count else []

        return until(found, f"{count} pods that are held")

    def told(self, namespace: str, reason: str) -> Json:
        """Wait for an Event with a reason, and return it."""

        def found() -> list[Json]:
            return [event for event in items(self.api, "events", namespace) if event["reason"] == reason]

        return until(found, f"the Event {reason}")[0]

    def wanted(self, jobset: Json) -> list[SlicesWanted]:
        """Return what the relay has told of a JobSet's demand so far."""
        told = (fact for fact in self.published.pull() if isinstance(fact, SlicesWanted))
        return [fact for fact in told if fact.workload.owner.uid == jobset["metadata"]["uid"]]


def is_held(pod: Json) -> bool:
    return {"name": GANG} in pod["spec"].get("schedulingGates", ())
