"""Places where JobSets live: a namespace, nodes that only its pods select, and what is waited for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.cluster.asking import Json, done, path
from tests.cluster.builders import CONTAINER, EXCLUSIVE, POOL, TPU, jobset, node
from tests.cluster.servers import Cluster
from tpu_standins.clients.labels import HOST
from tpu_standins.kubelet.keys import FAIL_UNTIL_RESTART, RUN_SECONDS
from tpu_standins.testing.waiting import until

PLACE = "test.example.com/place"
"""Label of a place's nodes."""
ZONE = "topology.kubernetes.io/zone"
TAINT = {"key": TPU, "value": "present", "effect": "NoSchedule"}
FOR_EVER = 3600.0
SOON = 1.0
"""How long pods run once all of their Job do: it is said nowhere how long that takes."""


def condition(obj: Json, kind: str) -> Json:
    """Return the condition of this type, or an empty object."""
    found: list[Json] = obj.get("status", {}).get("conditions") or []
    return next((each for each in found if each["type"] == kind), {})


@dataclass(frozen=True, slots=True)
class Place:
    """A namespace with pools of TPU hosts that only its own pods select.

    They are a zone of their own: Kubernetes evicts from one lost host per zone and 10 s, and other tests lose some.
    """

    cluster: Cluster
    name: str

    def add_pool(self, pool: str, hosts: int = 2) -> None:
        for number in range(hosts):
            self.add_node(f"{self.name}-{pool}-{number}", f"{self.name}-{pool}")

    def add_node(self, name: str, pool: str, *, chips: int = 4, ready: str = "True", **spec: Any) -> None:
        """Create a node; `spec` is what it has beside its taint, or instead of it."""
        labels = {POOL: pool, HOST: "true", PLACE: self.name, "kubernetes.io/hostname": name, ZONE: self.name}
        amounts = {"cpu": "8", "memory": "16Gi", "pods": "16", TPU: str(chips)}
        conditions = [{"type": "Ready", "status": ready, "reason": "Testing"}]
        status = {"capacity": amounts, "allocatable": amounts, "conditions": conditions}
        manifest = node(name, spec={"taints": [TAINT]} | spec, status=status)
        manifest["metadata"]["labels"] = labels
        self.cluster.api.create(path("nodes"), manifest)

    def set_ready(self, name: str, status: str, message: str = "") -> None:
        ready = {"type": "Ready", "status": status, "reason": "Testing", "message": message}
        where = path("nodes", name=name, subresource="status")
        done(
            self.cluster.api.patch(where, {"status": {"conditions": [ready]}}, "application/strategic-merge-patch+json")
        )

    def pod_spec(self, chips: int = 4) -> Json:
        """Return the spec of a pod that has a host of this place for itself."""
        container = CONTAINER | {"resources": {"limits": {TPU: str(chips)}}}
        return {"restartPolicy": "Never", "containers": [container], "nodeSelector": {PLACE: self.name}}

    def job_spec(self, hosts: int = 2, run: float = FOR_EVER, fail_until: int = 0, **more: Any) -> Json:
        """Return the spec of a Job whose pods run so long; they fail before this attempt of their JobSet."""
        annotations = {RUN_SECONDS: str(run), FAIL_UNTIL_RESTART: str(fail_until)}
        template = {"metadata": {"annotations": annotations}, "spec": self.pod_spec()}
        own = {"parallelism": hosts, "completions": hosts, "completionMode": "Indexed", "backoffLimit": 0}
        return own | {"template": template} | more

    def jobset(self, replicas: int = 2, job: Json | None = None, **spec: Any) -> Json:
        """Return a JobSet whose Jobs each want a pool for themselves."""
        template = {"spec": job or self.job_spec()}
        jobs = [{"name": "slice", "groupName": "default", "replicas": replicas, "template": template}]
        return jobset(annotations={EXCLUSIVE: POOL}) | {"spec": {"replicatedJobs": jobs} | spec}

    def create(self, plural: str, obj: Json) -> Json:
        return self.cluster.api.create(path(plural, self.name), obj)

    def read(self, plural: str = "jobsets", name: str = "train") -> Json:
        return self.cluster.api.read(path(plural, self.name, name))

    def items(self, plural: str) -> list[Json]:
        listed: list[Json] = self.cluster.api.read(path(plural, self.name))["items"]
        return listed

    def change(self, **spec: Any) -> None:
        done(self.cluster.api.patch(path("jobsets", self.name, "train"), {"spec": spec}))

    def phases(self) -> list[str]:
        return sorted(each["status"]["phase"] for each in self.items("pods"))

    def await_phases(self, *phases: str) -> None:
        until(lambda: self.phases() == sorted(phases), f"pods {phases}")

    def await_end(self, state: str) -> None:
        until(lambda: self.read().get("status", {}).get("terminalState") == state, state)

    def await_status(self, kind: str, status: str = "True") -> None:
        until(lambda: condition(self.read(), kind).get("status") == status, f"{kind} {status}")

    def pools(self, job: str) -> set[str]:
        """Return the pools on which a Job's pods are, without the place's name."""
        pods = [each for each in self.items("pods") if each["metadata"]["labels"].get("job-name") == job]
        hosts = [each["spec"].get("nodeName", "") for each in pods]
        return {host.removeprefix(f"{self.name}-").rpartition("-")[0] for host in hosts}
