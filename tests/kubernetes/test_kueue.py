"""Queued JobSets on a control plane without Kueue: JobSet's own controller, and Kueue's client, through kubectl."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from infra.local.kueue.installation import definitions
from infra.local.patience import PATIENCE_SECONDS
from infra.local.plan import REPOSITORY
from infra.local.processes import Program, Says
from tests.cluster.asking import done, path
from tests.kubernetes.cluster import Cluster, with_controller
from tests.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

Json = dict[str, Any]
QUEUES = (REPOSITORY / "examples" / "kueue" / "queues.yaml").read_text()
[JOBSET, _] = yaml.safe_load_all((REPOSITORY / "examples" / "kueue" / "jobsets.yaml").read_text())
GROUP = "kueue.x-k8s.io"
PLURALS = [kind.plural for kind, _ in definitions()]
WORKLOADS = f"/apis/{GROUP}/v1beta1/namespaces/default/workloads"


def client(cluster: Cluster, module: str) -> Program:
    command = (sys.executable, "-m", f"infra.local.{module}", "--kubeconfig", str(cluster.plane.kubeconfig))
    return Program(name=module, command=command, ready=Says("ready"), folder=REPOSITORY)


@pytest.fixture(scope="module")
def queued(cluster: Cluster) -> Iterator[Cluster]:
    with with_controller(cluster):
        with_queues(cluster)
        yield cluster
        cluster.processes.end(cluster.child("kueue"))
    assert cluster.kubectl("delete", "crd", *(f"{plural}.{GROUP}" for plural in PLURALS)).code == 0
    until(lambda: cluster.api.get(f"/apis/{GROUP}").code == 404, "the end of Kueue's kinds")


def with_queues(cluster: Cluster) -> None:
    """Start Kueue's client beside JobSet, and apply the example's queues."""
    cluster.processes.wait_until_ready(*cluster.processes.start(client(cluster, "kueue")))
    cluster.knows("resourceflavors", "clusterqueues", "localqueues")
    apply(cluster, QUEUES)


def apply(cluster: Cluster, manifest: str) -> None:
    said = cluster.kubectl("apply", "-f", "-", stdin=manifest)
    assert said.code == 0, said.error


def submit(cluster: Cluster, name: str) -> None:
    """Create a JobSet of 16 chips, in the queue with quota for one."""
    metadata = JOBSET["metadata"] | {"name": name, "annotations": {}}
    cluster.api.create(path("jobsets", "default"), JOBSET | {"metadata": metadata})


def workload(cluster: Cluster, jobset: str) -> Json:
    """Return a JobSet's Workload; empty while there is none."""
    found = cluster.api.read(WORKLOADS)["items"]
    return next((one for one in found if one["metadata"]["ownerReferences"][0]["name"] == jobset), {})


def condition(cluster: Cluster, jobset: str, kind: str) -> tuple[str, str]:
    """Return status and message."""
    conditions = workload(cluster, jobset).get("status", {}).get("conditions", [])
    found: Json = next((one for one in conditions if one["type"] == kind), {})
    return found.get("status", ""), found.get("message", "")


def suspended(cluster: Cluster, jobset: str, namespace: str = "default") -> bool:
    return cluster.api.read(path("jobsets", namespace, jobset))["spec"].get("suspend") is True


def pods(cluster: Cluster, jobset: str) -> list[str]:
    found = cluster.api.read(path("pods", "default"), labelSelector=f"jobset.sigs.k8s.io/jobset-name={jobset}")
    return [each["metadata"]["name"] for each in found["items"]]


def rows(cluster: Cluster, plural: str) -> list[list[str]]:
    """Return the rows that kubectl shows, without the first column and the last."""
    return [line.split()[1:-1] for line in cluster.kubectl("get", plural, "--no-headers").out.splitlines()]


def counts(cluster: Cluster) -> Json:
    """Return the status of the example's LocalQueue."""
    status: Json = cluster.api.read(f"/apis/{GROUP}/v1beta1/namespaces/default/localqueues/team-a")["status"]
    return status


