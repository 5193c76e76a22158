from typing import Any

import pytest

from relay.objects import Workload
from relay.outbox import subject_of
from tests.builders import CLUSTER
from tests.relay.objects import OPTED_OUT, SELECTOR, bound_pod, jobset, pod, read_jobset, replicated_job
from tests.relay.watched import Watched, demand, states
from tpu_slices.domain.model.facts import Family, Reach, SlicesWanted, WorkloadChanged, WorkloadState
from tpu_slices.domain.model.questions import RepeatQuestion
from tpu_slices.domain.model.slices import WorkloadJob, claim_id
from tpu_slices.domain.records.workloads import demand_digest
from tpu_slices.wire.bounds import LEADERS_PER_FACT
from tpu_slices.wire.messages import MOST_BYTES, encode_fact


def digest_of_jobs(*indexes: int) -> int:
    seen = read_jobset(jobset())
    assert isinstance(seen, Workload)
    owner = seen.ref.owner
    jobs = (WorkloadJob(cluster=CLUSTER, owner=owner, replicated_job="workers", job_index=index) for index in indexes)
    return demand_digest(dict.fromkeys(map(claim_id, jobs), Reach.ANY))


def test_waiting_leaders_are_gathered_for_a_second(watched: Watched) -> None:
    watched.see(jobset(spec={"replicatedJobs": [replicated_job(replicas=3)]}), pod(0))
    assert demand(watched.due_facts()) == []
    watched.pass_time(0.9)
    watched.see(pod(1))
    assert demand(watched.due_facts()) == []
    watched.pass_time(0.1)
    (fact,) = (fact for fact in watched.due_facts() if isinstance(fact, SlicesWanted))
    assert [leader.job_index for leader in fact.waiting] == [0, 1]
    assert fact.workload.owner.uid == "u-1"
    assert [request.replicas for request in fact.requests] == [3]


def test_once_every_leader_waits_demand_is_reported_at_once(watched: Watched) -> None:
    watched.see(jobset(), pod(0), pod(1))
    assert demand(watched.due_facts()) == [[0, 1]]


def test_a_leader_that_waits_later_is_reported_without_those_that_were(watched: Watched) -> None:
    watched.see(jobset(), pod(0))
    watched.pass_time(1)
    assert demand(watched.due_facts()) == [[0]]
    watched.see(pod(1))
    assert demand(watched.due_facts()) == [[1]]


def test_a_leader_seen_before_its_jobset_is_not_forgotten(watched: Watched) -> None:
    watched.see(pod(0), pod(1))
    watched.pass_time(5)
    assert watched.due_facts() == []
    watched.see(jobset())
    assert demand(watched.due_facts()) == [[0, 1]]


def test_demand_is_told_once_however_long_leaders_wait(watched: Watched) -> None:
    watched.see(jobset(), pod(0), pod(1))
    assert demand(watched.due_facts()) == [[0, 1]]
    watched.pass_time(3_600)
    assert watched.due_facts() == []


def test_the_list_of_demand_has_what_was_told_of_leaders_that_still_wait(watched: Watched) -> None:
    watched.see(jobset(), pod(0), pod(1))
    watched.due_facts()
    assert watched.digests(Family.DEMAND) == {"u-1": digest_of_jobs(0, 1)}
    watched.see(bound_pod(0, "n"))
    assert watched.digests(Family.DEMAND) == {"u-1": digest_of_jobs(1)}
    watched.see(bound_pod(1, "n"))
    assert watched.digests(Family.DEMAND) == {}


def test_demand_that_was_told_is_told_again_if_somebody_asks(watched: Watched) -> None:
    watched.see(jobset(), pod(0))
    watched.pass_time(1)
    assert demand(watched.due_facts()) == [[0]]
    watched.queue.ask(RepeatQuestion(family=Family.DEMAND, keys=("u-1",)), watched.now)
    assert demand(watched.due_facts()) == [[0]]


def test_a_leader_that_waits_again_after_it_was_bound_is_told_again(watched: Watched) -> None:
    watched.see(jobset(), pod(0))
    watched.pass_time(1)
    assert demand(watched.due_facts()) == [[0]]
    watched.see(bound_pod(0, "n"))
    watched.due_facts()
    watched.lose(bound_pod(0, "n"))
    watched.see(pod(0, uid="next"))
    watched.pass_time(1)
    assert demand(watched.due_facts()) == [[0]]


def test_an_event_of_a_jobset_that_changes_nothing_tells_nothing(watched: Watched) -> None:
    watched.see(jobset(), pod(0))
    watched.pass_time(1)
    watched.due_facts()
    watched.see(jobset(version=99))
    watched.pass_time(1)
    assert watched.due_facts() == []


