"""64 slices on real processes, which are killed at random while GKE fails now and then: nothing stuck, lost or left.

Real: functions-framework, the relay, both emulators, an API server with etcd, controllers and scheduler, Google's
clients. Simulated: GKE, kubelets, JobSet's controller.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from google.cloud import firestore

from infra.local.addresses import Addresses
from infra.local.cluster_choice import Built
from infra.local.kubernetes.programs import Programs
from infra.local.plan import REPOSITORY, Plan
from infra.local.prerequisites import Tools
from infra.local.stack import Stack, running
from infra.local.up.keeper import Keeper, Order
from infra.local.up.run import afterwards, noted
from infra.local.up.trouble import api_errors
from infra.local.up.verbs import pressed
from tests.examples.cluster import FAST, Cluster, seed

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

JOBSETS, JOBS = 8, 8
PATIENCE_SECONDS = 240
SECONDS_BETWEEN = 2.5
SEED = 64
OFTEN = ("receive", "reconcile", "sweep", "relay")
KILLS = (*OFTEN * 3, "pubsub", "kube-apiserver")
"""In an order of chance. More in this time would only keep the parts down: each restart comes later than the last."""
ADMISSION = REPOSITORY / "infra" / "kubernetes" / "admission.yaml"
INDEXED_JOB = REPOSITORY / "examples" / "indexed-job.yaml"
Json = dict[str, Any]


def jobset(name: str) -> Json:
    """Return a JobSet of several Jobs of one host each, whose pods run for a few seconds."""
    pod = {
        "metadata": {"annotations": {"local.kubelet/run-seconds": "5"}},
        "spec": {
            "restartPolicy": "Never",
            "nodeSelector": {
                "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
                "cloud.google.com/gke-tpu-topology": "2x2",
            },
            "containers": [
                {"name": "train", "image": "train:1", "resources": {"limits": {"google.com/tpu": "4"}}},
            ],
        },
    }
    job = {"parallelism": 1, "completions": 1, "completionMode": "Indexed", "backoffLimit": 0, "template": pod}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {
            "name": name,
            "annotations": {"alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"},
        },
        "spec": {"replicatedJobs": [{"name": "workers", "replicas": JOBS, "template": {"spec": job}}]},
    }


def killing(
    keeper: Keeper, parts: Iterable[str], holds: Callable[[], bool], seen: Callable[[], object]
) -> Iterator[None]:
    """Yield until something holds, which is asked each time; meanwhile kill these parts, one every few seconds.

    If it does not hold in time, fail with what is seen.
    """
    now = began = time.monotonic()
    due = zip(itertools.count(began, SECONDS_BETWEEN), parts, strict=False)
    at, part = next(due, (math.inf, ""))
    while not holds() or at < math.inf:
        assert now < began + PATIENCE_SECONDS, seen()
        if now >= at:
            keeper.ask(Order.KILL, part)
            at, part = next(due, (math.inf, ""))
        yield
        now = time.monotonic()


@pytest.fixture
def stack(programs: Programs, tmp_path: Path) -> Iterator[Stack]:
    plan = Plan(state=tmp_path, sweep_seconds=2, cluster=Built(programs), gke_arguments=FAST)
    with running(plan, seed) as found:
        yield found


def test_64_slices_are_served_and_go_whatever_is_killed(stack: Stack, tools: Tools) -> None:
    cluster = Cluster(stack.addresses, tools)
    names = [f"train-{number}" for number in range(JOBSETS)]
    keeper = Keeper(processes=stack.processes, afterwards=afterwards(stack, seed), say=print)
    keeper.take_over()
    kills = random.Random(SEED).sample(KILLS, len(KILLS))
    fails(cluster, share=0.1)
    applied(cluster, names)

    def seen() -> object:
        return keeper.statuses(), left(stack.addresses), not_gone(cluster)

    keeper.keep(killing(keeper, kills[:7], lambda: completed(cluster) == set(names), seen))
    keeper.keep(killing(keeper, kills[7:], lambda: cluster.pools("train") == [], seen))
    keeper.keep(killing(keeper, (), lambda: not_gone(cluster) == [] and left(stack.addresses) == {}, seen))

    created = [pool.rpartition("-")[0] for pool in cluster.calls("CreateNodePool")]
    assert sorted(created) == sorted(set(created)), "a slice was created twice"
    assert len(created) == JOBSETS * JOBS


def fails(cluster: Cluster, share: float) -> None:
    """Let a share of all calls to GKE fail."""
    asked = argparse.Namespace(of="gke", share=share, lasting=2 * PATIENCE_SECONDS)
    pressed(api_errors(asked, noted(cluster.addresses, "", cluster.addresses.folder)))


def applied(cluster: Cluster, names: list[str]) -> None:
    """Create the JobSets when the admission policy is in force, which keeps each Job off the slices of others."""
    cluster.kubectl("apply", "--server-side", "-f", str(ADMISSION))
    dry_run = ("create", "--dry-run=server", "-o", "yaml", "-f", str(INDEXED_JOB))
    cluster.until(lambda: "job-namespace" in cluster.kubectl(*dry_run))
    cluster.create(map(jobset, names))


def completed(cluster: Cluster) -> set[str]:
    """Return the JobSets that are known to have completed; while the API server is down, nothing is known."""
    try:
        jobsets = cluster.get("jobsets")["items"]
    except subprocess.CalledProcessError:
        return set()
    states = {each["metadata"]["name"]: (each.get("status") or {}).get("terminalState") for each in jobsets}
    return {name for name, state in states.items() if state == "Completed"}


def not_gone(cluster: Cluster) -> list[Json]:
    return [each for each in cluster.slices("list", "--all")["slices"] if each["phase"] != "GONE"]


def left(addresses: Addresses) -> dict[str, int]:
    """Return the numbers of documents of what was rejected, and of slots that are taken.

    One whose holder was killed when it had saved that it needs it no more stays taken for twice `act_window`.
    """
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FIRESTORE_EMULATOR_HOST", addresses.firestore)
        client = firestore.Client(project=addresses.project)
    with closing(client):
        found = {name: len(list(client.collection(name).stream())) for name in ("rejected", "slots")}
    return {name: number for name, number in found.items() if number}
