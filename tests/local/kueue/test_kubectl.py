"""Kueue as people use it: two JobSets with quota for one, through kubectl."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.local.cluster.objects import Object
from tests.local.cluster.served import Served, serving
from tests.local.controllers.cluster import annotated, node, replicated_job
from tests.local.kueue.world import QUEUE, queued

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.timeout(90)]

QUEUES = str(Path(__file__).with_name("queues.yaml"))
LACKING = "insufficient unused quota for google.com/tpu in flavor v5litepod-8, 8 more needed"


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("kueue"), "--kueue-wait-for-pods-ready", "300") as one:
        yield one


def manifest(name: str, seconds: str) -> Object:
    job = replicated_job(replicas=1, pod=annotated(run_seconds=seconds))
    made = queued(name, job, labels={QUEUE: "tpu-job-queue"})
    return made | {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def wait(served: Served, condition: str, *objects: str) -> None:
    done = served.kubectl("wait", f"--for=condition={condition}", "--timeout=12s", *objects)
    assert done.code == 0, done


def submit(served: Served, jobset: str, seconds: str) -> str:
    """Create a JobSet whose pods run for so long; wait for its Workload and return its name."""
    assert served.kubectl("create", "-f-", stdin=manifest(jobset, seconds)).error == ""
    uid = served.kubectl("get", "jobset", jobset, "-o", "jsonpath={.metadata.uid}").out
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        found = served.kubectl("get", "workloads", "-l", f"kueue.x-k8s.io/job-uid={uid}", "-o", "name").out.split()
        if found:
            return found[0]
    raise AssertionError(f"no Workload for the JobSet {jobset}")


def test_two_jobsets_share_the_quota_of_one(living: Served) -> None:
    assert living.kubectl("apply", "-f", QUEUES).error == ""
    for index in range(2):
        host = node(f"host-{index}") | {"apiVersion": "v1", "kind": "Node"}
        assert living.kubectl("create", "-f-", stdin=host).code == 0
    first = submit(living, "first", seconds="600")
    wait(living, "Admitted", first)
    second = submit(living, "second", seconds="1")
    wait(living, "Admitted=false", second)
    shown = rows(living.kubectl("get", "workloads").out)
    assert shown[0] == ["NAME", "QUEUE", "RESERVED", "IN", "ADMITTED", "FINISHED", "AGE"]
    assert shown[1][1:4] == ["tpu-job-queue", "cluster-queue", "True"]
    assert shown[2][1:3] == ["tpu-job-queue", "False"]
    assert rows(living.kubectl("get", "queue").out)[1] == ["tpu-job-queue", "cluster-queue", "1", "1"]
    assert rows(living.kubectl("get", "cq", "-o", "wide").out)[1] == ["cluster-queue", "1", "BestEffortFIFO", "1"]
    assert LACKING in living.kubectl("describe", second).out
    assert rows(living.kubectl("get", "jobset", "second", "-o", "jsonpath={.spec.suspend}").out) == [["true"]]

    wait(living, "PodsReady", first)
    of_first = ("-l", "jobset.sigs.k8s.io/jobset-name=first")
    assert living.kubectl("annotate", "pods", *of_first, "--overwrite", "local.kubelet/run-seconds=0").code == 0
    wait(living, "Finished", first)
    wait(living, "Finished", second)
    events = living.kubectl("events", "--for", second).out
    for reason in ("WaitingForQuota", "QuotaReserved", "Admitted"):
        assert reason in events
    assert "Started" in living.kubectl("events", "--for", "jobset/second").out


def test_a_field_that_kueue_does_not_have_is_refused(living: Served) -> None:
    wrong = Path(QUEUES).read_text().replace("nominalQuota", "quota")
    path = living.kubeconfig.parent / "wrong.yaml"
    path.write_text(wrong)
    refused = living.kubectl("create", "--dry-run=server", "-f", str(path))
    assert refused.code == 1
    assert 'unknown field "spec.resourceGroups[0].flavors[0].resources[0].quota"' in refused.error


def test_the_fields_are_explained(living: Served) -> None:
    shown = living.kubectl("explain", "clusterqueue.spec.resourceGroups.flavors.resources")
    assert shown.error == ""
    assert "nominalQuota" in shown.out
    assert "How much of the resource the admitted Workloads may use in total." in shown.out
