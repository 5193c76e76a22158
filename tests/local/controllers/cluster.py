"""A local cluster whose clock is advanced only by the test, and builders of its objects."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from infra.local.cluster.controllers import Pace, reconcile
from infra.local.cluster.objects import Object, Objects

POOL = "cloud.google.com/gke-nodepool"
ACCELERATOR = "cloud.google.com/gke-tpu-accelerator"
TOPOLOGY = "cloud.google.com/gke-tpu-topology"
EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
INDEX = "batch.kubernetes.io/job-completion-index"
JOBSET = "jobset.sigs.k8s.io/"

PACE = Pace(
    scheduling_backoff=timedelta(seconds=1),
    pod_start=timedelta(seconds=2),
    pod_run=timedelta(seconds=60),
    pod_termination=timedelta(seconds=3),
    pod_backoff=timedelta(seconds=10),
)


@dataclass
class Cluster:
    pace: Pace = PACE
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    objects: Objects = field(init=False)
    wake: datetime | None = None

    def __post_init__(self) -> None:
        self.objects = Objects(lambda: self.now)

    def settle(self) -> int:
        """Reconcile until nothing changes any more at this moment; return how many iterations it took."""
        for rounds in range(1, 30):
            seen = self.objects.version
            self.wake = reconcile(self.objects, self.now, self.pace)
            if self.objects.version == seen:
                return rounds
        raise AssertionError("the controllers do not converge")

    def round(self) -> None:
        """Run every controller once."""
        reconcile(self.objects, self.now, self.pace)

    def pass_time(self, seconds: float) -> None:
        """Advance the clock by this time, reconciling at every wake-up in between."""
        until = self.now + timedelta(seconds=seconds)
        self.settle()
        while self.wake is not None and self.wake <= until:
            assert self.wake > self.now, "a wake-up that changes nothing"
            self.now = self.wake
            self.settle()
        self.now = until
        self.settle()

    def apply(self, plural: str, obj: Object) -> Object:
        created = self.objects.create(plural, obj)
        self.settle()
        return created

    def add_pool(self, name: str, hosts: int = 2, **changes: Any) -> None:
        for host in range(hosts):
            self.objects.create("nodes", node(f"{name}-{host}", pool=name, **changes))
        self.settle()

    def remove_pool(self, name: str) -> None:
        for found in self.objects.list("nodes"):
            if found["metadata"]["labels"][POOL] == name:
                self.objects.delete("nodes", None, found["metadata"]["name"])
        self.settle()

    def set_ready(self, node_name: str, *, ready: bool) -> None:
        known = self.objects.get("nodes", None, node_name)
        status = known["status"] | {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
        self.objects.update("nodes", known | {"status": status}, status=True)
        self.settle()

    def change_jobset(self, name: str = "train", **spec: Any) -> None:
        known = self.jobset(name)
        self.objects.update("jobsets", known | {"spec": known["spec"] | spec})
        self.settle()

    def jobset(self, name: str = "train") -> Object:
        return self.objects.get("jobsets", "default", name)

    def job(self, name: str) -> Object:
        return self.objects.get("jobs", "default", name)

    def names(self, plural: str) -> list[str]:
        return [obj["metadata"]["name"] for obj in self.objects.list(plural)]

    def pods(self, job: str | None = None) -> list[Object]:
        """Return all pods, or a Job's, ordered by Job and completion index."""
        found = [p for p in self.objects.list("pods") if job in (None, p["metadata"]["labels"]["job-name"])]
        return sorted(found, key=lambda p: (p["metadata"]["labels"]["job-name"], index(p)))

    def reasons(self, plural: str, name: str) -> set[str]:
        """Return the reasons of the events about an object."""
        uid = self.objects.get(plural, "default", name)["metadata"]["uid"]
        return {e["reason"] for e in self.objects.list("events") if e["involvedObject"]["uid"] == uid}


def index(pod: Object) -> int:
    return int(pod["metadata"]["annotations"][INDEX])


def phases(pods: list[Object]) -> list[str]:
    return [pod["status"]["phase"] for pod in pods]


def pools_of(cluster: Cluster, pods: list[Object]) -> set[str]:
    nodes = {node["metadata"]["name"]: node for node in cluster.objects.list("nodes")}
    return {nodes[pod["spec"]["nodeName"]]["metadata"]["labels"][POOL] for pod in pods}


def condition(obj: Object, kind: str) -> Object:
    """Return the condition of this type, or an empty dict."""
    conditions = obj.get("status", {}).get("conditions", [])
    found: Object = next((c for c in conditions if c["type"] == kind), {})
    return found


def node(name: str, *, pool: str = "pool", chips: int = 4, ready: bool = True, **spec: Any) -> Object:
    """Return a TPU host as GKE registers it; `spec` is merged into its spec."""
    taint = {"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}
    return {
        "metadata": {
            "name": name,
            "labels": {
                POOL: pool,
                ACCELERATOR: "tpu-v5-lite-podslice",
                TOPOLOGY: "2x4",
                "kubernetes.io/hostname": name,
            },
        },
        "spec": {"taints": [taint]} | spec,
        "status": {
            "allocatable": {"cpu": "111", "memory": "180Gi", "pods": "110", "google.com/tpu": str(chips)},
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def pod_spec(chips: int = 4, **changes: Any) -> Object:
    resources = {"requests": {"google.com/tpu": str(chips)}, "limits": {"google.com/tpu": str(chips)}}
    container = {"name": "main", "image": "trainer:1", "resources": resources}
    selector = {ACCELERATOR: "tpu-v5-lite-podslice", TOPOLOGY: "2x4"}
    return {"restartPolicy": "Never", "containers": [container], "nodeSelector": selector} | changes


def job_spec(hosts: int = 2, pod: Object | None = None, **changes: Any) -> Object:
    template = {"metadata": {}, "spec": pod_spec()} | (pod or {})
    own = {"completionMode": "Indexed", "parallelism": hosts, "completions": hosts, "backoffLimit": 0}
    return own | {"template": template} | changes


def replicated_job(name: str = "slice", replicas: int = 2, **changes: Any) -> Object:
    """Return one replicatedJob; `changes` are passed to `job_spec`."""
    return {"name": name, "replicas": replicas, "template": {"spec": job_spec(**changes)}}


def jobset(name: str = "train", *replicated: Object, **spec: Any) -> Object:
    """Return a JobSet, by default of two slices of two hosts, each with exclusive use of its node pool."""
    jobs = list(replicated) or [replicated_job()]
    metadata = {"name": name, "namespace": "default", "annotations": {EXCLUSIVE: POOL}}
    return {"metadata": metadata, "spec": {"replicatedJobs": jobs} | spec}


def annotated(**annotations: str) -> Object:
    """Return a pod template with annotations for the kubelet, such as run_seconds="5", fail_until_restart="1"."""
    keys = {f"local.kubelet/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {"metadata": {"annotations": keys}}
