"""What a user of ladders, warm slices and gangs has on a local stack, and what happens to GKE there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import yaml

from infra.local.demo.http import get_json, press
from infra.local.plan import Plan
from infra.local.stack import Stack, local_relay
from tests.examples.cluster import FOR_EVER, IN_SECONDS, POOL, Cluster, Json
from tpu_standins.kubelet.keys import RUN_SECONDS

LADDER, QUEUE, GANG, LISTED = "ladder", "queue", "gang", "listed"
NAMESPACES = (LADDER, QUEUE, GANG, LISTED)
ZONE = "us-central2-b"
HOSTS = 4
"""Of each slice."""
_PLACES = {"spot": "spot", "flex": "flex-start", "list": "on-demand"}
_READ = {"read": "2026-11-30", "source": "an assumption"}
SETTINGS = {
    "zone": ZONE,
    "places": {name: {"capacity": capacity, "zone": ZONE} for name, capacity in _PLACES.items()},
    "ladders": {
        "patient": {"rungs": [{"place": "spot", "for": "5s"}, {"place": "flex", "for": "6h"}, {"place": "list"}]},
        "whole": {"rungs": [{"place": "spot"}, {"place": "list"}]},
    },
    "namespaces": {LADDER: {"ladder": "patient"}, QUEUE: {"warm": {"for": "1h"}}, GANG: {"ladder": "whole"}},
    "limits": {**IN_SECONDS, "backoff": {"stockout": {"initial": "1s", "maximum": "5s"}}},
    "catalogue": {
        "zones": [{"accelerator": "tpu-v6e-slice", "zone": ZONE, **_READ}],
        "prices": [
            {
                "accelerator": "tpu-v6e-slice",
                "region": "us-central2",
                "kind": "on_demand",
                "usd_per_chip_hour": 2.7,
                **_READ,
            }
        ],
    },
}


def settings_for(cluster_path: str) -> str:
    return yaml.safe_dump({**SETTINGS, "path": cluster_path})


def a_jobset(name: str, slices: int = 1, **annotations: str) -> Json:
    """Return a JobSet of slices of four hosts, whose pods run until they are told to end."""
    taints = ("google.com/tpu", "cloud.google.com/gke-spot")
    pod = {
        "restartPolicy": "Never",
        "nodeSelector": {
            "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
            "cloud.google.com/gke-tpu-topology": "4x4",
        },
        "tolerations": [{"key": key, "operator": "Exists"} for key in taints],
        "containers": [{"name": "train", "image": "trainer:1", "resources": {"limits": {"google.com/tpu": "4"}}}],
    }
    template = {"metadata": {"annotations": {RUN_SECONDS: FOR_EVER}}, "spec": pod}
    job = {"parallelism": HOSTS, "completions": HOSTS, "completionMode": "Indexed", "backoffLimit": 0}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {
            "name": name,
            "annotations": {"alpha.jobset.sigs.k8s.io/exclusive-topology": POOL, **annotations},
        },
        "spec": {
            "failurePolicy": {"maxRestarts": 3},
            "replicatedJobs": [
                {"name": "workers", "replicas": slices, "template": {"spec": {**job, "template": template}}}
            ],
        },
    }


def of(jobset: str) -> str:
    """Return the selector of a JobSet's pods."""
    return f"jobset.sigs.k8s.io/jobset-name={jobset}"


@dataclass
class Site:
    """The stack, and a user of it."""

    plan: Plan
    stack: Stack
    cluster: Cluster

    @contextmanager
    def short_of(self, capacity: str, pools: str) -> Iterator[None]:
        """Let GKE have no such capacity for pools of these names, until the block is left."""
        button, names = f"{self.cluster.addresses.buttons}/faults", {"pools": pools}
        press(button, {"kind": "stockout", "capacity": capacity, "times": None, **names})
        try:
            yield
        finally:
            press(button, names, method="DELETE")

    def stands(self, workload: str) -> Counter[str]:
        """Return how many pools of a workload there are, by capacity."""
        pools: list[dict[str, Any]] = get_json(f"{self.cluster.addresses.buttons}/pools")["pools"]
        return Counter(each["capacity"] for each in pools if each["name"].startswith(f"tpu-{workload}-"))

    def creations(self, workload: str) -> int:
        """Return how many pools of a workload GKE began to create."""
        return sum(pool.startswith(f"tpu-{workload}-") for pool in self.cluster.calls("CreateNodePool"))

    def stop_relay(self) -> None:
        (relay,) = (each for each in self.stack.processes.children() if each.program.name == "relay")
        self.stack.processes.end(relay)

    def start_relay(self) -> None:
        self.stack.processes.wait_until_ready(
            *self.stack.processes.start(local_relay(self.plan, self.cluster.addresses))
        )


def run(own: Cluster, jobset: str, slices: int = 1) -> bool:
    """Return whether all pods of a JobSet run."""
    return len(own.running(of(jobset))) == slices * HOSTS


def end(own: Cluster, jobset: str) -> None:
    """Let a JobSet's pods end, and wait until it is over."""
    own.end_pods(of(jobset))
    own.until_over(jobset)
