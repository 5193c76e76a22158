from datetime import timedelta
from typing import Any

import pytest

from relay.fact_queue import FactQueue
from relay.objects import Kind
from tests.builders import CLUSTER
from tests.relay.fact_queue.test_hosts import legacy_node
from tests.relay.objects import bound_pod, jobset, pod, replicated_job
from tests.relay.watched import START, Watched, demand, digests_of, nodes, none_of, read, states
from tpu_slices.domain.model.facts import Family, Heartbeat, Listed, SlicesWanted, WorkloadChanged, WorkloadState
from tpu_slices.domain.model.questions import ListQuestion, RepeatQuestion
from tpu_slices.domain.model.slices import ClusterId, Owner, OwnerKind, WorkloadJob, WorkloadUid
from tpu_slices.domain.records.standings import standing
from tpu_slices_simulator.relays import due_facts, facts_of


def active(uid: str) -> int:
    return standing(WorkloadUid(uid), WorkloadState.ACTIVE, "", "", None)


def suspended(uid: str) -> int:
    return standing(WorkloadUid(uid), WorkloadState.SUSPENDED, "", "", None)


def repeated(*uids: str) -> RepeatQuestion:
    return RepeatQuestion(family=Family.WORKLOADS, keys=uids)


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
    live = active("u-1") + suspended("u-2") + active("u-4")
    sums = {Family.WORKLOADS: live, Family.DEMAND: 0, Family.HOSTS: 0}
    assert beat == Heartbeat(count=3, digests=sums, hands_across=True)


def test_a_heartbeat_has_of_each_family_the_sum_of_what_its_list_would_have(watched: Watched) -> None:
    watched.see(jobset(), jobset("gemma", uid="u-2", spec={"suspend": True}), pod(0), pod(1), *nodes(2))
    watched.due_facts()
    watched.pass_time(60)
    sums = [fact.digests for fact in due_facts(watched.queue, watched.now) if isinstance(fact, Heartbeat)]
    assert sums == [{family: sum(watched.digests(family).values()) for family in Family}]
    assert 0 not in sums[0].values()


def test_the_list_has_every_jobset(watched: Watched) -> None:
    watched.see(jobset(), jobset("gemma", uid="u-2", spec={"suspend": True}))
    watched.pass_time(5)
    watched.due_facts()
    asked_at = START - timedelta(minutes=1)
    watched.queue.ask(ListQuestion(family=Family.WORKLOADS, asked_at=asked_at), watched.now)
    (part,) = watched.due_facts()
    assert part == Listed(
        family=Family.WORKLOADS,
        asked_at=asked_at,
        after=None,
        up_to=None,
        digests={"u-1": active("u-1"), "u-2": suspended("u-2")},
        part=0,
        parts=1,
        sequence=9 + len(Kind),
    )


def test_the_state_of_a_jobset_is_repeated_on_request(watched: Watched) -> None:
    watched.see(jobset(), jobset("gemma", uid="u-2", spec={"suspend": True}))
    watched.pass_time(5)
    watched.due_facts()
    watched.pass_time(60)
    assert watched.due_facts() == []
    watched.queue.ask(repeated("u-2", "u-gone"), watched.now)
    (fact,) = watched.due_facts()
    assert isinstance(fact, WorkloadChanged)
    assert (fact.workload.owner.uid, fact.state) == ("u-2", WorkloadState.SUSPENDED)
    assert watched.due_facts() == []


def test_no_fact_is_due_until_every_list_is_complete() -> None:
    queue = FactQueue(CLUSTER)
    none_of(queue, *set(Kind) - {Kind.LEADERS, Kind.JOBSETS, Kind.HOSTS})
    queue.listed(Kind.LEADERS, [read(pod(0)), read(pod(1))], "1", START)
    queue.listed(Kind.JOBSETS, [read(jobset())], "1", START)
    early = START + timedelta(seconds=9)
    queue.ask(ListQuestion(family=Family.WORKLOADS, asked_at=START), early)
    assert (queue.complete, due_facts(queue, early)) == (False, [])
    queue.listed(Kind.HOSTS, [], "1", START + timedelta(seconds=10))
    assert queue.complete
    facts = due_facts(queue, START + timedelta(seconds=10))
    assert {type(fact) for fact in facts} == {Heartbeat, WorkloadChanged, SlicesWanted}


