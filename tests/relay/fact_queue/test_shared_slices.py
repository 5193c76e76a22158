"""Of Jobs that share a slice, the first that has not ended leads; all of them keep the hosts."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from relay.lookups.users import PodsOn
from relay.objects import Workload
from tests.builders import CLUSTER
from tests.relay.objects import SELECTOR, Json, bound_pod, jobset, pod, read_jobset, replicated_job
from tests.relay.watched import Watched, demand, nodes, occupants, read, reports
from tpu_slices.domain.model.slices import WorkloadJob

JOBS = 4


def sharing(jobs: int = JOBS, **parts: Any) -> Json:
    """Return a JobSet of so many Jobs of one pod each, on a topology of as many hosts."""
    selector = {**SELECTOR, "cloud.google.com/gke-tpu-topology": f"2x2x{jobs}"}
    job = replicated_job(replicas=jobs, nodeSelector=selector)
    job["template"]["spec"] |= {"parallelism": 1, "completions": 1}
    return jobset(spec={"replicatedJobs": [job]}, **parts)


def host(index: int) -> str:
    return f"tpu-llama-0-aaaaaaaaaaaaa-1-{index}"


def bound() -> list[Json]:
    """Return the pods of all Jobs, each on a host."""
    return [bound_pod(index, host(index)) for index in range(JOBS)]


def ended(index: int) -> Json:
    return bound_pod(index, host(index), phase="Succeeded")


def test_a_slice_is_wanted_once_the_first_job_waits_and_then_at_once(watched: Watched) -> None:
    watched.see(sharing(), pod(2), pod(1))
    watched.see(pod(0))
    assert demand(watched.due_facts()) == [[0]]


def test_pods_of_the_other_jobs_that_come_to_wait_tell_nothing(watched: Watched) -> None:
    watched.see(sharing(), pod(0))
    assert demand(watched.due_facts()) == [[0]]
    watched.see(*(pod(index) for index in range(1, JOBS)))
    watched.pass_time(3_600)
    assert watched.due_facts() == []
    assert watched.queue.held_back(watched.now) == []


def test_without_the_first_job_nothing_is_wanted_for_the_others_until_it_has_ended(watched: Watched) -> None:
    watched.see(sharing(), bound_pod(0, "elsewhere"), pod(1))
    watched.pass_time(10)
    assert demand(watched.due_facts()) == []
    watched.see(ended(0))
    watched.pass_time(10)
    assert demand(watched.due_facts()) == [[0]], "the slice is still that of the first Job"


def test_if_the_pod_of_the_first_job_is_gone_the_next_one_leads(watched: Watched) -> None:
    watched.see(sharing(), pod(0), pod(1))
    watched.due_facts()
    watched.lose(pod(0))
    watched.pass_time(600)
    assert demand(watched.due_facts()) == [[0]]


def test_the_pods_of_all_its_jobs_are_one_occupant(watched: Watched) -> None:
    watched.see(sharing(), *nodes(JOBS), *reversed(bound()))
    watched.pass_time(60)
    report = reports(watched.due_facts())[-1]
    assert [(each.replicated_job, each.job_index, each.pod_uid) for each in report.occupants] == [
        ("workers", 0, "pod-0")
    ]


def test_the_slice_is_occupied_as_long_as_one_of_its_jobs_runs(watched: Watched) -> None:
    watched.see(sharing(), *nodes(JOBS), *bound())
    watched.pass_time(60)
    watched.due_facts()
    watched.see(*(ended(index) for index in range(JOBS - 1)))
    watched.pass_time(60)
    assert occupants(watched.due_facts())[-1] == ["pod-3"]
    watched.see(ended(JOBS - 1))
    watched.pass_time(600)
    assert occupants(watched.due_facts())[-1] == []


def test_a_pod_that_has_the_labels_of_its_first_job_and_is_not_controlled_by_it_does_not_lead(watched: Watched) -> None:
    forged = bound_pod(0, "elsewhere", uid="forged", metadata={"ownerReferences": []})
    watched.see(sharing(), forged, pod(1))
    watched.pass_time(10)
    assert demand(watched.due_facts()) == [[0]]


@pytest.mark.parametrize("index", [JOBS, 10**8])
def test_a_pod_of_no_job_of_its_jobset_asks_for_nothing(watched: Watched, index: int) -> None:
    watched.see(sharing(), pod(index, metadata={"ownerReferences": []}))
    watched.pass_time(10)
    assert demand(watched.due_facts()) == []


def test_who_is_on_its_hosts_is_looked_up_once_all_its_jobs_have_ended(watched: Watched) -> None:
    watched.see(sharing(), *nodes(JOBS), *bound())
    watched.due_facts()
    for index in range(JOBS):
        watched.see(ended(index))
        watched.pass_time(60)
        dues = watched.queue.due(watched.now)
        assert any(isinstance(due.unknown, PodsOn) for due in dues) == (index == JOBS - 1)


@pytest.mark.parametrize(
    "happens",
    [lambda index: pod(index, uid="next"), lambda index: bound_pod(index, "elsewhere")],
    ids=["another waits", "it is bound"],
)
def test_what_comes_of_a_pod_costs_no_more_among_many_jobs(happens: Callable[[int], Json]) -> None:
    assert calls_among(400, happens) < 2 * calls_among(40, happens)


def calls_among(jobs: int, happens: Callable[[int], Json]) -> int:
    """Return how many calls it takes to take in an event of the pod of the last Job while those of all wait."""
    watched, called = Watched(), list[str]()
    watched.see(sharing(jobs), *map(pod, range(jobs)))
    seen = read(happens(jobs - 1))
    sys.setprofile(lambda _, event, __: called.append(event) if event == "call" else None)
    try:
        watched.queue.saw(seen, watched.now)
    finally:
        sys.setprofile(None)
    return len(called)


def test_its_leader_is_that_of_the_first_job_that_has_not_ended(watched: Watched) -> None:
    watched.see(sharing(), ended(0), pod(1), pod(2))
    seen = read_jobset(sharing())
    assert isinstance(seen, Workload)
    job = WorkloadJob(cluster=CLUSTER, owner=seen.ref.owner, replicated_job="workers", job_index=0)
    leader = watched.queue.cache.leader_pod(job)
    assert leader is not None
    assert leader.pod_uid == "pod-1"
