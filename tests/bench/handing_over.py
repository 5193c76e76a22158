"""`python -m tests.bench.handing_over`: how long a slice takes from one Job to the next; printed, never asserted.

On the local stack with Kubernetes' own control plane, under the admission policy: a JobSet runs on a slice of 16 hosts.
It is deleted, and another of the same request is created in the same moment. The time ends when all pods of that run.
Nodes and kubelets are stand-ins, so that what pods take to start is not part of it. The floor is what the relay waits
for pods that are under way to hosts which it closes.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from infra.local.cluster_choice import Asked, Built, own
from infra.local.plan import Plan
from infra.local.stack import running
from relay.agenda import Timing
from tests.examples.alike import jobset, users
from tests.examples.cluster import FAST, Cluster, Json, asked_by_a_user, seed
from tpu_standins import prerequisites
from tpu_standins.interrupts import orderly_end

HOSTS = 16
ROUNDS = 3
SHAPE = {"cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice", "cloud.google.com/gke-tpu-topology": "8x8"}


def main() -> None:
    with started() as cluster:
        cluster.create([trainer("train-0")])
        took = until(lambda: alone(cluster) == {"train-0": HOSTS})
        print(f"a slice of {HOSTS} hosts that is created: {took:.1f} s, of which 1 s is the stand-in's creation")
        for number in range(1, ROUNDS + 1):
            print(f"handed over: {hand_over(cluster, number):.1f} s; floor {Timing().settle.total_seconds():.0f} s")


@contextmanager
def started() -> Iterator[Cluster]:
    """Start a stack, and yield a user's commands on it once pods are pinned."""
    tools, choice = prerequisites.require(prerequisites.find(os.environ)), own(Asked(), os.environ)
    if not isinstance(choice, Built):
        raise SystemExit(f"A real control plane is measured. {choice}.")
    with orderly_end(), tempfile.TemporaryDirectory() as folder:
        plan = Plan(state=Path(folder), sweep_seconds=10, cluster=choice, gke_arguments=FAST)
        with running(plan, seed) as stack, asked_by_a_user(stack, tools) as cluster:
            cluster.pin()
            yield cluster


def trainer(name: str) -> Json:
    """Return a JobSet of one Job on a slice of 16 hosts."""
    made = jobset(name)
    job = made["spec"]["replicatedJobs"][0]["template"]["spec"]
    job |= {"parallelism": HOSTS, "completions": HOSTS}
    job["template"]["spec"]["nodeSelector"] = SHAPE
    return made


def hand_over(cluster: Cluster, number: int) -> float:
    """Return the seconds from the deletion of a JobSet until all pods of the next one run on its hosts."""
    (pool,) = users(cluster)
    cluster.api.delete("jobsets", cluster.namespace, f"train-{number - 1}")
    cluster.create([trainer(f"train-{number}")])
    took = until(lambda: alone(cluster) == {f"train-{number}": HOSTS} and len(cluster.running()) == HOSTS)
    assert {*users(cluster)} == {pool}, "another slice was created"
    return took


def alone(cluster: Cluster) -> dict[str, int]:
    """Return how many pods of which Job are on hosts; fail if two Jobs have any at once."""
    found = users(cluster)
    assert all(len(counts) == 1 for counts in found.values()), found
    return {name: count for counts in found.values() for name, count in counts.items()}


def until(look: Callable[[], bool]) -> float:
    """Return after how many seconds it was so."""
    began = time.monotonic()
    while not look():
        time.sleep(0.1)
    return time.monotonic() - began


if __name__ == "__main__":
    main()
