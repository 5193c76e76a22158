"""Queued JobSets on a control plane without Kueue: JobSet's and Kueue's clients, through kubectl."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from infra.local.kueue.installation import definitions
from infra.local.plan import REPOSITORY
from infra.local.processes import Program, Says
from tests.kubernetes.cluster import Cluster
from tests.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

Json = dict[str, Any]
QUEUES = (REPOSITORY / "examples" / "kueue" / "queues.yaml").read_text()
[JOBSET, _] = yaml.safe_load_all((REPOSITORY / "examples" / "kueue" / "jobsets.yaml").read_text())
GROUP = "kueue.x-k8s.io"
PLURALS = [kind.plural for kind, _ in definitions()]
PRIORITY = f"{GROUP}/priority-class"
HIGH = {
    "apiVersion": "kueue.x-k8s.io/v1beta1",
    "kind": "WorkloadPriorityClass",
    "metadata": {"name": "high"},
    "value": 1000,
}


def client(cluster: Cluster, module: str) -> Program:
    command = (sys.executable, "-m", f"infra.local.{module}", "--kubeconfig", str(cluster.plane.kubeconfig))
    return Program(name=module, command=command, ready=Says("ready"), folder=REPOSITORY)


@pytest.fixture(scope="module")
def queued(cluster: Cluster) -> Iterator[Cluster]:
    for module in ("jobset", "kueue"):
        cluster.processes.wait_until_ready(*cluster.processes.start(client(cluster, module)))
    apply(cluster, QUEUES)
    yield cluster
    for module in ("kueue", "jobset"):
        cluster.processes.end(cluster.child(module))
    assert cluster.kubectl("delete", "crd", *(f"{plural}.{GROUP}" for plural in PLURALS)).code == 0
    wait(lambda: cluster.kubectl("get", "--raw", f"/apis/{GROUP}").code == 1, "the end of Kueue's kinds")


def apply(cluster: Cluster, manifest: str) -> None:
    done = cluster.kubectl("apply", "-f", "-", stdin=manifest)
    assert done.code == 0, done.error


def submit(cluster: Cluster, name: str, **labels: str) -> None:
    """Apply a JobSet of 16 chips, in the queue with quota for one."""
    metadata = JOBSET["metadata"] | {"name": name, "annotations": {}}
    apply(cluster, json.dumps(JOBSET | {"metadata": metadata | {"labels": metadata["labels"] | labels}}))


def workload(cluster: Cluster, jobset: str) -> Json:
    """Return a JobSet's Workload; empty while there is none."""
    found = json.loads(cluster.kubectl("get", "workloads", "-o", "json").out)["items"]
    return next((one for one in found if one["metadata"]["ownerReferences"][0]["name"] == jobset), {})


def condition(cluster: Cluster, jobset: str, kind: str) -> tuple[str, str]:
    """Return status and message."""
    conditions = workload(cluster, jobset).get("status", {}).get("conditions", [])
    found: Json = next((one for one in conditions if one["type"] == kind), {})
    return found.get("status", ""), found.get("message", "")


def suspended(cluster: Cluster, jobset: str) -> bool:
    return cluster.kubectl("get", "jobset", jobset, "-o", "jsonpath={.spec.suspend}").out == "true"


def pods(cluster: Cluster, jobset: str) -> list[str]:
    return cluster.kubectl("get", "pods", "-l", f"jobset.sigs.k8s.io/jobset-name={jobset}", "-o", "name").out.split()


def rows(cluster: Cluster, plural: str) -> list[list[str]]:
    """Return the rows that kubectl shows, without the columns NAME and AGE."""
    return [line.split()[1:-1] for line in cluster.kubectl("get", plural).out.splitlines()]


def flavor(labels: Json) -> str:
    """Return the example's ResourceFlavor with these node labels."""
    return json.dumps(next(yaml.safe_load_all(QUEUES)) | {"spec": {"nodeLabels": labels}})


def stop(cluster: Cluster, policy: str) -> None:
    change = json.dumps({"spec": {"stopPolicy": policy}})
    assert cluster.kubectl("patch", "clusterqueue", "research", "--type=merge", "-p", change).code == 0


def wait(done: Callable[[], bool], what: str) -> None:
    until(done, what)


def run(cluster: Cluster, jobset: str) -> None:
    wait(lambda: len(pods(cluster, jobset)) == 4, f"the four pods of {jobset}")


def tells(cluster: Cluster, jobset: str, text: str) -> None:
    """Wait until a JobSet waits for quota with this message."""
    expected = ("False", text)
    wait(lambda: condition(cluster, jobset, "QuotaReserved") == expected, f"{jobset} to wait: {text}")


