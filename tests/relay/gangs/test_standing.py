"""Whose slices stand, so that its pods are let go."""

import hashlib
from typing import Any

import pytest

from relay.hosts.closing import CLOSED
from tests.relay.closing import question
from tests.relay.gangs.objects import GATED, Gate, gang, gated, hosts
from tests.relay.objects import (
    Json,
    bound_pod,
    group_pod,
    job,
    job_pod,
    jobset,
    leader_worker_set,
    node,
    pod,
    replicated_job,
)
from tpu_slices.domain.model.gangs import GANG
from tpu_slices.domain.model.slices import ClaimId
from tpu_slices.domain.planning.keys import KEY_LABEL

ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
HELD = {"schedulingGates": [{"name": GANG}]}
DELETED = {"deletionTimestamp": "2026-11-01T12:00:00Z"}


@pytest.fixture
def gate() -> Gate:
    return Gate()


def ended(index: int, phase: str = "Succeeded") -> Json:
    return bound_pod(index, "gone", phase=phase)


def test_pods_are_let_go_once_the_slices_of_all_claims_stand(gate: Gate) -> None:
    gate.see(gang(replicas=2), gated(0), gated(1), *hosts(0), *hosts(1)[:3])
    assert gate.opens() == []
    gate.see(hosts(1)[3])
    assert gate.opens() == ["pod-0", "pod-1"]


def test_pods_wait_for_claims_that_have_no_pods_yet(gate: Gate) -> None:
    gate.see(gang(replicas=2), gated(0), *hosts(0))
    assert gate.opens() == []
    gate.see(*hosts(1))
    assert gate.opens() == ["pod-0"]


@pytest.mark.parametrize(
    "broken",
    [
        {"ready": False},
        {"offers": "3"},
        {"spec": {"unschedulable": True}},
        {"spec": {"unschedulable": True}, "metadata": {"annotations": {CLOSED: "1"}}},
        {"key": "u-2.j1"},
    ],
    ids=["not Ready", "a chip less", "cordoned", "closed by the relay", "of another claim"],
)
def test_a_slice_stands_only_if_all_its_hosts_can_take_pods_of_its_claim(gate: Gate, broken: dict[str, Any]) -> None:
    *whole, last = hosts(1)
    metadata = broken.pop("metadata", {})
    (*_, wrong) = hosts(1, **broken)
    wrong["metadata"] |= metadata
    gate.see(gang(replicas=2), gated(0), gated(1), *hosts(0), *whole, wrong)
    assert gate.opens() == []
    gate.see(last)
    assert gate.opens() == ["pod-0", "pod-1"]


@pytest.mark.parametrize("closing", [True, False], ids=["to be closed", "to get another key"])
def test_nothing_is_let_go_to_hosts_that_are_being_closed(gate: Gate, closing: bool) -> None:
    gate.see(gang(replicas=1), *hosts(0))
    asked = question(close=closing, slice_id=ClaimId("tpu-llama-0-aaaaaaaaaaaaa"), key="" if closing else "u-2.j0")
    gate.watched.queue.ask(asked, gate.watched.now)
    gate.see(gated(0))
    assert gate.opens() == []
    gate.watched.queue.ask(question(close=False, number=2), gate.watched.now)
    assert gate.opens() == []
    assert gate.opens(after=10) == ["pod-0"]


def test_what_was_to_be_let_go_is_held_again_if_a_slice_breaks_before(gate: Gate) -> None:
    gate.see(gang(replicas=2), gated(0), gated(1), *hosts(0), *hosts(1))
    assert gate.opens() == ["pod-0", "pod-1"]
    gate.see(*hosts(1, ready=False))
    assert gate.opens() == []


def test_a_claim_whose_leader_runs_stands(gate: Gate) -> None:
    gate.see(gang(replicas=2), bound_pod(0, "n"), gated(1), *hosts(1))
    assert gate.opens() == ["pod-1"]


@pytest.mark.parametrize("parts", [{"metadata": DELETED}, {"metadata": {"ownerReferences": []}}])
def test_a_claim_whose_leader_is_on_its_way_out_or_somebody_elses_does_not_stand_by_it(
    gate: Gate, parts: dict[str, Any]
) -> None:
    gate.see(gang(replicas=2), bound_pod(0, "n", **parts), gated(1), *hosts(1))
    assert gate.opens() == []


