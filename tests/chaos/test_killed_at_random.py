"""Slices on real processes, which are killed at random while GKE fails now and then: nothing stuck, lost or left.

Real: functions-framework, the relay, both emulators, an API server with etcd, controllers and scheduler, Google's
clients. Simulated: GKE, kubelets, JobSet's controller.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from google.cloud import firestore

from infra.local.cluster_choice import Built
from infra.local.plan import Plan
from infra.local.stack import Stack, running
from infra.local.up.keeper import Keeper, Order
from infra.local.up.run import afterwards, noted
from infra.local.up.trouble import api_errors
from infra.local.up.verbs import pressed
from tests.examples.cluster import FAST, Cluster, asked_by_a_user, seed
from tpu_standins.clients.conditions import is_true
from tpu_standins.clients.errors import ApiError
from tpu_standins.kubelet.keys import RUN_SECONDS
from tpu_standins.kubernetes.programs import Programs
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.prerequisites import Tools

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

SEED = 64
OFTEN = ("receive", "reconcile", "sweep", "relay")
KILLS = (*OFTEN * 3, "pubsub", "kube-apiserver")
"""In an order of chance."""
Json = dict[str, Any]


def jobset(name: str, jobs: int) -> Json:
    """Return a JobSet of so many Jobs of one host each, whose pods run for a few seconds."""
    pod = {
        "metadata": {"annotations": {RUN_SECONDS: "5"}},
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
        "spec": {"replicatedJobs": [{"name": "workers", "replicas": jobs, "template": {"spec": job}}]},
    }


def killing(
    keeper: Keeper, parts: Iterable[str], left: Callable[[], int | None], seen: Callable[[], object]
) -> Iterator[None]:
    """Yield until nothing is left and these parts were killed, each when all parts run again after the last.

    `left` is None while it is not known. If it becomes no less for long, and no part is killed, fail with what is seen.
    """
    waiting, least, moved = list(parts), None, time.monotonic()
    while (now := left()) != 0 or waiting:
        if now is not None and (least is None or now < least):
            least, moved = now, time.monotonic()
        assert time.monotonic() < moved + PATIENCE_SECONDS, seen()
        if waiting and all(status.startswith("running") for status in keeper.statuses().values()):
            order = keeper.ask(Order.KILL, waiting.pop(0))
            yield
            assert "was killed" in order.result(), seen()
            moved = time.monotonic()
        else:
            yield


@pytest.fixture
def stack(programs: Programs, tmp_path: Path) -> Iterator[Stack]:
    plan = Plan(state=tmp_path, sweep_seconds=10, cluster=Built(programs), gke_arguments=FAST)
    with running(plan, seed) as found:
        yield found


@pytest.fixture
def cluster(stack: Stack, tools: Tools) -> Iterator[Cluster]:
    with asked_by_a_user(stack, tools) as found:
        yield found


@pytest.mark.parametrize(("jobsets", "jobs"), [(4, 4), pytest.param(8, 8, marks=pytest.mark.proof)])
def test_slices_are_served_and_go_whatever_is_killed(stack: Stack, cluster: Cluster, jobsets: int, jobs: int) -> None:
    keeper = Keeper(processes=stack.processes, afterwards=afterwards(stack, seed), say=print)
    keeper.take_over()
    kills = random.Random(SEED).sample(KILLS, len(KILLS))
    fails(cluster, share=0.1)
    applied(cluster, [jobset(f"train-{number}", jobs) for number in range(jobsets)])
    all_of_them = jobsets * (1 + jobs)

    def seen() -> object:
        return keeper.statuses(), completed(cluster), cluster.pools("train"), not_over(cluster.records)

    keeper.keep(killing(keeper, kills[:7], lambda: less(all_of_them, completed(cluster)), seen))
    keeper.keep(killing(keeper, kills[7:], lambda: len(cluster.pools("train")), seen))
    keeper.keep(killing(keeper, (), lambda: sum(not_over(cluster.records).values()), seen))

    assert {each["phase"] for each in cluster.slices("list", "--all")["slices"]} == {"GONE"}
    created = [pool.rpartition("-")[0] for pool in cluster.calls("CreateNodePool")]
    assert sorted(created) == sorted(set(created)), "a slice was created twice"
    assert 0 < len(created) <= jobsets * jobs, "a slice that one Job left may serve another"


def fails(cluster: Cluster, share: float) -> None:
    """Let a share of all calls to GKE fail from now on."""
    asked = argparse.Namespace(of="gke", share=share, lasting=None)
    pressed(api_errors(asked, noted(cluster.addresses, "", cluster.addresses.folder)))


def applied(cluster: Cluster, jobsets: Iterable[Json]) -> None:
    """Create the JobSets when the admission policy is in force, which keeps each Job off the slices of others."""
    cluster.pin()
    cluster.create(jobsets)


def completed(cluster: Cluster) -> int | None:
    """Return how many JobSets and Jobs have completed; None, which is not known, while the API server is down."""
    try:
        states = [(each.get("status") or {}).get("terminalState") for each in cluster.items("jobsets")]
        return states.count("Completed") + sum(is_true(each, "Complete") for each in cluster.items("jobs"))
    except ApiError:
        return None


def less(whole: int, part: int | None) -> int | None:
    return None if part is None else whole - part


def not_over(records: firestore.Client) -> dict[str, int]:
    """Return the numbers of slices that are not gone, of what was rejected, and of slots that are taken.

    One whose holder was killed when it had saved that it needs it no more stays taken for twice `act_window`.
    """
    found = {name: list(records.collection(name).stream()) for name in ("slices", "rejected", "slots")}
    found["slices"] = [each for each in found["slices"] if each.get("phase") != "GONE"]
    return {name: len(each) for name, each in found.items()}
