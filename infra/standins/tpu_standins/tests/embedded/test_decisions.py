"""What the scheduler and the Job controller decide."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tpu_standins.clients.conditions import Condition, find
from tpu_standins.embedded.controllers.job_plan import Plan, compact, new_pod, plan
from tpu_standins.embedded.controllers.nodes import taints
from tpu_standins.embedded.controllers.scheduler import Board, choose

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POOL = "cloud.google.com/gke-nodepool"
CHIPS = {"requests": {"google.com/tpu": "4"}}


def node(name: str, *, chips: str = "4", **spec: Any) -> dict[str, Any]:
    status = {"allocatable": {"google.com/tpu": chips, "pods": "10"}}
    return {"metadata": {"name": name, "labels": {POOL: f"pool-{name}"}}, "spec": spec, "status": status}


def pod(name: str, job: str = "a", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "resources": CHIPS}]
    metadata = {"name": name, "namespace": "team", "uid": name, "labels": {"job": job}}
    return {"metadata": metadata, "spec": {"containers": containers} | spec, "status": {"phase": "Pending"}}


def exclusive(job: str) -> dict[str, Any]:
    """Return the affinity of a leader: with its own Job, apart from all others."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"

    def term(operator: str) -> dict[str, Any]:
        wanted = {"matchExpressions": [{"key": "job", "operator": operator, "values": [job]}]}
        return {"topologyKey": POOL, "labelSelector": wanted}

    return {"podAffinity": {required: [term("In")]}, "podAntiAffinity": {required: [term("NotIn")]}}


def chosen(wanted: dict[str, Any], nodes: list[dict[str, Any]], there: list[dict[str, Any]] | None = None) -> str:
    """Return the node's name, or why there is none."""
    board = Board()
    for each in nodes:
        board.offer(each)
    for each in there or []:
        board.place(each)
    found = choose(wanted, board)
    return found.message if isinstance(found, Condition) else found


TAINT = {"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}
NO_ROOM: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "too few chips": (node("a", chips="2"), {}, "1 Insufficient google.com/tpu"),
    "a cordon": (node("a", unschedulable=True), {}, "1 node(s) were unschedulable"),
    "a taint": (node("a", taints=[TAINT]), {}, "1 node(s) had untolerated taint {google.com/tpu: present}"),
    "another label": (node("a"), {"nodeSelector": {POOL: "b"}}, "1 node(s) didn't match Pod's node affinity/selector"),
}


@pytest.mark.parametrize(("host", "spec", "why"), NO_ROOM.values(), ids=NO_ROOM)
def test_a_pod_that_fits_nowhere_is_told_why(host: dict[str, Any], spec: dict[str, Any], why: str) -> None:
    assert chosen(pod("one", **spec), [host]) == f"0/1 nodes are available: {why}."


def test_a_taint_that_is_tolerated_does_not_matter() -> None:
    tolerated = [{"key": "google.com/tpu", "operator": "Exists"}]
    assert chosen(pod("one", tolerations=tolerated), [node("a", taints=[TAINT])]) == "a"


def test_jobs_that_are_exclusive_do_not_share_a_domain() -> None:
    there = pod("leader-a", nodeName="a", affinity=exclusive("a"))
    hosts = [node("a", chips="8"), node("b", chips="8")]
    assert chosen(pod("leader-b", "b", affinity=exclusive("b")), hosts, [there]) == "b"
    assert chosen(pod("leader-a-2", "a", affinity=exclusive("a")), hosts, [there]) == "a"
    assert "anti-affinity" in chosen(pod("stranger", "c"), hosts[:1], [there])


def job(**spec: Any) -> dict[str, Any]:
    template = {"metadata": {}, "spec": {"containers": [{"name": "main"}]}}
    usual = {"completions": 3, "parallelism": 2, "suspend": False, "backoffLimit": 0, "completionMode": "Indexed"}
    metadata = {"name": "work", "namespace": "team", "uid": "u"}
    whole = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "status": {}}
    return whole | {"spec": usual | {"template": template} | spec}