def test_nothing_is_compared_until_what_was_there_at_the_start_has_been_told() -> None:
    watched = Watched.after(jobset(), pod(0))
    watched.queue.ask(ListQuestion(family=Family.DEMAND, asked_at=START), START)
    first, *told = due_facts(watched.queue, START)
    assert (first, Listed in map(type, told)) == (Heartbeat(count=1, first=True, hands_across=True), False)
    watched.pass_time(1)
    assert demand(watched.due_facts()) == [[0]]
    watched.pass_time(4)
    assert [*digests_of(watched.due_facts())] == ["u-1"]


def test_no_fact_is_due_while_a_watch_is_silent_for_too_long(watched: Watched) -> None:
    watched.see(jobset(), pod(0), pod(1))
    watched.due_facts()
    watched.now += timedelta(minutes=5)
    for kind in set(Kind) - {Kind.LEADERS}:
        watched.queue.bookmarked(kind, "1", watched.now)
    watched.asked_for_list(Family.DEMAND)
    assert due_facts(watched.queue, watched.now) == []
    watched.relist(Kind.LEADERS, pod(0))
    assert [*digests_of(watched.due_facts())] == ["u-1"]


def test_a_flush_returns_demand_that_is_still_being_gathered(watched: Watched) -> None:
    watched.see(jobset(), pod(0))
    watched.due_facts()
    assert demand(facts_of(watched.queue, watched.queue.flush(watched.now), watched.now)) == [[0]]


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


def test_a_jobset_is_reported_soon_after_it_is_first_seen_and_at_each_change_of_state(watched: Watched) -> None:
    watched.see(jobset())
    watched.pass_time(4.9)
    assert states(watched.due_facts()) == []
    watched.pass_time(0.1)
    assert states(watched.due_facts()) == [("u-1", WorkloadState.ACTIVE)]
    watched.see(jobset(version=11))
    assert states(watched.due_facts()) == []
    watched.see(jobset(version=12, conditions=["Completed"]))
    assert states(watched.due_facts()) == [("u-1", WorkloadState.COMPLETED)]


def test_a_new_jobset_whose_demand_comes_at_once_is_not_reported_beside_it(watched: Watched) -> None:
    watched.see(jobset(), pod(0))
    watched.pass_time(4)
    (wanted,) = watched.due_facts()
    assert isinstance(wanted, SlicesWanted)
    watched.pass_time(600)
    assert states(watched.due_facts()) == []


@pytest.mark.parametrize(
    "parts",
    [
        {"spec": {"suspend": True}},
        {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "team-b"}}},
        {"spec": {"replicatedJobs": [replicated_job(overhead={"cpu": "some"})]}},
        {"conditions": ["Completed"]},
    ],
    ids=["suspended", "of a queue", "unreadable", "completed"],
)
def test_a_new_jobset_of_which_demand_does_not_tell_all_is_reported_at_once(
    watched: Watched, parts: dict[str, Any]
) -> None:
    watched.see(jobset(**parts), pod(0), pod(1))
    assert len(states(watched.due_facts())) == 1


def test_a_change_within_the_time_in_which_a_jobset_is_introduced_is_reported_at_once(watched: Watched) -> None:
    watched.see(jobset())
    watched.pass_time(1)
    watched.see(jobset(version=12, conditions=["Completed"]))
    assert states(watched.due_facts()) == [("u-1", WorkloadState.COMPLETED)]


def test_a_flush_reports_the_jobsets_that_are_new(watched: Watched) -> None:
    watched.see(jobset())
    assert states(facts_of(watched.queue, watched.queue.flush(watched.now), watched.now)) == [
        ("u-1", WorkloadState.ACTIVE)
    ]


def test_a_deleted_jobset_is_reported_with_the_version_of_its_deletion(watched: Watched) -> None:
    watched.see(jobset())
    watched.due_facts()
    watched.lose(jobset(version=99, generation=3), version=99)
    (fact,) = watched.due_facts()
    assert isinstance(fact, WorkloadChanged)
    assert (fact.state, fact.workload.generation, fact.workload.resource_version) == (WorkloadState.DELETED, 3, "99")


@pytest.mark.parametrize(
    ("condition", "state"), [("Completed", WorkloadState.COMPLETED), ("Failed", WorkloadState.FAILED)]
)
def test_a_jobset_that_is_deleted_as_it_ends_has_ended(watched: Watched, condition: str, state: WorkloadState) -> None:
    """As with ttlSecondsAfterFinished: 0, in the foreground. It ended, whoever deleted it then."""
    watched.see(jobset())
    watched.due_facts()
    ended, last = (jobset(version=version, conditions=[condition]) for version in (98, 99))
    last["metadata"]["deletionTimestamp"] = "2026-11-26T12:00:00Z"
    watched.see(ended, last)
    watched.lose(last)
    assert states(watched.due_facts()) == [("u-1", state)]


