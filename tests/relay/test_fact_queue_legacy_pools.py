"""Hosts of pools that TPU Provisioner made are counted, and leaders on them told, for the slices of their Jobs."""

from typing import Any

from relay.objects import Kind
from tests.builders import a_job
from tests.relay.objects import bound_pod, jobset, node
from tests.relay.watched import Watched
from tpu_slices.domain.model.facts import HostsChanged, LeaderBound
from tpu_slices.domain.model.slices import WorkloadUid, slice_id

JOB = a_job(uid=WorkloadUid("u-1"), replicated_job="workers")


def theirs(number: int = 0, job: str = "llama-workers-0") -> dict[str, Any]:
    """Build a node as TPU Provisioner labels it."""
    labels: dict[str, Any] = {
        "google.com/tpu-slice-id": None,
        "google.com/tpu-slice-attempt": None,
        "google.com/tpu-slice-owner-uid": None,
        "google.com/nodepool-manager": "tpu-provisioner",
        "google.com/tpu-provisioner-parent-kind": "job",
        "google.com/tpu-provisioner-parent-name": job,
        "google.com/tpu-provisioner-jobset-name": "llama",
        "google.com/tpu-provisioner-jobset-namespace": "research",
        "cloud.google.com/gke-nodepool": "llama-4f2a1",
    }
    return node(number, labels=labels)


def counted(watched: Watched) -> list[tuple[str, int, int]]:
    facts = (fact for fact in watched.said() if isinstance(fact, HostsChanged))
    return [(fact.slice_id, fact.attempt, fact.usable) for fact in facts]


def test_they_are_counted_as_attempt_0_of_the_slice_of_their_job(watched: Watched) -> None:
    watched.see(jobset(), *(theirs(number) for number in range(4)))
    assert counted(watched) == [(slice_id(JOB), 0, 4)]


def test_without_their_jobset_nothing_is_said_until_it_comes(watched: Watched) -> None:
    watched.see(theirs())
    assert counted(watched) == []
    watched.see(jobset())
    watched.pass_time(301)
    assert counted(watched) == [(slice_id(JOB), 0, 1)]


def test_a_job_that_the_jobset_does_not_have_is_nobodys(watched: Watched) -> None:
    watched.see(jobset(), theirs(job="llama-workers-7"))
    assert counted(watched) == []


def test_a_leader_on_them_is_told(watched: Watched) -> None:
    watched.see(jobset(), theirs(), bound_pod(0, theirs()["metadata"]["name"]))
    (bound,) = (fact for fact in watched.said() if isinstance(fact, LeaderBound))
    assert (bound.slice_id, bound.attempt, bound.occupant.job) == (slice_id(JOB), 0, "llama-workers-0")


def test_when_the_last_is_gone_none_is_counted(watched: Watched) -> None:
    watched.see(jobset(), theirs())
    watched.said()
    watched.relist(Kind.HOSTS, version=50)
    watched.pass_time(15)
    assert counted(watched) == [(slice_id(JOB), 0, 0)]
