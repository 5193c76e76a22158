"""`make soak`: 1,000 nodes and 2,000 pods on Kubernetes' own control plane; printed, never asserted.

JobSets with a slice of four hosts each wait suspended; their hosts join as GKE's Nodes; then the JobSets are resumed,
and a Job has a pod without chips for each host. All is well when every pod runs, and the relay has told of every slice
that its hosts are usable and whose they are. JobSet, kubelets and relay are the programs of the local stack.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
from google.cloud.container_v1 import NodeConfig, NodePool

from infra.local import messaging
from infra.local.addresses import Addresses, port_of
from infra.local.cluster_choice import Asked, Built, own
from infra.local.cluster_parts import cluster
from infra.local.plan import Plan
from infra.local.relay_account import relay_account
from infra.local.stack import allotted, local_relay
from tests.bench.facts import Facts
from tests.builders import CLUSTER, a_spec
from tpu_slices.domain.model.slices import Owner, OwnerKind, WorkloadJob, WorkloadUid, claim_id, pool_name
from tpu_slices.domain.planning.pool_labels import labels_of
from tpu_standins import emulators, prerequisites
from tpu_standins.clients.api import Api
from tpu_standins.cloud.hosts import Appearance, Readiness
from tpu_standins.cloud.kubernetes_nodes import KubernetesNodes
from tpu_standins.cloud.machines import MACHINES
from tpu_standins.cloud.nodes import NodeKeeper
from tpu_standins.gke.hosts import described
from tpu_standins.gke.paths import instance_names, instance_stem
from tpu_standins.gke.state import Host, Pool, State
from tpu_standins.interrupts import orderly_end
from tpu_standins.kubelet.keys import RUN_SECONDS
from tpu_standins.processes import Processes

Json = dict[str, Any]

HOSTS = 4
"""Of a slice: tpu-v5-lite-podslice, 4x4."""
REST_SECONDS = 30
KEEP_SECONDS = 10
PATIENCE_SECONDS = 600
MACHINE = MACHINES["ct5lp-hightpu-4t"]
READY = Appearance(
    life=1, readiness=Readiness.READY, chips=True, cordoned=False, drains=False, maintenance=None, maintained=False
)
TOLERATION = {"key": "google.com/tpu", "operator": "Exists", "effect": "NoSchedule"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="make soak")
    parser.add_argument("--slices", type=int, default=250, help="of four hosts each")
    slices = parser.parse_args().slices
    with started() as soak:
        soak.step(f"{slices} JobSets created, suspended", lambda: soak.create(slices))
        soak.step(f"{slices * HOSTS} nodes joined and ready", soak.join)
        soak.step(f"{slices * HOSTS * 2} pods run", soak.run)
        soak.step(f"{slices} slices told by the relay", soak.served)
        soak.step("rest", lambda: time.sleep(REST_SECONDS))
        soak.print_programs()


@contextmanager
def started() -> Iterator[Soak]:
    """Start the emulator of Pub/Sub, a control plane with JobSet and kubelets, and the relay."""
    tools = prerequisites.require(prerequisites.find(os.environ))
    choice = own(Asked(), os.environ)
    if not isinstance(choice, Built):
        raise SystemExit(f"make soak measures a real control plane. {choice}.")
    print(choice)
    with (
        orderly_end(),
        tempfile.TemporaryDirectory(prefix="tpu-slices-soak-") as scratch,
        Processes(setpriv=tools.setpriv, logs=Path(scratch) / "logs", environment=os.environ) as processes,
        ExitStack() as held,
    ):
        plan = Plan(state=Path(scratch), cluster=choice)
        table = messaging.read().of_cluster(plan.cluster_id)
        pulled = replace(table, subscriptions=tuple(replace(each, function=None) for each in table.subscriptions))
        addresses = allotted(plan, ())
        (pubsub,) = processes.start(emulators.pubsub(tools, port_of(addresses.pubsub), Path(scratch)))
        held.enter_context(cluster(plan, addresses, processes, Path(scratch)))
        processes.wait_until_ready(pubsub)
        messaging.create(pulled, addresses)
        shutil.copy(addresses.kubeconfig, addresses.proxy_kubeconfig)
        held.enter_context(relay_account(addresses))
        processes.wait_until_ready(*processes.start(local_relay(plan, addresses)))
        api = Api.of(addresses.kubeconfig)
        held.callback(api.close)
        yield Soak(addresses, processes, api)


@dataclass
class Soak:
    """A running cluster, and what is put into it."""

    addresses: Addresses
    processes: Processes
    api: Api
    jobsets: list[Json] = field(default_factory=list)

    def create(self, slices: int) -> None:
        self.jobsets = each(slices, lambda index: self.api.create("jobsets", jobset(f"train-{index}")))

    def join(self) -> None:
        """Let the hosts of every slice join, and wait until all are ready, as the API server says.

        They are kept so, as the local GKE does: the Nodes of hosts that fall behind come back.
        """
        hosts = [pair for one in self.jobsets for pair in hosts_of(one, self.addresses)]
        state = State(clusters={}, pools={pool.path: pool for pool, _ in hosts}).with_hosts(
            *(host for _, host in hosts)
        )
        wanted = {host.name: READY for _, host in hosts}
        keeper = NodeKeeper(KubernetesNodes(self.addresses.kubeconfig))

        def keep() -> None:
            while True:
                keeper.follow(wanted, described(state), time.monotonic())
                time.sleep(KEEP_SECONDS)

        threading.Thread(target=keep, daemon=True).start()
        nodes = KubernetesNodes(self.addresses.kubeconfig)
        wait(lambda: list(nodes.standing().values()) == ["True"] * len(hosts))

    def run(self) -> None:
        pods = len(self.jobsets) * HOSTS
        self.api.create("jobs", {"metadata": {"name": "others"}, "spec": others(pods)})
        resumed = {"spec": {"suspend": False}}
        names = [one["metadata"]["name"] for one in self.jobsets]
        each(len(names), lambda index: self.api.patch("jobsets", "default", names[index], resumed))
        wait(lambda: self._phases().count("Running") == 2 * pods, lambda: str(Counter(self._phases())))

    def served(self) -> None:
        """Wait until the relay has told the four usable hosts of every slice, and their JobSet."""
        with Facts.of(self.addresses) as facts:
            wait(lambda: facts.used_slices(HOSTS) >= {one["metadata"]["name"] for one in self.jobsets})

    def _phases(self) -> list[str]:
        return [pod["status"]["phase"] for pod in self.api.list("pods", "default")["items"]]

    def step(self, what: str, take: Callable[[], object]) -> None:
        """Print how long a step takes, and what all programs spent on it."""
        before, began = self._cpu_seconds(), time.monotonic()
        take()
        spent = self._cpu_seconds() - before
        print(f"{what:<36} {time.monotonic() - began:>6.1f} s {spent:>7.1f} CPU-s", flush=True)

    def _cpu_seconds(self) -> float:
        self.processes.check()
        return sum(cpu_seconds(child.process.pid) for child in self.processes.children())

    def print_programs(self) -> None:
        for child in self.processes.children():
            pid = child.process.pid
            print(f"{child.program.name:<36} {cpu_seconds(pid):>8.1f} CPU-s {peak_mib(pid):>6.0f} MiB at most")


def each(count: int, take: Callable[[int], Any]) -> list[Any]:
    """Return what `take` returns for each index, taken by several threads."""
    with ThreadPoolExecutor(8) as threads:
        return list(threads.map(take, range(count)))


def wait(done: Callable[[], bool], problem: Callable[[], str] = str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not done():
        if time.monotonic() > deadline:
            raise SystemExit(f"not done within {PATIENCE_SECONDS} s {problem()}")
        time.sleep(1)


def cpu_seconds(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def peak_mib(pid: int) -> float:
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def jobset(name: str) -> Json:
    """Return a suspended JobSet of one slice, exclusively placed, whose pods run until they are deleted."""
    annotations = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"}
    selector = {"cloud.google.com/gke-tpu-accelerator": MACHINE.accelerator, "cloud.google.com/gke-tpu-topology": "4x4"}
    job = job_spec(HOSTS, {"google.com/tpu": str(MACHINE.chips)}, nodeSelector=selector)
    workers = {"name": "slice", "replicas": 1, "template": {"spec": job}}
    return {
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"suspend": True, "replicatedJobs": [workers]},
    }


def others(pods: int) -> Json:
    return job_spec(pods, {"cpu": "100m"}, tolerations=[TOLERATION])


def job_spec(pods: int, limits: Json, **pod: Any) -> Json:
    container = {"name": "main", "image": "main", "resources": {"limits": limits}}
    template = {
        "metadata": {"annotations": {RUN_SECONDS: "36000"}},
        "spec": {"restartPolicy": "Never", "containers": [container]} | pod,
    }
    counts = {"parallelism": pods, "completions": pods, "completionMode": "Indexed", "backoffLimit": 0}
    return counts | {"template": template}


def hosts_of(one: Json, addresses: Addresses) -> Iterable[tuple[Pool, Host]]:
    """Yield the hosts of the pool that the provisioner would create for a JobSet."""
    metadata = one["metadata"]
    owner = Owner(kind=OwnerKind.JOBSET, namespace="default", name=metadata["name"], uid=WorkloadUid(metadata["uid"]))
    job = WorkloadJob(cluster=CLUSTER, owner=owner, replicated_job="slice", job_index=0)
    name = pool_name(claim_id(job), 1)
    spec = NodePool(name=name, initial_node_count=HOSTS, config=NodeConfig(labels=labels_of(job, 1, a_spec())))
    pool = Pool(
        path=f"{addresses.cluster_path}/nodePools/{name}",
        cluster=addresses.cluster_path,
        spec=spec,
        machine=MACHINE,
        topology="4x4",
        zones=("us-central2-b",),
        stem=instance_stem(addresses.cluster_id, name, "soak"),
        status=NodePool.Status.RUNNING,
    )
    for host in instance_names(pool.stem, HOSTS):
        yield pool, Host(name=host, pool=pool.path, zone=pool.zones[0], boots=0.0)


if __name__ == "__main__":
    main()
