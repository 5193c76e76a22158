"""The environment of the processes of a job on several hosts: one place for what libtpu and JAX read. Pure.

On GKE a webhook of Google's sets it; LeaderWorkerSet's controller does so for its own pods everywhere. On self-managed
clusters an admission policy does for Jobs: infra/kubernetes/job-environment.yaml says the same in CEL, and a test on a
real API server holds it to this.

| variable                     | value                                                                                |
|------------------------------|--------------------------------------------------------------------------------------|
| TPU_WORKER_ID                | the pod's completion index; 0 of a pod that has none, and runs alone                 |
| TPU_WORKER_HOSTNAMES         | the names of all pods in that order, as the Job's headless Service has them          |
| TPU_PROCESS_ADDRESSES        | the same with the port; by it LeaderWorkerSet tells libtpu and JAX of processes      |
| TPU_PROCESS_PORT             | 8476, as LeaderWorkerSet has it (sigs.k8s.io/lws pkg/utils/accelerators/tpu.go)      |
| TPU_TOPOLOGY                 | the slice's                                                                          |
| TPU_CHIPS_PER_HOST_BOUNDS    | the arrangement of one host's chips                                                  |
| TPU_HOST_BOUNDS              | the topology divided by that                                                         |
| MEGASCALE_NUM_SLICES         | of a JobSet of several slices: how many they are                                     |
| MEGASCALE_SLICE_ID           | the index of this one                                                                |
| MEGASCALE_COORDINATOR_ADDRESS| the first pod of the first                                                           |

Google's device plugin sets the three of the topology too, to the same values, and what follows from the accelerator
alone (ai-on-gke/tpu-device-plugin): TPU_ACCELERATOR_TYPE, TPU_TOPOLOGY_WRAP and more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tpu_slices.domain.catalogue.topology import Topology

PROCESS_PORT = 8476

_CHIPS_OF_A_HOST: Mapping[int, tuple[int, int, int]] = MappingProxyType(
    {1: (1, 1, 1), 2: (1, 2, 1), 4: (2, 2, 1), 8: (2, 4, 1)}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlace:
    """Where a Job's pods are found, by name."""

    name: str
    """The Job's."""
    subdomain: str
    """Of its pods: the name of their headless Service."""
    hosts: int
    """How many pods run at a time."""


def worker_hostnames(job: JobPlace) -> tuple[str, ...]:
    """Return the names of a Job's pods by completion index; of a single one, the name that it has for itself."""
    if job.hosts == 1:
        return ("localhost",)
    return tuple(f"{job.name}-{index}.{job.subdomain}" for index in range(job.hosts))


def worker_environment(index: int, hostnames: Sequence[str]) -> dict[str, str]:
    """Return what a process needs to find the others of its slice."""
    return {
        "TPU_WORKER_ID": str(index),
        "TPU_WORKER_HOSTNAMES": ",".join(hostnames),
        "TPU_PROCESS_ADDRESSES": ",".join(f"{name}:{PROCESS_PORT}" for name in hostnames),
        "TPU_PROCESS_PORT": str(PROCESS_PORT),
    }


def topology_environment(topology: Topology, chips_per_host: int) -> dict[str, str]:
    """Return how a slice's chips and hosts are arranged; nothing if the hosts do not fill the topology."""
    chips = _CHIPS_OF_A_HOST.get(chips_per_host)
    sides = (*topology.dimensions, 1, 1)[:3]
    if chips is None or any(side % of_host for side, of_host in zip(sides, chips, strict=True)):
        return {}
    return {
        "TPU_TOPOLOGY": str(topology),
        "TPU_CHIPS_PER_HOST_BOUNDS": ",".join(map(str, chips)),
        "TPU_HOST_BOUNDS": ",".join(str(side // of_host) for side, of_host in zip(sides, chips, strict=True)),
    }


def multislice_environment(jobset: str, replicated_job: str, slices: int, index: int, subdomain: str) -> dict[str, str]:
    """Return what a process needs to find the other slices of its JobSet's replicatedJob; nothing if there are none."""
    if slices < 2:
        return {}
    return {
        "MEGASCALE_NUM_SLICES": str(slices),
        "MEGASCALE_SLICE_ID": str(index),
        "MEGASCALE_COORDINATOR_ADDRESS": f"{jobset}-{replicated_job}-0-0.{subdomain}",
    }
