from datetime import timedelta
from typing import Any

from relay.fact_queue import FactQueue
from relay.objects import Kind
from tests.builders import CLUSTER
from tests.relay.objects import jobset, pod
from tests.relay.test_fact_queue_legacy_pools import legacy_node
from tests.relay.watched import START, Watched, demand, due_facts, nodes, read, states
from tpu_slices.domain.model.facts import Heartbeat, SlicesWanted, WorkloadChanged, WorkloadState


def test_a_jobset_is_reported_when_it_is_first_seen_and_at_each_change_of_state(watched: Watched) -> None:
    watched.see(jobset())
    assert states(watched.due_facts()) == [("u-1", WorkloadState.ACTIVE)]
    watched.see(jobset(version=11))
    assert states(watched.due_facts()) == []
    watched.see(jobset(version=12, conditions=["Completed"]))
    assert states(watched.due_facts()) == [("u-1", WorkloadState.COMPLETED)]


def test_a_deleted_jobset_is_reported_with_its_last_version(watched: Watched) -> None:
    watched.see(jobset())
    watched.due_facts()
    watched.lose(jobset(version=99, generation=3))
    (fact,) = watched.due_facts()
    assert isinstance(fact, WorkloadChanged)
    assert (fact.state, fact.workload.generation, fact.workload.resource_version) == (WorkloadState.DELETED, 3, "99")


def test_a_jobset_missing_from_a_new_list_was_deleted(watched: Watched) -> None:
    watched.see(jobset(), jobset("gemma", uid="u-2"))
    watched.due_facts()
    watched.relist(Kind.JOBSETS, jobset("gemma", uid="u-2"))
    assert states(watched.due_facts()) == [("u-1", WorkloadState.DELETED)]


def test_a_recreated_jobset_is_another_one(watched: Watched) -> None:
    watched.see(jobset(), pod(0), pod(1))
    watched.due_facts()
    watched.relist(Kind.JOBSETS, jobset(uid="u-2"))
    facts = watched.due_facts()
    assert states(facts) == [("u-1", WorkloadState.DELETED), ("u-2", WorkloadState.ACTIVE)]
    assert demand(facts) == []


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


def test_the_state_of_an_active_jobset_is_repeated_while_hosts_made_for_it_exist(watched: Watched) -> None:
    watched.see(jobset(), jobset("gemma", uid="u-2"))
    watched.due_facts()
    watched.see(*nodes(2))
    assert states(watched.due_facts()) == []
    for _ in range(2):
        watched.pass_time(300)
        assert states(watched.due_facts()) == [("u-1", WorkloadState.ACTIVE)]
    watched.relist(Kind.HOSTS)
    watched.pass_time(300)
    watched.due_facts()
    watched.pass_time(300)
    assert states(watched.due_facts()) == []


def test_the_state_of_a_jobset_with_legacy_hosts_is_repeated(watched: Watched) -> None:
    watched.see(jobset(), legacy_node())
    watched.due_facts()
    watched.pass_time(300)
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
