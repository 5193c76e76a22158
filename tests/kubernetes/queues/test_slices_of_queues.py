"""The relay as it is deployed, between Kueue's and JobSet's own controllers: quota, demand, hosts, admission, pods."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest

from infra.kubernetes.overlay import NAMESPACE, account_of
from infra.local.relay_account import open_account
from relay.kueue.objects import CheckState
from tests.cluster.accounts import token_of
from tests.cluster.asking import done, path
from tests.kubernetes.queues.checks import says
from tests.kubernetes.queues.queued import API, Json, Team, a_cluster, applied, with_kueue
from tests.kubernetes.queues.test_admission_check import OBJECTS, queue, uid_of
from tests.kubernetes.test_relay_recovers import addressed, relaying
from tests.published import Published
from tests.relay.objects import node
from tpu_slices.domain.model.facts import SlicesWanted, WorkloadChanged, WorkloadState
from tpu_standins.kubernetes.programs import Programs
from tpu_standins.prerequisites import Tools
from tpu_standins.processes import Child
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


@dataclass
class Stage:
    """A team's queue, the relay, and what that has published."""

    team: Team
    published: Published
    relay: Child

    def states(self, uid: str) -> list[WorkloadState]:
        facts = [each for each in self.published.pull() if isinstance(each, WorkloadChanged)]
        return [each.state for each in facts if each.workload.owner.uid == uid]

    def wanted(self, uid: str) -> list[SlicesWanted]:
        facts = [each for each in self.published.pull() if isinstance(each, SlicesWanted)]
        return [each for each in facts if each.workload.owner.uid == uid]

    def asks(self, uid: str, after: int = 0) -> SlicesWanted:
        """Wait until a workload asks for slices, once more than so many times; return how."""
        return until(lambda: self.wanted(uid)[after:], f"the demand of {uid}")[-1]

    def makes(self, name: str, uid: str, job: int = 0, **labels: str) -> None:
        """Let the hosts of a Job's slice join, with its key."""
        for number in range(4):
            done(
                self.team.cluster.api.post(path("nodes"), host(f"{name}-{job}-{number}", name, f"{uid}.j{job}", labels))
            )

    def loses(self, name: str) -> None:
        for each in self.team.cluster.api.read(path("nodes"))["items"]:
            if each["metadata"]["name"].startswith(f"{name}-"):
                done(self.team.cluster.api.delete(path("nodes", name=each["metadata"]["name"])))


def host(name: str, slice_: str, key: str, labels: dict[str, str]) -> Json:
    """Return a node of a slice of 16 chips on 4 hosts, with the labels of its pool."""
    own = {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
        "cloud.google.com/gke-tpu-topology": "4x4",
        "cloud.google.com/gke-accelerator-count": "4",
        "google.com/nodepool-manager": "tpu-provisioner",
        "google.com/tpu-slice-id": f"tpu-{slice_}-workers-0-aaaaaaaaaaaaa",
        "google.com/tpu-slice-attempt": "1",
        "google.com/tpu-slice-owner-uid": key.partition(".")[0],
        "google.com/tpu-slice-key": key,
    }
    made = node(0)
    chips = {"google.com/tpu": "4", "cpu": "100", "memory": "200Gi", "pods": "110"}
    status = made["status"] | {"allocatable": chips, "capacity": chips}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": own | labels}, "status": status}


