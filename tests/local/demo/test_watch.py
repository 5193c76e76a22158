from typing import Any

import pytest

from infra.local.demo.view import Event, JobSet, NodeGroup
from infra.local.demo.watch import event, jobset, node_group, unschedulable

UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
GATED = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
LABELS = {
    "jobset.sigs.k8s.io/jobset-name": "llama",
    "jobset.sigs.k8s.io/replicatedjob-name": "slice",
    "jobset.sigs.k8s.io/job-index": "3",
}


def a_pod(*conditions: dict[str, str], labels: dict[str, str] = LABELS) -> dict[str, Any]:
    return {"metadata": {"name": "pod", "labels": labels}, "status": {"conditions": list(conditions)}}


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
