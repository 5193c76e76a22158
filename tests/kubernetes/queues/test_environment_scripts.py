"""What the training environment's builds do in a cluster: on a control plane, with JobSet's and Kueue's controllers."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.environments.training.builds.smoke import smoke
from tests.cluster.asking import path
from tests.infra.builds.training import FLAVOR
from tests.infra.sources import ROOT
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.queues.queued import API, Team, a_cluster, applied, with_kueue
from tpu_standins.kubernetes.programs import Programs
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.prerequisites import Tools
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

CLUSTER_QUEUES, ALL_WORKLOADS = f"{API}/clusterqueues", f"{API}/workloads"
FOLDER = "infra/environments/training"
QUEUES = list(yaml.safe_load_all((ROOT / "examples" / "kueue" / "queues.yaml").read_text()))
[LOCAL_QUEUE] = [each["metadata"] for each in QUEUES if each["kind"] == "LocalQueue"]
TENANT = """
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: v1
kind: Service
metadata: {name: outside, namespace: team}
spec: {type: LoadBalancer, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: notebook, namespace: team}
spec:
  selector: {matchLabels: {app: notebook}}
  template:
    metadata: {labels: {app: notebook}}
    spec: {containers: [{name: main, image: python}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: home, namespace: team}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: needed, namespace: kube-system}
"""


@dataclass(frozen=True)
class Workspace:
    """A workspace of a build, whose scripts reach the cluster."""

    cluster: Cluster
    folder: Path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.folder / 'tools'}:{os.environ['PATH']}"
        environment = {"PATH": path, "HOME": str(self.folder)}
        wrapped = ["setpriv", "--pdeathsig", "TERM", "bash", *command]
        return subprocess.run(
            wrapped,
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )


@pytest.fixture(scope="module")
def queued(programs: Programs, tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A control plane of this file's own: the scripts act on all that is in it."""
    with a_cluster(programs, tools, tmp_path_factory.mktemp("scripts")) as cluster, with_kueue(cluster):
        applied(cluster, *QUEUES)
        yield cluster


@pytest.fixture
def workspace(queued: Cluster, tmp_path: Path) -> Workspace:
    opened = ("patch", "clusterqueue", "research", "--type=merge", "-p", '{"spec": {"stopPolicy": "None"}}')
    assert queued.kubectl(*opened).code == 0
    made = smoke({"v4": FLAVOR}, LOCAL_QUEUE.get("namespace", "default"), LOCAL_QUEUE["name"])
    (tmp_path / "build" / "smoke").mkdir(parents=True)
    (tmp_path / "build" / "smoke" / "patch.json").write_text(json.dumps(made.patch))
    (tmp_path / "build" / "kubeconfig").symlink_to(queued.plane.kubeconfig)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "kubectl").symlink_to(queued.program)
    (tmp_path / "infra").symlink_to(ROOT / "infra")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return Workspace(queued, tmp_path)


def example() -> dict[str, Any]:
    """Return the device check without a queue, and without what JobSet's webhook sets."""
    found: dict[str, Any] = yaml.safe_load((ROOT / "examples" / "training" / "device-check.yaml").read_text())
    del found["metadata"]["labels"], found["spec"]["replicatedJobs"][0]["template"]["spec"]["completionMode"]
    return found


def test_queues_are_waited_for_until_they_are_active(workspace: Workspace) -> None:
    done = workspace.run(f"{FOLDER}/health.sh", "queues")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("condition met") == 2


def test_a_queued_jobset_shows_that_both_webhooks_answer_and_nothing_is_made(workspace: Workspace) -> None:
    done = workspace.run(f"{FOLDER}/health.sh", "webhooks")
    assert done.returncode == 0, done.stderr
    assert workspace.cluster.api.read(path("jobsets"))["items"] == []


def test_a_jobset_without_a_queue_shows_that_it_is_kueue_that_suspends(workspace: Workspace) -> None:
    (workspace.folder / "build" / "smoke" / "jobset.json").write_text(json.dumps(example()))
    done = workspace.run(f"{FOLDER}/health.sh", "defaulted")
    assert done.returncode == 1
    assert "became suspend= completionMode=Indexed, not suspend=true" in done.stderr


def test_what_teams_run_ends_and_what_the_cluster_needs_stays(workspace: Workspace) -> None:
    cluster = workspace.cluster
    assert workspace.run(f"{FOLDER}/health.sh", "webhooks").returncode == 0
    assert cluster.kubectl("create", "-f", str(workspace.folder / "build" / "smoke" / "jobset.json")).code == 0
    assert cluster.kubectl("apply", "-f", "-", stdin=TENANT).code == 0
    alone = {**example(), "metadata": {"name": "alone", "namespace": "team"}}
    assert cluster.kubectl("create", "-f", "-", stdin=json.dumps(alone)).code == 0
    until(lambda: cluster.api.read(path("jobs"))["items"], "the Jobs of a JobSet")
    done = workspace.run(f"{FOLDER}/drain.sh", "suspend")
    assert done.returncode == 0, done.stderr
    until(lambda: Team(cluster).suspended("smoke-check"), "Kueue to suspend what is in its queue")
    assert Team(cluster, "team").suspended("alone")

    done = workspace.run("infra/environments/drain.sh", "workloads")
    assert done.returncode == 0, done.stderr
    kinds = ("jobsets", "jobs", "deployments", "pods", "services", "persistentvolumeclaims")

    def left() -> set[str]:
        listed = [cluster.api.read(where)["items"] for where in (*map(path, kinds), ALL_WORKLOADS)]
        return {each["metadata"]["name"] for items in listed for each in items}

    until(lambda: left() <= {"kubernetes"}, "the end of pods that controllers made meanwhile")
    assert cluster.kubectl("get", "configmap", "needed", "-n", "kube-system").code == 0
    queues = cluster.api.read(CLUSTER_QUEUES)["items"]
    assert {each["spec"]["stopPolicy"] for each in queues} == {"HoldAndDrain"}
    assert workspace.run(f"{FOLDER}/drain.sh", "suspend").returncode == 0
    assert workspace.run("infra/environments/drain.sh", "workloads").returncode == 0
