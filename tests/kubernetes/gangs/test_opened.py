"""Gangs on a real control plane, with JobSet's own controller: no pod runs before the slices of all claims stand."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from infra.local.relay_account import open_account
from tests.kubernetes.cluster import Cluster, with_controller
from tests.kubernetes.gangs.stage import HOSTS, Stage, replicated_job
from tests.kubernetes.test_relay_recovers import addressed, relaying
from tests.published import Published
from tpu_slices.domain.model.facts import HostsChanged
from tpu_slices.domain.model.gangs import GANG
from tpu_slices.wire.jobsets import RESTART_ATTEMPT
from tpu_standins.clients.api import Api
from tpu_standins.testing.jobsets import annotated
from tpu_standins.testing.parts import program
from tpu_standins.testing.places import namespace_for
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

IN_ORDER = {"startupPolicy": {"startupPolicyOrder": "InOrder"}}


@pytest.fixture(scope="module")
def stage(cluster: Cluster, pubsub_emulator: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    processes, kubeconfig = cluster.processes, cluster.plane.kubeconfig
    with (
        pytest.MonkeyPatch.context() as patch,
        with_controller(cluster),
        closing(Api.of(kubeconfig)) as api,
    ):
        patch.setenv("PUBSUB_EMULATOR_HOST", pubsub_emulator)
        processes.wait_until_ready(*processes.start(program("kubelet", kubeconfig)))
        published = Published(f"test-{uuid.uuid4().hex[:16]}")
        addresses = addressed(cluster, published.project, pubsub_emulator, tmp_path_factory.mktemp("relay"))
        open_account(addresses)
        [relay] = processes.start(relaying(addresses))
        processes.wait_until_ready(relay)
        one = Stage(cluster=cluster, addresses=addresses, published=published, api=api, relay=relay)
        yield one
        processes.end(one.relay)
        processes.end(cluster.child("kubelet"))


@pytest.fixture
def place(stage: Stage, request: pytest.FixtureRequest) -> str:
    """Return the name of a namespace of the test's own."""
    return namespace_for(stage.api, request.node.name)


def after(name: str, status: str) -> dict[str, Any]:
    return {"dependsOn": [{"name": name, "status": status}]}


def test_no_pod_is_let_go_before_the_slices_of_all_claims_stand(stage: Stage, place: str) -> None:
    jobset = stage.create(place, replicated_job(replicas=2))
    stage.held(place, 2)
    (told,) = until(lambda: stage.wanted(jobset), "the demand")
    assert sorted(leader.job_index for leader in told.waiting) == [0, 1]
    stage.add_slice(jobset, 0)

    def stands() -> bool:
        facts = (fact for fact in stage.published.pull() if isinstance(fact, HostsChanged))
        return any(fact.usable == HOSTS and place in fact.slice_id for fact in facts)

    until(stands, "the first slice")
    stage.held(place, 2)
    stage.add_slice(jobset, 1)
    stage.running(place, 2 * HOSTS)


def test_each_time_a_jobset_is_started_anew_its_pods_are_held_and_let_go(stage: Stage, place: str) -> None:
    pod = annotated(run_seconds="1", fail_until_restart="3")
    jobset = stage.create(place, replicated_job(replicas=2, pod=pod), failurePolicy={"maxRestarts": 3})
    stage.held(place, 2)
    for claim in range(2):
        stage.add_slice(jobset, claim)
    until(lambda: stage.told(place, "AllJobsCompleted"), "the end of the JobSet")
    opened = [line for line in stage.relay.output().splitlines() if "gang.opened" in line and place in line]
    assert len(opened) >= 4