def test_a_leader_of_the_attempt_before_does_not_count(gate: Gate) -> None:
    gate.see(gang(replicas=2), bound_pod(0, "n", labels={ATTEMPT: "1"}), gated(1, labels={ATTEMPT: "2"}), *hosts(1))
    assert gate.opens() == []
    gate.see(bound_pod(0, "n", labels={ATTEMPT: "2"}))
    assert gate.opens() == ["pod-1"]


def test_a_claim_whose_leader_succeeded_stands_and_one_whose_leader_failed_does_not(gate: Gate) -> None:
    gate.see(gang(replicas=2), ended(0, "Failed"), gated(1), *hosts(1))
    assert gate.opens() == []
    gate.see(ended(0))
    assert gate.opens() == ["pod-1"]


@pytest.mark.parametrize(("succeeded", "opened"), [(0, []), (1, []), (2, ["pod-2"])])
def test_claims_without_pods_stand_if_as_many_jobs_succeeded(gate: Gate, succeeded: int, opened: list[str]) -> None:
    obj = gang(replicas=3)
    obj["status"]["replicatedJobsStatus"] = [{"name": "workers", "succeeded": succeeded}]
    gate.see(obj, gated(2), *hosts(2))
    assert gate.opens() == opened


def test_gangs_of_a_jobset_are_let_go_each_by_itself(gate: Gate) -> None:
    jobs = [replicated_job("workers", replicas=1), replicated_job("eval", replicas=1)]
    own = {"annotations": {GANG: "replicatedjob"}}
    labels = {"jobset.sigs.k8s.io/replicatedjob-name": "eval"}
    other = gated(0, uid="pod-eval", labels=labels, metadata={"ownerReferences": pod()["metadata"]["ownerReferences"]})
    other["metadata"]["ownerReferences"][0]["name"] = "llama-eval-0"
    gate.see(jobset(metadata=own, spec={"replicatedJobs": jobs}), gated(0), other, *hosts(1))
    assert gate.opens() == ["pod-eval"]
    gate.see(*hosts(0))
    assert gate.opens() == ["pod-0", "pod-eval"]


def test_pods_beside_a_leader_are_let_go_with_it(gate: Gate) -> None:
    beside = gated(0, uid="pod-beside", labels={"batch.kubernetes.io/job-completion-index": "1"})
    gate.see(gang(replicas=1), gated(0), beside, *hosts(0))
    assert gate.opens() == ["pod-0", "pod-beside"]


def test_a_pod_beside_a_leader_that_runs_is_let_go(gate: Gate) -> None:
    beside = gated(0, uid="pod-beside", labels={"batch.kubernetes.io/job-completion-index": "1"})
    gate.see(gang(replicas=1), bound_pod(0, "n"), beside)
    assert gate.opens() == ["pod-beside"]


def test_a_job_by_itself_is_let_go_once_its_slice_stands(gate: Gate) -> None:
    asked = job()
    asked["metadata"]["annotations"] = {GANG: "all"}
    gate.see(asked, job_pod(spec=HELD, status=GATED), *hosts(0, key="u-job")[:3])
    assert gate.opens() == []
    gate.see(hosts(0, key="u-job")[3])
    assert gate.opens() == ["pod-tune-0"]


def test_groups_are_let_go_once_the_slices_of_all_stand(gate: Gate) -> None:
    asked = leader_worker_set()
    asked["metadata"]["annotations"] = {GANG: "all"}
    gate.see(asked, *(group_pod(index, spec=HELD, status=GATED) for index in range(2)))
    keys = [hashlib.sha1(f"research/serve-{index}".encode(), usedforsecurity=False).hexdigest() for index in range(2)]
    gate.see(*hosts(0, key=keys[0]))
    assert gate.opens() == []
    gate.see(*hosts(1, key=keys[1]))
    assert gate.opens() == ["pod-serve-0", "pod-serve-1"]


def test_jobs_that_share_a_slice_stand_by_the_key_of_the_first(gate: Gate) -> None:
    one = replicated_job(replicas=4)
    one["template"]["spec"] |= {"parallelism": 1, "completions": 1}
    obj = jobset(metadata={"annotations": {GANG: "all"}}, spec={"replicatedJobs": [one]})
    gate.see(obj, *(gated(index) for index in range(4)), *hosts(0))
    assert gate.opens() == []
    gate.see(*(node(number, labels={KEY_LABEL: "u-1.r0"}) for number in range(4)))
    assert gate.opens() == [f"pod-{index}" for index in range(4)]
