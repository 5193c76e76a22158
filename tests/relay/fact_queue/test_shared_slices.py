"""Of Jobs that share a slice, the first that has not ended leads; all of them keep the hosts."""

from typing import Any

from relay.objects import Workload
from tests.builders import CLUSTER
from tests.relay.objects import Json, bound_pod, jobset, pod, read_jobset, replicated_job
from tests.relay.watched import Watched, demand, nodes, occupants, reports
from tpu_slices.domain.model.slices import WorkloadJob

JOBS = 4


def sharing(**parts: Any) -> Json:
    """Return a JobSet of four Jobs of one pod each, on a topology of four hosts."""
    job = replicated_job(replicas=JOBS)
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


def test_its_leader_is_that_of_the_first_job_that_has_not_ended(watched: Watched) -> None:
    watched.see(sharing(), ended(0), pod(1), pod(2))
    seen = read_jobset(sharing())
    assert isinstance(seen, Workload)
    job = WorkloadJob(cluster=CLUSTER, owner=seen.ref.owner, replicated_job="workers", job_index=0)
    leader = watched.queue.cache.leader_pod(job)
    assert leader is not None
    assert leader.pod_uid == "pod-1"