@pytest.mark.parametrize(
    ("spec", "second"), [(IN_ORDER, {}), ({}, after("first", "Ready"))], ids=["in order", "once the first is ready"]
)
def test_what_comes_later_is_asked_for_with_what_comes_first(
    stage: Stage, place: str, spec: dict[str, Any], second: dict[str, Any]
) -> None:
    jobset = stage.create(place, replicated_job("first", 1), replicated_job("second", 1, **second), **spec)
    stage.held(place, 1)
    (told,) = until(lambda: stage.wanted(jobset), "the demand")
    assert [(leader.replicated_job, leader.node_selector is None) for leader in told.waiting] == [
        ("first", False),
        ("second", True),
    ]
    stage.add_slice(jobset, 0)
    stage.held(place, 1)
    stage.add_slice(jobset, 1)
    stage.running(place, HOSTS, replicatedjob_name="first")
    stage.running(place, HOSTS, replicatedjob_name="second")


def test_what_comes_once_the_first_is_complete_is_a_gang_of_its_own(stage: Stage, place: str) -> None:
    first = replicated_job("first", 1, pod=annotated(run_seconds="1"))
    jobset = stage.create(place, first, replicated_job("second", 1, **after("first", "Complete")))
    stage.held(place, 1)
    stage.add_slice(jobset, 0)
    (held,) = until(
        lambda: [each for each in stage.held(place, 1) if "second" in each["metadata"]["name"]], "the second"
    )
    assert held
    stage.add_slice(jobset, 1)
    stage.running(place, HOSTS, replicatedjob_name="second")


def test_a_relay_that_comes_back_lets_go_what_stands_by_then(stage: Stage, place: str) -> None:
    jobset = stage.create(place, replicated_job(replicas=2))
    stage.held(place, 2)
    stage.kill_relay()
    for claim in range(2):
        stage.add_slice(jobset, claim)
    stage.held(place, 2)
    stage.start_relay()
    stage.running(place, 2 * HOSTS)


def test_what_a_relay_left_half_done_the_next_one_completes(stage: Stage, place: str) -> None:
    jobset = stage.create(place, replicated_job(replicas=3))
    first, *_ = stage.held(place, 3)
    stage.kill_relay()
    for claim in range(3):
        stage.add_slice(jobset, claim)
    stage.api.patch("pods", place, first["metadata"]["name"], {"spec": {"schedulingGates": None}})
    stage.running(place, 1)
    stage.held(place, 3)  # the two other leaders, and the pod beside the first
    stage.start_relay()
    stage.running(place, 3 * HOSTS)


def test_what_restarts_on_slices_that_stand_while_the_relay_is_away_waits_for_it_alone(
    stage: Stage, place: str
) -> None:
    jobset = stage.create(place, replicated_job(replicas=2), failurePolicy={"maxRestarts": 1})
    stage.held(place, 2)
    for claim in range(2):
        stage.add_slice(jobset, claim)
    (first, *_) = stage.running(place, 2 * HOSTS)
    stage.kill_relay()
    stage.api.delete("pods", place, first["metadata"]["name"])
    anew = stage.held(place, 2)
    assert {pod["metadata"]["labels"][RESTART_ATTEMPT] for pod in anew} == {"1"}
    stage.start_relay()  # no function is there to tell it anything
    stage.running(place, 2 * HOSTS, restart_attempt="1")


def test_pods_that_are_held_and_of_no_gang_are_let_go_and_their_jobset_told(stage: Stage, place: str) -> None:
    stage.create(place, replicated_job(replicas=1), gang="none")
    told = stage.told(place, "NotInGang")
    assert told["involvedObject"]["kind"] == "JobSet"
    assert "is of no gang" in told["message"]
    until(lambda: all("schedulingGates" not in pod["spec"] for pod in stage.pods(place)), "pods that nothing holds")


@pytest.fixture
def without_policies(cluster: Cluster) -> Iterator[None]:
    cluster.unpin()
    yield
    cluster.pin()


@pytest.mark.usefixtures("without_policies")
def test_a_gang_that_nothing_holds_is_told(stage: Stage, place: str) -> None:
    nowhere = {"team": "nobody"}  # nothing else keeps these pods off the hosts of other tests
    stage.create(place, replicated_job(replicas=2, held=False, selector=nowhere))
    told = stage.told(place, "GangNotHeld")
    assert (told["involvedObject"]["kind"], told["type"]) == ("JobSet", "Warning")
    assert GANG in told["message"]
