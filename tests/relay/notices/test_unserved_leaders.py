"""JobSets are told by their leaders that their pods claim chips as devices, or that a PodGroup keeps them waiting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from relay.notices.unserved import TOLD_AFTER, UNTRIED_FOR
from relay.objects import Kind
from tests.relay.notices.owners import SECOND, Told, claiming
from tests.relay.objects import OPTED_OUT, Json, bound_pod, group_pod, job, job_pod, jobset, leader_worker_set, pod


@pytest.fixture
def claimed(told: Told) -> Told:
    """Return the relay's part with a JobSet of two Jobs whose leaders claim chips as devices."""
    told.cluster.workloads["llama"] = jobset(uid="u-1")
    told.watched.see(*(claiming(pod(index)) for index in range(2)))
    return told


def test_a_jobset_whose_pods_claim_chips_as_devices_is_told_once_by_its_leaders(claimed: Told) -> None:
    assert claimed.after(TOLD_AFTER - SECOND) == {}
    said = claimed.after(TOLD_AFTER)
    assert said["JobSet llama"].startswith(
        "replicatedJob workers of JobSet llama gets no slice: its pods claim chips as devices (resourceClaims: tpus)"
    )
    assert (claimed.cluster.posted, len(said)) == (1, 1)
    (event,) = claimed.cluster.events.values()
    assert (event["reason"], event["involvedObject"]["uid"]) == ("NotServed", "u-1")


def test_so_is_one_whose_claims_do_not_exist_so_that_its_pods_are_never_tried(told: Told) -> None:
    told.cluster.workloads["llama"] = jobset(uid="u-1")
    told.watched.see(claiming(pod(0, status={"conditions": []})))
    told.after(SECOND)
    assert "resourceClaims: tpus" in told.after(TOLD_AFTER)["JobSet llama"]


def test_of_a_jobset_that_mixes_only_the_replicated_jobs_that_claim_chips_are_told_of(told: Told) -> None:
    told.cluster.workloads["llama"] = jobset(uid="u-1")
    names = {"jobset.sigs.k8s.io/replicatedjob-name": "scorers"}, {"jobset.sigs.k8s.io/replicatedjob-name": "judges"}
    told.watched.see(pod(0), *(claiming(pod(n, labels=each)) for n, each in enumerate(names, 1)))
    told.after(SECOND)
    first, second = told.after(TOLD_AFTER)["JobSet llama"].split("; ")
    assert first.startswith("replicatedJob judges of JobSet llama gets no slice: ")
    assert second.startswith("replicatedJob scorers of JobSet llama gets no slice: ")


@pytest.mark.parametrize(
    "workloads",
    [
        {},
        {"llama": jobset(metadata={"annotations": {OPTED_OUT: "true"}})},
        {"llama": jobset(spec={"managedBy": "x/y"})},
    ],
    ids=["gone", "opted out", "managed elsewhere"],
)
def test_a_jobset_that_is_gone_or_not_served_here_is_not_told(claimed: Told, workloads: dict[str, Json]) -> None:
    claimed.cluster.workloads = workloads
    claimed.after(SECOND)
    assert claimed.after(TOLD_AFTER) == {}


def test_a_jobset_whose_leaders_found_nodes_in_time_is_not_told(claimed: Told) -> None:
    claimed.after(SECOND)
    claimed.watched.see(*(claiming(bound_pod(index, "host")) for index in range(2)))
    assert claimed.after(TOLD_AFTER) == {}


def test_no_jobset_is_told_while_a_watch_is_interrupted(claimed: Told) -> None:
    claimed.after(SECOND)
    claimed.watched.queue.failed(Kind.LEADERS)
    assert claimed.after(TOLD_AFTER) == {}
    claimed.watched.queue.bookmarked(Kind.LEADERS, "9", claimed.watched.now)
    assert [*claimed.after(SECOND)] == ["JobSet llama"]


def in_group(made: Json, conditions: list[Json] | None = None, **spec: Any) -> Json:
    """Return a pod of a PodGroup that the scheduler has not tried."""
    made["spec"] |= {"schedulingGroup": {"podGroupName": "gang"}, **spec}
    made["status"]["conditions"] = conditions or []
    return made


def test_a_jobset_whose_leaders_a_pod_group_keeps_from_being_tried_is_told_what_they_wait_for(told: Told) -> None:
    told.cluster.workloads["llama"] = jobset(uid="u-1")
    told.watched.see(jobset(uid="u-1"), in_group(pod(0)), in_group(pod(1)))
    told.after(SECOND)
    assert told.after(TOLD_AFTER) == {
        "JobSet llama": "replicatedJob workers of JobSet llama waits: no scheduler has tried its pods: they are of "
        "PodGroup gang, and none is tried before the PodGroup exists and as many of its pods as its "
        "spec.schedulingPolicy.gang.minCount: set that to the number of pods that exist before one of them is "
        "scheduled, or remove what has the other pods wait for their leaders "
        "(alpha.jobset.sigs.k8s.io/exclusive-topology), or have no PodGroup made for them (feature gate "
        "WorkloadWithJob)"
    }
    (event,) = told.cluster.events.values()
    assert (event["type"], event["reason"]) == ("Warning", "AwaitingPodGroup")


def test_it_is_told_of_a_pod_group_within_a_minute(told: Told) -> None:
    told.cluster.workloads["llama"] = jobset(uid="u-1")
    told.watched.see(jobset(uid="u-1"), in_group(pod(0)))
    told.after(SECOND)
    assert told.after(UNTRIED_FOR - SECOND) == {}
    assert [*told.after(SECOND)] == ["JobSet llama"]


def test_so_are_a_job_and_a_leader_worker_set(told: Told) -> None:
    told.cluster.workloads = {"tune": job(), "serve": leader_worker_set()}
    told.lists(in_group(job_pod()), in_group(group_pod()))
    said = told.after(TOLD_AFTER)
    assert {of: text.split(":")[0] for of, text in said.items()} == {
        "Job tune": "Job tune waits",
        "LeaderWorkerSet serve": "LeaderWorkerSet serve waits",
    }
    assert "leaderworkerset.sigs.k8s.io/exclusive-topology, startupPolicy" in said["LeaderWorkerSet serve"]


TRIED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
NOT_AWAITED: dict[str, Callable[[], Json]] = {
    "tried": lambda: in_group(pod(0), [TRIED]),
    "gated": lambda: in_group(pod(0), schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]),
    "on a node": lambda: in_group(pod(0), nodeName="host"),
    "without chips": lambda: in_group(pod(0), containers=[{"name": "main", "image": "coordinate"}]),
    "of no PodGroup": lambda: in_group(pod(0), schedulingGroup=None),
    "opted out": lambda: in_group(pod(0, labels={OPTED_OUT: "true"})),
}


@pytest.mark.parametrize("made", NOT_AWAITED.values(), ids=NOT_AWAITED.keys())
def test_a_leader_that_waits_for_no_pod_group_or_for_no_chips_is_not_told_of(
    told: Told, made: Callable[[], Json]
) -> None:
    told.cluster.workloads["llama"] = jobset(uid="u-1")
    told.watched.see(made())
    told.after(SECOND)
    assert told.after(TOLD_AFTER) == {}


def test_what_keeps_a_pod_is_told_as_it_is_now_and_since_when_it_waits(told: Told) -> None:
    told.cluster.workloads["llama"] = jobset(uid="u-1")
    told.watched.see(in_group(pod(0)))
    told.after(SECOND)
    told.watched.see(claiming(pod(0)))
    assert told.after(TOLD_AFTER)["JobSet llama"].startswith("replicatedJob workers of JobSet llama gets no slice")
