from datetime import timedelta

import pytest

from relay.fact_queue import FactQueue
from relay.objects import Kind
from tests.builders import CLUSTER
from tests.relay.objects import bound_pod, jobset, pod
from tests.relay.watched import START, Watched, demand, due_facts, facts_of, read
from tpu_slices.domain.model.facts import Heartbeat, SlicesWanted, WorkloadChanged, WorkloadsListed
from tpu_slices.domain.model.slices import ClusterId, Owner, OwnerKind, WorkloadJob, WorkloadUid
from tpu_slices.domain.reconciling.inventory import digest_of


def test_a_heartbeat_each_minute_has_count_and_digest_of_the_live_tpu_jobsets(watched: Watched) -> None:
    watched.see(
        jobset(),
        jobset("gemma", uid="u-2", spec={"suspend": True}),
        jobset("t5", uid="u-3", conditions=["Completed"]),
        jobset("other", uid="u-4", spec={"managedBy": "kueue.x-k8s.io/multikueue"}),
    )
    watched.pass_time(59)
    assert not [fact for fact in due_facts(watched.queue, watched.now) if isinstance(fact, Heartbeat)]
    watched.pass_time(1)
    (beat,) = due_facts(watched.queue, watched.now)
    assert beat == Heartbeat(count=3, digest=digest_of(map(WorkloadUid, ["u-1", "u-2", "u-4"])), hosts_digest=0)


def test_the_list_has_every_jobset(watched: Watched) -> None:
    watched.see(jobset(), jobset("gemma", uid="u-2"))
    (part,) = watched.queue.workload_list(START, watched.now)
    assert part == WorkloadsListed(
        asked_at=START, after=None, up_to=None, uids=(WorkloadUid("u-1"), WorkloadUid("u-2")), parts=1
    )


def test_no_fact_is_due_until_every_list_is_complete() -> None:
    queue = FactQueue(CLUSTER)
    queue.listed(Kind.LEADERS, [read(pod(0)), read(pod(1))], "1", START)
    queue.listed(Kind.JOBSETS, [read(jobset())], "1", START)
    early = START + timedelta(seconds=9)
    assert (queue.complete, due_facts(queue, early), queue.workload_list(START, early)) == (False, [], ())
    queue.listed(Kind.HOSTS, [], "1", START + timedelta(seconds=10))
    assert queue.complete
    facts = due_facts(queue, START + timedelta(seconds=10))
    assert {type(fact) for fact in facts} == {Heartbeat, WorkloadChanged, SlicesWanted}


def test_no_fact_is_due_while_a_watch_is_silent_for_too_long(watched: Watched) -> None:
    watched.see(jobset(), pod(0), pod(1))
    watched.due_facts()
    watched.now += timedelta(minutes=5)
    watched.queue.bookmarked(Kind.JOBSETS, "1", watched.now)
    watched.queue.bookmarked(Kind.HOSTS, "1", watched.now)
    assert (due_facts(watched.queue, watched.now), watched.listed()) == ([], None)
    watched.relist(Kind.LEADERS, pod(0))
    assert demand(watched.due_facts()) == [[0]]


def test_a_flush_returns_demand_that_is_still_being_gathered(watched: Watched) -> None:
    watched.see(jobset(), pod(0))
    watched.due_facts()
    assert demand(facts_of(watched.queue, watched.queue.flush(watched.now))) == [[0]]


def test_the_queue_knows_when_the_next_fact_is_due(watched: Watched) -> None:
    assert watched.queue.next_due() == START + timedelta(minutes=1)
    watched.see(jobset(), pod(0))
    watched.due_facts()
    assert watched.queue.next_due() == START + timedelta(seconds=1)


def job(index: int, uid: str = "u-1") -> WorkloadJob:
    return WorkloadJob(
        cluster=ClusterId("demo"),
        owner=Owner(kind=OwnerKind.JOBSET, namespace="research", name="llama", uid=WorkloadUid(uid)),
        replicated_job="workers",
        job_index=index,
    )


def test_the_leader_pod_of_a_job_is_the_one_that_waits(watched: Watched) -> None:
    watched.see(jobset(), bound_pod(0, "n-1", uid="old", phase="Failed"), pod(0, uid="new"), pod(1))
    found = watched.queue.cache.leader_pod(job(0))
    assert found is not None
    assert found.pod_uid == "new"


@pytest.mark.parametrize("other", [job(7), job(0, uid="u-2")], ids=["another index", "another JobSet"])
def test_another_job_has_no_leader_pod(watched: Watched, other: WorkloadJob) -> None:
    watched.see(jobset(), pod(0))
    assert watched.queue.cache.leader_pod(other) is None