def ran(of: dict[str, Any], index: int, phase: str, **more: Any) -> dict[str, Any]:
    made = new_pod(of, index)
    made["metadata"] |= {"name": f"work-{index}", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return made | {"status": {"phase": phase} | more}


def planned(of: dict[str, Any], *pods: dict[str, Any]) -> Plan:
    return plan(of, pods, NOW + timedelta(seconds=60), timedelta(seconds=10))


def test_pods_that_are_alike_are_placed_and_told_as_each_is_on_a_board_of_its_own() -> None:
    nodes = [node("c"), node("a"), node("b", unschedulable=True), node("d", chips="8")]
    board = Board()
    there: list[dict[str, Any]] = []
    for each in nodes:
        board.offer(each)
    for number in range(5):
        wanted = pod(f"p{number}")
        found = choose(wanted, board)
        assert (found.message if isinstance(found, Condition) else found) == chosen(wanted, nodes, there)
        if isinstance(found, str):
            wanted["spec"]["nodeName"] = found
            board.place(wanted)
            there.append(wanted)
    assert [each["spec"]["nodeName"] for each in there] == ["a", "c", "d", "d"]
    other = pod("other", tolerations=[{"operator": "Exists"}])
    assert choose(other, board) == "b" == chosen(other, nodes, there)
    board.offer(node("e"))
    assert choose(pod("late"), board) == "e"


def test_a_job_has_as_many_pods_as_may_run_at_once() -> None:
    assert planned(job()).missing == (0, 1)
    assert planned(job(), ran(job(), 0, "Running")).missing == (1,)
    assert planned(job(), ran(job(), 0, "Succeeded")).missing == (1, 2)


def test_a_suspended_job_gives_up_its_pods() -> None:
    decided = planned(job(suspend=True), ran(job(), 0, "Running"))
    assert ([each["metadata"]["name"] for each in decided.delete], decided.missing) == (["work-0"], ())
    assert find(decided.status["conditions"], "Suspended") is not None


def test_a_job_is_complete_with_its_last_pod() -> None:
    decided = planned(job(), *(ran(job(), index, "Succeeded") for index in range(3)))
    assert (decided.status["completedIndexes"], "completionTime" in decided.status) == ("0-2", True)
    assert [each["type"] for each in decided.status["conditions"]] == ["SuccessCriteriaMet", "Complete"]


def test_a_job_that_fails_ends_its_other_pods_first() -> None:
    decided = planned(job(), ran(job(), 0, "Failed"), ran(job(), 1, "Running"))
    assert [each["type"] for each in decided.status["conditions"]] == ["FailureTarget"]
    assert [each["metadata"]["name"] for each in decided.delete] == ["work-1"]


def test_a_disruption_that_the_policy_ignores_does_not_count() -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    of = job(podFailurePolicy={"rules": [rule]})
    gone = ran(of, 0, "Failed", conditions=[{"type": "DisruptionTarget", "status": "True"}])
    decided = planned(of, gone)
    assert (decided.status["failed"], decided.missing) == (0, (0, 1))


@pytest.mark.parametrize(("indexes", "text"), [([], ""), ([4], "4"), ([0, 2, 3, 4], "0,2-4")])
def test_indexes_are_written_as_ranges(indexes: list[int], text: str) -> None:
    assert compact(indexes) == text


@pytest.mark.parametrize(
    ("status", "keys"),
    [("True", []), ("False", ["node.kubernetes.io/not-ready"]), ("Unknown", ["node.kubernetes.io/unreachable"])],
)
def test_a_node_is_tainted_by_its_readiness(status: str, keys: list[str]) -> None:
    ready = {"conditions": [{"type": "Ready", "status": status}]}
    found = taints({"metadata": {"name": "a"}, "spec": {}, "status": ready}, NOW)
    assert [taint["key"] for taint in found if taint["effect"] == "NoExecute"] == keys