def shown(cluster: Cluster, plural: str, *expected: list[str]) -> None:
    until(lambda: rows(cluster, plural) == list(expected), lambda: f"{expected}, not {rows(cluster, plural)}")


def run(cluster: Cluster, jobset: str) -> None:
    until(lambda: len(pods(cluster, jobset)) == 4, f"the four pods of {jobset}")


def tells(cluster: Cluster, jobset: str, text: str) -> None:
    """Wait until a JobSet waits for quota with this message."""
    expected = ("False", text)
    until(lambda: condition(cluster, jobset, "QuotaReserved") == expected, f"{jobset} to wait: {text}")


def succeed(cluster: Cluster, jobset: str) -> None:
    """Let a JobSet's pods end, which no kubelet runs."""
    for pod in pods(cluster, jobset):
        done(cluster.api.patch(path("pods", "default", pod, "status"), {"status": {"phase": "Succeeded"}}))
    until(lambda: condition(cluster, jobset, "Finished")[0] == "True", f"the end of {jobset}")


def remove(cluster: Cluster, *jobsets: str) -> None:
    for each in jobsets:
        done(cluster.api.delete(path("jobsets", "default", each)))
    until(lambda: not any(workload(cluster, name) for name in jobsets), "no Workloads")


LACKING = (
    "couldn't assign flavors to pod set workers: "
    "insufficient unused quota for google.com/tpu in flavor v5e, 16 more needed"
)


def test_the_second_waits_for_quota_says_why_and_starts_when_the_first_ends(queued: Cluster) -> None:
    submit(queued, "first")
    run(queued, "first")
    submit(queued, "second")
    tells(queued, "second", LACKING)
    assert LACKING in queued.kubectl("describe", "workloads").out
    assert suspended(queued, "second")
    assert pods(queued, "second") == []
    shown(queued, "workloads", ["team-a", "research", "True"], ["team-a", "False"])
    shown(queued, "queues", ["research", "1"])

    succeed(queued, "first")
    run(queued, "second")
    succeed(queued, "second")
    until(lambda: counts(queued) == {"admittedWorkloads": 0, "pendingWorkloads": 0}, "nobody in the queue")
    remove(queued, "first", "second")


def test_a_jobset_of_a_queue_is_created_suspended_and_one_of_none_is_not(queued: Cluster) -> None:
    asked = json.dumps(JOBSET | {"metadata": JOBSET["metadata"] | {"annotations": {}}})
    dry = ("create", "--dry-run=server", "-o", "jsonpath={.spec.suspend}", "-f", "-")
    assert queued.kubectl(*dry, stdin=asked).out == "true"
    assert queued.kubectl(*dry, stdin=asked.replace("queue-name", "no-queue")).out in ("", "false")


def test_it_takes_its_webhook_away_when_it_ends_and_goes_on_once_it_is_back(queued: Cluster) -> None:
    running = queued.child("kueue")
    running.ask_to_end()
    assert running.ended(within=PATIENCE_SECONDS)
    configurations = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    assert queued.api.get(f"{configurations}/tpu-slices-local-kueue").code == 404
    queued.processes.end(running)
    queued.processes.wait_until_ready(*queued.processes.start(client(queued, "kueue")))
    submit(queued, "again")
    run(queued, "again")
    remove(queued, "again")


def test_it_is_not_started_beside_a_kueue_that_is_not_ours(queued: Cluster) -> None:
    queued.processes.end(queued.child("kueue"))
    theirs = ("label", "crd", "clusterqueues.kueue.x-k8s.io", "--overwrite")
    try:
        assert queued.kubectl(*theirs, "app.kubernetes.io/managed-by=Helm").code == 0
        command = client(queued, "kueue").command
        said = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
        assert (said.returncode, said.stdout) == (0, "This cluster has its own Kueue; ours is not started.\n")
    finally:
        queued.kubectl(*theirs, "app.kubernetes.io/managed-by=tpu-slices-local")
        queued.processes.wait_until_ready(*queued.processes.start(client(queued, "kueue")))
