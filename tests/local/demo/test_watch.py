from typing import Any

import pytest

from infra.local.borrowed import DEMO_NAMESPACE
from infra.local.demo.view import Event, JobSet, NodeGroup, Ran
from infra.local.demo.watch import Witness, event, jobset, node_group, ran, unschedulable
from tests.builders import NOW
from tpu_standins.clients.kinds import KINDS

UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
GATED = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
LABELS = {
    "jobset.sigs.k8s.io/jobset-name": "llama",
    "jobset.sigs.k8s.io/replicatedjob-name": "slice",
    "jobset.sigs.k8s.io/job-index": "3",
    "jobset.sigs.k8s.io/restart-attempt": "1",
}


def a_pod(
    *conditions: dict[str, str],
    labels: dict[str, str] = LABELS,
    phase: str = "Pending",
    namespace: str = DEMO_NAMESPACE,
) -> dict[str, Any]:
    metadata = {"name": "pod", "namespace": namespace, "labels": labels}
    return {"metadata": metadata, "status": {"phase": phase, "conditions": list(conditions)}}


def test_a_jobset_without_a_status_is_read() -> None:
    fresh = {"metadata": {"name": "llama"}}
    assert jobset(fresh) == JobSet(name="llama", conditions=frozenset(), ready=0, restarts=0)


def test_a_jobset_is_read_with_the_conditions_that_hold_and_its_ready_jobs() -> None:
    status = {
        "conditions": [{"type": "Completed", "status": "True"}, {"type": "RestartingJobSet", "status": "False"}],
        "replicatedJobsStatus": [{"name": "slice", "ready": 2}, {"name": "driver", "ready": 1}],
        "restarts": 1,
    }
    read = jobset({"metadata": {"name": "llama"}, "status": status})
    assert read == JobSet(name="llama", conditions=frozenset({"Completed"}), ready=3, restarts=1)


def test_a_node_group_is_read_with_what_it_says_of_itself() -> None:
    assert node_group({"metadata": {"name": "llama"}}) == NodeGroup(name="llama", conditions={})
    status = {"conditions": [{"type": "Ready", "status": "False"}, {"type": "InstanceTemplateReady", "status": "True"}]}
    read = node_group({"metadata": {"name": "llama"}, "status": status})
    assert read.conditions == {"Ready": "False", "InstanceTemplateReady": "True"}


def test_an_event_is_read() -> None:
    about = {"kind": "Pod", "name": "llama-slice-0-0-x"}
    read = event({"involvedObject": about, "type": "Warning", "reason": "Stockout", "message": "none"})
    assert read == Event(about="Pod/llama-slice-0-0-x", type="Warning", reason="Stockout", message="none")


def test_an_unschedulable_leader_is_known_by_its_job() -> None:
    assert unschedulable(a_pod(UNSCHEDULABLE)) == ("llama", "slice", 3)


@pytest.mark.parametrize(
    "pod", [a_pod(), a_pod(GATED), a_pod(UNSCHEDULABLE, labels={}), {"metadata": {"name": "pod"}, "status": {}}]
)
def test_other_pods_are_no_alarm(pod: dict[str, Any]) -> None:
    assert unschedulable(pod) is None


@pytest.mark.parametrize("phase", ["Running", "Succeeded", "Failed"])
def test_a_leader_has_run_once_it_runs_or_has_ended(phase: str) -> None:
    assert ran(a_pod(phase=phase)) == Ran("llama", 3, restart=1)


@pytest.mark.parametrize("pod", [a_pod(), a_pod(phase="Running", labels={}), {"metadata": {"name": "pod"}}])
def test_a_pod_that_waits_or_is_of_no_jobset_has_not_run(pod: dict[str, Any]) -> None:
    assert ran(pod) is None


def test_what_passes_is_remembered_from_whatever_shows_it_first() -> None:
    witness = Witness(lambda: NOW)
    witness.listed(KINDS["pods"], [a_pod(UNSCHEDULABLE)], 1)
    witness.saw(KINDS["pods"], "MODIFIED", a_pod(phase="Running"))
    witness.saw(KINDS["pods"], "DELETED", a_pod(phase="Running"))
    witness.listed(KINDS["pods"], [], 2)
    assert witness.noticed == {("llama", "slice", 3): NOW}
    assert witness.ran == frozenset({Ran("llama", 3, restart=1)})


def test_the_pods_of_other_namespaces_are_not_the_demos() -> None:
    witness = Witness(lambda: NOW)
    witness.saw(KINDS["pods"], "ADDED", a_pod(phase="Running", namespace="theirs"))
    assert not witness.ran