def succeed(cluster: Cluster, jobset: str) -> None:
    """Let a JobSet's pods end, which no kubelet runs."""
    for pod in pods(cluster, jobset):
        cluster.kubectl(
            "patch", pod, "--subresource=status", "--type=merge", "-p", '{"status": {"phase": "Succeeded"}}'
        )
    wait(lambda: condition(cluster, jobset, "Finished")[0] == "True", f"the end of {jobset}")


def remove(cluster: Cluster, *jobsets: str) -> None:
    cluster.kubectl("delete", "jobset", *jobsets)
    wait(lambda: not any(workload(cluster, name) for name in jobsets), "no Workloads")


SELECTOR = "jsonpath={.spec.replicatedJobs[0].template.spec.template.spec.nodeSelector.zone}"
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
    assert rows(queued, "workloads")[1:] == [["team-a", "research", "True"], ["team-a", "False"]]
    assert rows(queued, "queues")[1:] == [["research", "1"]]

    succeed(queued, "first")
    run(queued, "second")
    succeed(queued, "second")
    assert queued.kubectl("get", "localqueue", "team-a", "-o", "jsonpath={.status}").out == (
        '{"admittedWorkloads":0,"pendingWorkloads":0}'
    )
    remove(queued, "first", "second")


def test_a_jobset_of_a_queue_is_created_suspended_and_one_of_none_is_not(queued: Cluster) -> None:
    asked = json.dumps(JOBSET | {"metadata": JOBSET["metadata"] | {"annotations": {}}})
    dry = ("create", "--dry-run=server", "-o", "jsonpath={.spec.suspend}", "-f", "-")
    assert queued.kubectl(*dry, stdin=asked).out == "true"
    assert queued.kubectl(*dry, stdin=asked.replace("queue-name", "no-queue")).out in ("", "false")


def test_the_higher_priority_goes_first_although_it_came_later(queued: Cluster) -> None:
    apply(queued, json.dumps(HIGH))
    submit(queued, "runs")
    run(queued, "runs")
    submit(queued, "early")
    tells(queued, "early", LACKING)
    submit(queued, "urgent", **{PRIORITY: "high"})
    tells(queued, "urgent", LACKING)
    succeed(queued, "runs")
    run(queued, "urgent")
    tells(queued, "early", LACKING)
    assert pods(queued, "early") == []
    remove(queued, "runs", "early", "urgent")


def test_a_drained_queue_stops_what_runs_and_resumes_it_when_it_opens(queued: Cluster) -> None:
    apply(queued, flavor({"zone": "a"}))
    submit(queued, "train")
    run(queued, "train")
    assert queued.kubectl("get", "jobset", "train", "-o", SELECTOR).out == "a"
    stop(queued, "HoldAndDrain")
    tells(queued, "train", "The ClusterQueue is stopped")
    assert suspended(queued, "train")
    wait(lambda: pods(queued, "train") == [], "no pods")
    assert queued.kubectl("get", "jobset", "train", "-o", SELECTOR).out == ""
    apply(queued, flavor({}))
    stop(queued, "None")
    run(queued, "train")
    assert condition(queued, "train", "Evicted")[0] == "False"
    assert queued.kubectl("get", "jobset", "train", "-o", SELECTOR).out == ""
    remove(queued, "train")


def test_a_jobset_whose_queue_does_not_exist_waits_for_it(queued: Cluster) -> None:
    submit(queued, "lost", **{"kueue.x-k8s.io/queue-name": "team-b"})
    tells(queued, "lost", 'localqueues "team-b" not found')
    apply(queued, QUEUES.replace("team-a", "team-b"))
    run(queued, "lost")
    remove(queued, "lost")
    assert queued.kubectl("delete", "localqueue", "team-b").code == 0


def test_it_ends_promptly_and_then_jobsets_are_not_held_up(queued: Cluster) -> None:
    queued.processes.end(queued.child("kueue"))
    assert queued.kubectl("get", "mutatingwebhookconfigurations", "tpu-slices-local-kueue").code == 1
    queued.processes.wait_until_ready(*queued.processes.start(client(queued, "kueue")))
    submit(queued, "again")
    run(queued, "again")
    remove(queued, "again")


def test_it_is_not_started_beside_a_kueue_that_is_not_ours(queued: Cluster) -> None:
    queued.processes.end(queued.child("kueue"))
    theirs = ("label", "crd", "clusterqueues.kueue.x-k8s.io", "--overwrite")
    try:
        assert queued.kubectl(*theirs, "app.kubernetes.io/managed-by=Helm").code == 0
        done = subprocess.run(client(queued, "kueue").command, capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, done.stdout) == (0, "This cluster has its own Kueue; ours is not started.\n")
    finally:
        queued.kubectl(*theirs, "app.kubernetes.io/managed-by=tpu-slices-local")
        queued.processes.wait_until_ready(*queued.processes.start(client(queued, "kueue")))