@pytest.fixture(scope="module")
def shared_stage(
    programs: Programs, tools: Tools, pubsub_emulator: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    with (
        a_cluster(programs, tools, tmp_path_factory.mktemp("slices")) as cluster,
        with_kueue(cluster),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("PUBSUB_EMULATOR_HOST", pubsub_emulator)
        published = Published(f"test-{uuid.uuid4().hex[:16]}")
        addresses = addressed(cluster, published.project, pubsub_emulator, tmp_path_factory.mktemp("relay"))
        open_account(addresses)
        applied(cluster, *OBJECTS, queue())
        [relay] = cluster.processes.start(relaying(addresses))
        cluster.processes.wait_until_ready(relay)
        one = Stage(Team(cluster), published, relay)
        yield one
        cluster.processes.end(one.relay)


@pytest.fixture
def stage(shared_stage: Stage) -> Iterator[Stage]:
    yield shared_stage
    shared_stage.team.clear()


def test_a_jobset_has_quota_then_its_slice_then_its_pods(stage: Stage) -> None:
    team = stage.team
    team.submit("first")
    uid = uid_of(team, "first")
    wanted = stage.asks(uid)
    assert [each.job_index for each in wanted.waiting] == [0]
    [request] = wanted.requests
    assert ("team.example.com/kind", "reserved") in request.node_selector
    assert wanted.workload.as_of is not None
    says(team, "first", CheckState.PENDING, "0 of 1 slices stand.")
    assert team.pods("first") == []
    stage.makes("first", uid)
    says(team, "first", CheckState.READY, "1 of 1 slices stand.")
    team.runs("first")
    team.remove("first")
    stage.loses("first")


def test_one_of_two_slices_is_not_enough(stage: Stage) -> None:
    team = stage.team
    applied(team.cluster, queue(chips=32))
    team.submit("pair", jobs=2)
    uid = uid_of(team, "pair")
    assert [each.job_index for each in stage.asks(uid).waiting] == [0, 1]
    stage.makes("pair", uid)
    says(team, "pair", CheckState.PENDING, "1 of 2 slices stand.")
    assert team.pods("pair") == []
    team.remove("pair")
    stage.loses("pair")
    applied(team.cluster, queue())


def test_one_that_is_preempted_as_its_slice_is_made_is_suspended_again(stage: Stage) -> None:
    team = stage.team
    team.submit("low")
    low = uid_of(team, "low")
    stage.asks(low)
    team.submit("high", priority="high")
    high = uid_of(team, "high")
    stage.asks(high)
    until(lambda: stage.states(low)[-1:] == [WorkloadState.SUSPENDED], "the suspension of the other")
    generations = {each.workload.generation for each in stage.wanted(low)}
    assert generations == {1}, "all of this at one generation"
    team.remove("low", "high")


def test_a_relay_that_starts_anew_lets_nothing_go(stage: Stage) -> None:
    team = stage.team
    team.submit("held")
    uid = uid_of(team, "held")
    stage.asks(uid)
    told = stage.states(uid)
    program = stage.relay.program
    team.cluster.processes.end(stage.relay)
    [stage.relay] = team.cluster.processes.start(program)
    team.cluster.processes.wait_until_ready(stage.relay)
    stage.asks(uid, after=len(stage.wanted(uid)))
    assert WorkloadState.SUSPENDED not in stage.states(uid)[len(told) :]
    stage.makes("held", uid)
    says(team, "held", CheckState.READY)
    team.runs("held")
    team.remove("held")
    stage.loses("held")


THEN = {"message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
HOSTILE: dict[str, Any] = {
    "a check more": {"admissionChecks": [{"name": "x", "state": "Ready", **THEN}]},
    "no checks": {"admissionChecks": None},
    "a condition": {"conditions": [{"type": "Admitted", "status": "True", "reason": "A", **THEN}]},
    "no admission": {"admission": None},
    "another time in the queue": {"requeueState": {"count": 1}},
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_the_relay_may_write_nothing_else_of_a_workload(stage: Stage, change: Json) -> None:
    team = stage.team
    team.submit("target")
    says(team, "target", CheckState.PENDING, "0 of 1 slices stand.")
    where = f"{API}/namespaces/default/workloads/{team.workload('target')['metadata']['name']}/status"
    with closing(team.cluster.api.with_token(token_of(team.cluster.api, NAMESPACE, account_of("demo")))) as relay:
        answer = relay.patch(where, {"status": change}, dryRun="All")
    assert answer.refusal == (403, "Forbidden")
    assert "Of Kueue's Workloads the relay may write" in answer.body["message"]
    team.remove("target")