def test_a_jobset_missing_from_a_new_list_is_missing_and_nobody_said_that_it_was_deleted(watched: Watched) -> None:
    watched.see(jobset(), jobset("gemma", uid="u-2"))
    watched.due_facts()
    watched.relist(Kind.JOBSETS, jobset("gemma", uid="u-2"))
    (fact,) = watched.due_facts()
    assert states([fact]) == [("u-1", WorkloadState.MISSING)]
    assert isinstance(fact, WorkloadChanged)
    assert fact.workload.resource_version == jobset()["metadata"]["resourceVersion"]


def test_a_jobset_that_the_relay_takes_for_none_any_more_is_missing(watched: Watched) -> None:
    watched.see(jobset())
    watched.due_facts()
    watched.queue.lost(Kind.JOBSETS, "u-1", watched.now)
    assert states(watched.due_facts()) == [("u-1", WorkloadState.MISSING)]


def test_a_recreated_jobset_is_another_one(watched: Watched) -> None:
    watched.see(jobset(), pod(0), pod(1))
    watched.due_facts()
    watched.relist(Kind.JOBSETS, jobset(uid="u-2"))
    facts = watched.due_facts()
    assert states(facts) == [("u-1", WorkloadState.MISSING)]
    assert demand(facts) == []
    watched.pass_time(5)
    assert states(watched.due_facts()) == [("u-2", WorkloadState.ACTIVE)]


def test_a_late_deletion_does_not_hide_the_recreated_jobset(watched: Watched) -> None:
    watched.see(jobset(), jobset(uid="u-2"))
    watched.due_facts()
    watched.lose(jobset())
    new: dict[str, Any] = {"labels": {"jobset.sigs.k8s.io/jobset-uid": "u-2"}}
    watched.see(pod(0, **new), pod(1, **new))
    facts = watched.due_facts()
    assert states(facts) == [("u-1", WorkloadState.DELETED)]
    assert [fact.workload.owner.uid for fact in facts if isinstance(fact, SlicesWanted)] == ["u-2"]


def test_a_jobsets_end_is_repeated_while_it_has_hosts(watched: Watched) -> None:
    watched.see(jobset(), *nodes(1))
    watched.due_facts()
    watched.see(jobset(conditions=["Completed"]))
    assert states(watched.due_facts()) == [("u-1", WorkloadState.COMPLETED)]
    watched.pass_time(300)
    assert states(watched.due_facts()) == [("u-1", WorkloadState.COMPLETED)]
    watched.lose(nodes(1)[0])
    watched.pass_time(300)
    watched.due_facts()
    watched.pass_time(300)
    assert states(watched.due_facts()) == []


def test_an_active_state_is_told_once_whatever_hosts_there_are_and_again_on_request(watched: Watched) -> None:
    watched.see(jobset(), *nodes(2), legacy_node())
    watched.pass_time(5)
    assert states(watched.due_facts()) == [("u-1", WorkloadState.ACTIVE)]
    watched.pass_time(3_600)
    assert watched.due_facts() == []
    watched.queue.ask(repeated("u-1"), watched.now)
    assert states(watched.due_facts()) == [("u-1", WorkloadState.ACTIVE)]


def test_hosts_that_join_for_a_suspended_jobset_repeat_its_state(watched: Watched) -> None:
    watched.see(jobset(spec={"suspend": True}))
    watched.due_facts()
    watched.see(*nodes(1))
    assert states(watched.due_facts()) == [("u-1", WorkloadState.SUSPENDED)]


def test_the_first_heartbeat_says_that_it_is_the_first() -> None:
    queue = FactQueue(CLUSTER)
    for kind in Kind:
        queue.listed(kind, [read(jobset())] if kind is Kind.JOBSETS else [], "1", START)
    beats = [fact for fact in due_facts(queue, START) if isinstance(fact, Heartbeat)]
    later = [fact for fact in due_facts(queue, START + timedelta(minutes=1)) if isinstance(fact, Heartbeat)]
    assert [beat.first for beat in (*beats, *later)] == [True, False]


def test_a_change_of_the_kueue_queue_is_reported(watched: Watched) -> None:
    watched.see(jobset(spec={"suspend": True}))
    watched.due_facts()
    watched.see(jobset(spec={"suspend": True}, metadata={"labels": {"kueue.x-k8s.io/queue-name": "team-b"}}))
    (fact,) = watched.due_facts()
    assert isinstance(fact, WorkloadChanged)
    assert fact.queue == "team-b"
