"""Hosts of legacy pools are counted, and leaders on them reported, for the slices of their Jobs."""

from typing import Any

from relay.objects import Kind
from tests.builders import a_job
from tests.relay.objects import bound_pod, jobset, node
from tests.relay.watched import Watched
from tpu_slices.domain.model.facts import HostsChanged, LeaderBound
from tpu_slices.domain.model.slices import WorkloadUid, slice_id

JOB = a_job(uid=WorkloadUid("u-1"), replicated_job="workers")


def legacy_node(number: int = 0, job: str = "llama-workers-0") -> dict[str, Any]:
    """Return a node with TPU Provisioner's labels."""
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
    facts = (fact for fact in watched.due_facts() if isinstance(fact, HostsChanged))
    return [(fact.slice_id, fact.attempt, fact.usable) for fact in facts]


def test_legacy_hosts_are_counted_as_attempt_0_of_their_jobs_slice(watched: Watched) -> None:
    watched.see(jobset(), *(legacy_node(number) for number in range(4)))
    assert counted(watched) == [(slice_id(JOB), 0, 4)]


def test_legacy_hosts_are_not_reported_before_their_jobset_is_seen(watched: Watched) -> None:
    watched.see(legacy_node())
    assert counted(watched) == []
    watched.see(jobset())
    watched.pass_time(301)
    assert counted(watched) == [(slice_id(JOB), 0, 1)]


def test_legacy_hosts_of_a_job_that_the_jobset_lacks_are_not_reported(watched: Watched) -> None:
    watched.see(jobset(), legacy_node(job="llama-workers-7"))
    assert counted(watched) == []


def test_a_leader_on_a_legacy_host_is_reported(watched: Watched) -> None:
    watched.see(jobset(), legacy_node(), bound_pod(0, legacy_node()["metadata"]["name"]))
    (bound,) = (fact for fact in watched.due_facts() if isinstance(fact, LeaderBound))
    assert (bound.slice_id, bound.attempt, bound.occupant.job) == (slice_id(JOB), 0, "llama-workers-0")


def test_the_loss_of_the_last_legacy_host_is_reported(watched: Watched) -> None:
    watched.see(jobset(), legacy_node())
    watched.due_facts()
    watched.relist(Kind.HOSTS, version=50)
    watched.pass_time(15)
    assert counted(watched) == [(slice_id(JOB), 0, 0)]