def test_a_template_that_changed_is_told_although_the_same_leaders_wait(watched: Watched) -> None:
    watched.see(jobset(), pod(0))
    watched.pass_time(1)
    watched.due_facts()
    watched.see(jobset(version=99, generation=2))
    watched.pass_time(1)
    assert demand(watched.due_facts()) == [[0]]


def test_another_event_of_a_waiting_pod_repeats_nothing(watched: Watched) -> None:
    watched.see(jobset(), pod(0), pod(1))
    watched.due_facts()
    watched.see(pod(0), pod(1))
    watched.pass_time(5)
    assert demand(watched.due_facts()) == []


@pytest.mark.parametrize(
    "parts",
    [
        {"spec": {"suspend": True}},
        {"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}},
        {"metadata": {"annotations": {OPTED_OUT: "true"}}},
        {"conditions": ["Failed"]},
        {"uid": "u-2"},
    ],
    ids=["suspended", "managed by another", "opted out", "failed", "a later one of that name"],
)
def test_leaders_of_a_jobset_that_we_do_not_serve_have_no_demand(watched: Watched, parts: dict[str, Any]) -> None:
    watched.see(jobset(**parts), pod(0), pod(1))
    watched.pass_time(2)
    assert demand(watched.due_facts()) == []


def test_a_resumed_jobset_is_reported_before_its_demand(watched: Watched) -> None:
    watched.see(jobset(spec={"suspend": True}))
    assert states(watched.due_facts()) == [("u-1", WorkloadState.SUSPENDED)]
    watched.see(jobset(generation=2), pod(0), pod(1))
    facts = watched.due_facts()
    assert [type(fact) for fact in facts] == [WorkloadChanged, SlicesWanted]


def test_many_leaders_are_reported_in_parts(watched: Watched) -> None:
    watched.see(jobset(spec={"replicatedJobs": [replicated_job(replicas=450)]}))
    watched.see(*(pod(index) for index in range(450)))
    assert [len(part) for part in demand(watched.due_facts())] == [LEADERS_PER_FACT, LEADERS_PER_FACT, 50]


def test_a_pod_that_is_replaced_is_one_leader(watched: Watched) -> None:
    watched.see(jobset(), pod(0, uid="first"), pod(0, uid="second"))
    watched.pass_time(1)
    assert demand(watched.due_facts()) == [[0]]


def test_leaders_with_many_labels_are_reported_in_more_parts(watched: Watched) -> None:
    labels = {f"{number:03}{'k' * 40}": "v" * 60 for number in range(100)}
    watched.see(jobset(spec={"replicatedJobs": [replicated_job(replicas=100)]}))
    watched.see(*(pod(index, labels=labels) for index in range(100)))
    facts = [fact for fact in watched.due_facts() if isinstance(fact, SlicesWanted)]
    assert 1 < len(facts) < 10
    assert [leader.job_index for fact in facts for leader in fact.waiting] == list(range(100))
    assert all(len(encode_fact(fact).data) < MOST_BYTES for fact in facts)
    assert len({subject_of(fact) for fact in facts}) == 1  # the outbox keeps every part of one subject: see test_outbox


def test_a_leader_is_reported_with_its_selector_and_the_labels_its_template_lacks(watched: Watched) -> None:
    job = replicated_job(replicas=1)
    job["template"]["spec"]["template"]["metadata"] = {"labels": {"team": "vision"}}
    selector = {**SELECTOR, "alpha.jobset.sigs.k8s.io/namespaced-job": "research_llama-workers-0"}
    watched.see(jobset(spec={"replicatedJobs": [job]}))
    watched.see(pod(0, labels={"team": "vision", "added": "yes"}, spec={"nodeSelector": selector}))
    (fact,) = (fact for fact in watched.due_facts() if isinstance(fact, SlicesWanted))
    (leader,) = fact.waiting
    assert leader.node_selector == tuple(sorted(selector.items()))
    assert ("added", "yes") in leader.labels
    assert "team" not in dict(leader.labels)


def test_leaders_of_a_template_that_opted_out_have_no_demand(watched: Watched) -> None:
    theirs = replicated_job("workers", 2)
    theirs["template"]["spec"]["template"]["metadata"] = {"labels": {OPTED_OUT: "true"}}
    watched.see(jobset(spec={"replicatedJobs": [theirs, replicated_job("others")]}), pod(0), pod(1))
    watched.pass_time(2)
    assert demand(watched.due_facts()) == []


def test_an_unparseable_jobset_has_no_demand_but_is_not_gone(watched: Watched) -> None:
    watched.see(jobset(), pod(0), pod(1))
    watched.due_facts()
    watched.see(jobset(spec={"replicatedJobs": [replicated_job(overhead={"cpu": "some"})]}))
    watched.pass_time(300)
    (fact,) = watched.due_facts()
    assert isinstance(fact, WorkloadChanged)
    assert fact.template_error == 'replicatedJob workers: spec.overhead.cpu: "some" is not a valid quantity'
    assert watched.listed() == ["u-1"]
