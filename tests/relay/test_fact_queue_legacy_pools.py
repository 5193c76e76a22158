"""Hosts of legacy pools are counted, and leaders on them reported, for the slices of their Jobs."""

from typing import Any

from relay.node_patches import needed_patches
from relay.objects import Kind
from tests.builders import CLUSTER, NOW, a_job
from tests.relay.closing import question
from tests.relay.objects import bound_pod, jobset, node
from tests.relay.watched import Watched, occupants, reports, states
from tpu_slices.domain.model.facts import HostsChanged, HostsQuestion, WorkloadState
from tpu_slices.domain.model.slices import WorkloadUid, slice_id

JOB = a_job(uid=WorkloadUid("u-1"), replicated_job="workers")


def legacy_node(number: int = 0, job: str = "llama-workers-0", jobset: str = "llama") -> dict[str, Any]:
    """Return a node with TPU Provisioner's labels."""
    labels: dict[str, Any] = {
        "google.com/tpu-slice-id": None,
        "google.com/tpu-slice-attempt": None,
        "google.com/tpu-slice-owner-uid": None,
        "google.com/nodepool-manager": "tpu-provisioner",
        "google.com/tpu-provisioner-parent-kind": "job",
        "google.com/tpu-provisioner-parent-name": job,
        "google.com/tpu-provisioner-jobset-name": jobset,
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
    assert counted(watched) == [(slice_id(JOB), 0, 1)]


def test_legacy_hosts_of_a_job_that_the_jobset_lacks_are_not_reported(watched: Watched) -> None:
    watched.see(jobset(), legacy_node(job="llama-workers-7"))
    assert counted(watched) == []


def test_a_leader_on_a_legacy_host_is_reported(watched: Watched) -> None:
    watched.see(jobset(), legacy_node(), bound_pod(0, legacy_node()["metadata"]["name"]))
    (fact,) = reports(watched.due_facts())
    assert (fact.slice_id, fact.attempt) == (slice_id(JOB), 0)
    assert [each.workload_job(CLUSTER) for each in fact.occupants] == [JOB]


def test_the_hosts_of_a_jobset_that_was_created_anew_are_reported_for_both_slices(watched: Watched) -> None:
    watched.see(jobset(), legacy_node())
    watched.due_facts()
    watched.lose(jobset())
    watched.see(jobset(uid="u-2"))
    again = bound_pod(0, legacy_node()["metadata"]["name"], labels={"jobset.sigs.k8s.io/jobset-uid": "u-2"})
    watched.see(again)
    facts = reports(watched.due_facts())
    new = slice_id(a_job(uid=WorkloadUid("u-2"), replicated_job="workers"))
    assert {fact.slice_id for fact in facts} == {slice_id(JOB), new}
    assert occupants(facts) == [["pod-0"], ["pod-0"]]


def test_the_loss_of_the_last_legacy_host_is_reported(watched: Watched) -> None:
    watched.see(jobset(), legacy_node())
    watched.due_facts()
    watched.relist(Kind.HOSTS, version=50)
    watched.pass_time(15)
    assert counted(watched) == [(slice_id(JOB), 0, 0)]


def about(uid: str, at: int = 0) -> HostsQuestion:
    job = a_job(uid=WorkloadUid(uid), replicated_job="workers")
    return question(slice_id=slice_id(job), attempt=0, at=at)


def test_a_legacy_pool_is_closed_as_attempt_0_of_its_jobs_slice(watched: Watched) -> None:
    watched.see(jobset(), legacy_node())
    watched.due_facts()
    watched.queue.ask(about("u-1"), watched.now)
    assert states(watched.due_facts()) == [("u-1", WorkloadState.ACTIVE)]
    watched.see({**legacy_node(), "spec": {"unschedulable": True}})
    watched.pass_time(5)
    (fact,) = reports(watched.due_facts())
    assert (fact.slice_id, fact.attempt, fact.closed, fact.answers) == (slice_id(JOB), 0, 1, NOW)


def test_a_legacy_pool_is_closed_for_its_jobset_that_is_gone(watched: Watched) -> None:
    watched.see(jobset(), legacy_node())
    watched.due_facts()
    watched.lose(jobset())
    watched.due_facts()
    watched.queue.ask(about("u-1"), watched.now)
    assert len(needed_patches(watched.queue.cache, watched.queue.closing)) == 1


def test_a_legacy_pool_that_another_jobset_of_that_name_uses_is_not_reported_as_empty(watched: Watched) -> None:
    """After a restart the relay does not know the earlier one's UID: it cannot tell whose pool is meant."""
    again = bound_pod(0, legacy_node()["metadata"]["name"], labels={"jobset.sigs.k8s.io/jobset-uid": "u-2"})
    watched.see(jobset(uid="u-2"), legacy_node(), again)
    watched.due_facts()
    watched.queue.ask(about("u-1"), watched.now)
    watched.pass_time(61)
    assert watched.due_facts() == []
    assert needed_patches(watched.queue.cache, watched.queue.closing) == ()


def test_a_legacy_pool_of_another_name_does_not_hold_up_an_answer(watched: Watched) -> None:
    watched.see(jobset(), legacy_node(0, "gemma-workers-0", "gemma"), legacy_node(1, "llama"))
    watched.queue.ask(about("u-1"), watched.now)
    assert [(fact.joined, fact.answers) for fact in reports(watched.due_facts())] == [(0, NOW)]
