"""What `slices plan` refuses for its names is what the real API server and the controllers' own webhooks refuse."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from tests.cli.applied.asking import a_job, a_jobset, groups, job_of
from tests.kubernetes.cluster import Cluster, Json, with_controller
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices_cli.applied.creation import refused_on_creation
from tpu_standins.controllers.catalogue import LWS

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]
PATHS = {
    OwnerKind.JOBSET: "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets",
    OwnerKind.JOB: "/apis/batch/v1/namespaces/default/jobs",
    OwnerKind.LEADER_WORKER_SET: "/apis/leaderworkerset.x-k8s.io/v1/namespaces/default/leaderworkersets",
}


@pytest.fixture(scope="module")
def served(cluster: Cluster) -> Iterator[Cluster]:
    with with_controller(cluster), with_controller(cluster, LWS):
        yield cluster


def jobset(name: str = "llama", job: Json | None = None, **spec: Any) -> tuple[OwnerKind, Json]:
    made = a_jobset(name)
    made["spec"] |= spec
    job_of(made).update(job or {})
    return OwnerKind.JOBSET, made


def twice() -> tuple[OwnerKind, Json]:
    kind, made = jobset()
    made["spec"]["replicatedJobs"] *= 2
    return kind, made


def job(name: str, **spec: Any) -> tuple[OwnerKind, Json]:
    made = deepcopy(a_job()[1])
    made["metadata"]["name"] = name
    made["spec"] |= spec
    return OwnerKind.JOB, made


def group(name: str) -> tuple[OwnerKind, Json]:
    made = groups()
    made["metadata"]["name"] = name
    return OwnerKind.LEADER_WORKER_SET, made


AT_LONGEST, NOBODY = "a" * 45, ["trainers"]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        pytest.param(*jobset(), id="a JobSet with which nothing is wrong"),
        pytest.param(*jobset(AT_LONGEST), id="the longest name of a JobSet"),
        pytest.param(*jobset(f"{AT_LONGEST}a"), id="a name too long by one"),
        pytest.param(*jobset("1st"), id="a digit first"),
        pytest.param(*jobset("a.b"), id="a point in the name"),
        pytest.param(*jobset(network={"subdomain": "a" * 64}), id="a long subdomain"),
        pytest.param(*jobset("a" * 40, coordinator={"replicatedJob": "workers"}), id="a long coordinator"),
        pytest.param(*jobset(coordinator={"replicatedJob": "workers"}), id="a coordinator"),
        pytest.param(*jobset(coordinator={"replicatedJob": NOBODY[0]}), id="a coordinator that is not there"),
        pytest.param(
            *jobset(successPolicy={"operator": "All", "targetReplicatedJobs": NOBODY}), id="the success of nobody"
        ),
        pytest.param(
            *jobset(failurePolicy={"rules": [{"action": "FailJobSet", "targetReplicatedJobs": NOBODY}]}),
            id="the failure of nobody",
        ),
        pytest.param(*twice(), id="two of one name"),
        pytest.param(*job("a" * 61), id="the longest name of a Job"),
        pytest.param(*job("a" * 62), id="a hostname too long by one"),
        pytest.param(*job("a.b"), id="a point in a hostname"),
        pytest.param(*job("a", completions=None), id="a Job without completions"),
        pytest.param(*group("serve"), id="a LeaderWorkerSet with which nothing is wrong"),
        pytest.param(*group("a.b"), id="a point in the name of a LeaderWorkerSet"),
        pytest.param(*group("1st"), id="a digit first in that"),
    ],
)
def test_plan_refuses_what_the_server_refuses(served: Cluster, kind: OwnerKind, body: Json) -> None:
    refused = [*refused_on_creation(body, kind, str(body["metadata"]["name"]))]
    reply = served.post(f"{PATHS[kind]}?dryRun=All", body)
    assert bool(refused) == bool(reply.refused), (refused, reply.refused)


def test_a_jobset_without_completions_is_taken_and_none_of_its_jobs_is(served: Cluster) -> None:
    kind, made = jobset()
    del job_of(made)["completions"]
    assert list(refused_on_creation(made, kind, "llama"))
    reply = served.post(f"{PATHS[kind]}?dryRun=All", made)
    assert reply.object, reply.refused
    template = reply.object["spec"]["replicatedJobs"][0]["template"]
    of_it = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "llama-workers-0"}, "spec": template["spec"]}
    assert "spec.completions" in served.post(f"{PATHS[OwnerKind.JOB]}?dryRun=All", of_it).refused
