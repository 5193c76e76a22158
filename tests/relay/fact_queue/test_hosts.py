from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from relay.hosts.announced import SCHEDULED
from relay.hosts.closing import CLOSED
from relay.objects import Kind
from tests.builders import CLUSTER, a_job
from tests.relay.closing import question
from tests.relay.objects import bound_pod, jobset, node
from tests.relay.watched import Watched, counts, nodes, occupants, reports, states
from tpu_slices.domain.model.facts import HostsChanged, WorkloadState
from tpu_slices.domain.model.hosts import Upcoming
from tpu_slices.domain.model.questions import HostsQuestion
from tpu_slices.domain.model.slices import WorkloadUid, claim_id
from tpu_slices.domain.records.hosts import Hosts, digest_of

OTHERS = len(Kind) - 1
"""The versions of all watches but that of hosts, together."""


def test_the_first_host_is_reported_at_once_and_the_next_within_fifteen_seconds(watched: Watched) -> None:
    watched.see(node(0))
    assert counts(watched.due_facts()) == [(1, 1)]
    watched.see(node(1))
    watched.pass_time(14)
    watched.see(node(2, ready=False))
    assert counts(watched.due_facts()) == []
    watched.pass_time(1)
    assert counts(watched.due_facts()) == [(2, 3)]


def test_the_last_host_is_reported_at_once(watched: Watched) -> None:
    watched.see(*nodes(3))
    watched.due_facts()
    watched.see(node(3, ready=False))
    assert counts(watched.due_facts()) == []
    watched.see(node(3))
    assert counts(watched.due_facts()) == [(4, 4)]


def test_the_first_lost_host_is_reported_at_once(watched: Watched) -> None:
    watched.see(*nodes(4))
    watched.due_facts()
    watched.see(node(2, ready=False))
    assert counts(watched.due_facts()) == [(3, 4)]
    watched.lose(node(2))
    assert counts(watched.due_facts()) == []
    watched.pass_time(15)
    assert counts(watched.due_facts()) == [(3, 3)]


def test_hosts_under_maintenance_are_counted_and_are_part_of_what_is_compared(watched: Watched) -> None:
    watched.see(*nodes(4))
    watched.due_facts()
    watched.see(node(2, labels={"cloud.google.com/active-node-maintenance": "ONGOING"}))
    watched.pass_time(15)
    (report,) = reports(watched.due_facts())
    assert (report.usable, report.joined, report.maintained) == (4, 4, 1)
    known = Hosts(usable=4, joined=4, maintained=1)
    assert digest_of(report.slice_id, 1, known) != digest_of(report.slice_id, 1, replace(known, maintained=0))


def test_what_is_announced_of_hosts_is_told_once_with_the_earliest_time_and_is_part_of_what_is_compared(
    watched: Watched,
) -> None:
    watched.see(*nodes(4))
    watched.due_facts()
    for number, label in ((1, "1764580000"), (2, "1764570000"), (3, "soon")):
        watched.see(node(number, labels={SCHEDULED: label}))
    watched.pass_time(15)
    (report,) = reports(watched.due_facts())
    earliest = Upcoming(begins=datetime.fromtimestamp(1764570000, UTC))
    assert (report.usable, report.announced) == (4, earliest)
    known = Hosts(usable=4, joined=4, announced=earliest)
    assert digest_of(report.slice_id, 1, known) != digest_of(report.slice_id, 1, replace(known, announced=None))
    watched.pass_time(600)
    assert reports(watched.due_facts()) == []


def test_a_count_after_a_loss_has_a_higher_sequence(watched: Watched) -> None:
    watched.see(*(node(number, metadata={"resourceVersion": str(40 + number)}) for number in range(4)))
    (before,) = reports(watched.due_facts())
    watched.lose(node(3), version=60)
    (after,) = reports(watched.due_facts())
    assert (before.sequence, after.sequence) == (43 + OTHERS, 60 + OTHERS)


@pytest.mark.parametrize("kind", [Kind.JOBSETS, Kind.LEADERS])
def test_every_watch_raises_the_sequence_and_none_lowers_it(watched: Watched, kind: Kind) -> None:
    watched.see(node(0))
    (before,) = reports(watched.due_facts())
    for version in ("90", "80", "not a number"):
        watched.queue.bookmarked(kind, version, watched.now)
    watched.asked_for_hosts()
    (after,) = reports(watched.due_facts())
    assert (before.sequence, after.sequence) == (30 + OTHERS, 30 + 90 + OTHERS - 1)


def test_a_list_from_a_lagging_server_does_not_lower_the_sequence(watched: Watched) -> None:
    watched.see(node(0, metadata={"resourceVersion": "60"}))
    watched.due_facts()
    watched.relist(Kind.HOSTS, version=50)
    watched.pass_time(15)
    (fact,) = reports(watched.due_facts())
    assert (fact.joined, fact.sequence) == (0, 60 + OTHERS)


def test_a_host_missing_from_a_new_list_is_gone(watched: Watched) -> None:
    watched.see(*nodes(4))
    watched.due_facts()
    watched.relist(Kind.HOSTS, *nodes(3), version=500)
    (fact,) = reports(watched.due_facts())
    assert (fact.usable, fact.joined, fact.sequence) == (3, 3, 500 + OTHERS)


def test_a_pool_that_lost_all_its_hosts_is_reported_once(watched: Watched) -> None:
    single = nodes(1, labels={"cloud.google.com/gke-tpu-topology": "2x2x1"})
    watched.see(*single)
    assert counts(watched.due_facts()) == [(1, 1)]
    watched.lose(single[0])
    assert counts(watched.due_facts()) == [(0, 0)]
    watched.pass_time(1000)
    assert counts(watched.due_facts()) == []


def test_a_count_is_told_once_and_again_on_request(watched: Watched) -> None:
    watched.see(*nodes(1))
    watched.due_facts()
    watched.pass_time(3_600)
    assert watched.due_facts() == []
    watched.asked_for_hosts()
    assert counts(watched.due_facts()) == [(1, 1)]


def test_the_hosts_of_each_attempt_are_counted_separately(watched: Watched) -> None:
    watched.see(node(0, attempt=1), node(0, attempt=2), node(1, attempt=2))
    facts = reports(watched.due_facts())
    assert sorted((fact.attempt, fact.joined) for fact in facts) == [(1, 1), (2, 2)]


def test_without_a_topology_the_last_usable_host_is_reported_at_once(watched: Watched) -> None:
    unlabelled: dict[str, Any] = {"labels": {"cloud.google.com/gke-tpu-topology": None}}
    watched.see(node(0, **unlabelled), node(1, ready=False, **unlabelled))
    watched.due_facts()
    watched.see(node(1, **unlabelled))
    assert counts(watched.due_facts()) == [(2, 2)]


def cordoned(count: int) -> list[dict[str, Any]]:
    return nodes(count, spec={"unschedulable": True})


def test_cordoned_hosts_are_closed_once_pods_under_way_have_arrived(watched: Watched) -> None:
    watched.see(*nodes(4))
    watched.due_facts()
    watched.see(*cordoned(4))
    (fact,) = reports(watched.due_facts())
    assert (fact.usable, fact.joined, fact.closed) == (0, 4, 0)
    watched.pass_time(4)
    watched.see(*cordoned(4))
    assert reports(watched.due_facts()) == []
    watched.pass_time(1)
    (fact,) = reports(watched.due_facts())
    assert (fact.usable, fact.joined, fact.closed) == (0, 4, 4)


def test_a_pool_is_closed_when_its_last_host_is(watched: Watched) -> None:
    watched.see(*cordoned(3), node(3))
    watched.pass_time(4)
    watched.due_facts()
    watched.see(*cordoned(4))
    watched.pass_time(4)
    assert [fact.closed for fact in reports(watched.due_facts())] == []
    watched.pass_time(1)
    assert [fact.closed for fact in reports(watched.due_facts())] == [4]


def test_an_open_host_that_joins_a_closed_pool_is_reported_at_once(watched: Watched) -> None:
    watched.see(*cordoned(3))
    watched.pass_time(5)
    watched.due_facts()
    watched.see(node(3))
    assert [(fact.joined, fact.closed) for fact in reports(watched.due_facts())] == [(4, 3)]


def test_a_host_that_is_cordoned_again_settles_again(watched: Watched) -> None:
    watched.see(*cordoned(1))
    watched.pass_time(4)
    watched.see(node(0))
    watched.see(*cordoned(1))
    watched.pass_time(4)
    assert [fact.closed for fact in reports(watched.due_facts())] == [0]
    watched.pass_time(1)
    assert [fact.closed for fact in reports(watched.due_facts())] == [1]


def test_a_closed_host_that_is_gone_is_not_counted(watched: Watched) -> None:
    watched.see(*cordoned(1))
    watched.due_facts()
    watched.lose(node(0))
    assert counts(watched.due_facts()) == [(0, 0)]
    watched.pass_time(300)
    assert reports(watched.due_facts()) == []


JOB = a_job(uid=WorkloadUid("u-1"), replicated_job="workers")


def legacy_node(number: int = 0, job: str = "llama-workers-0", jobset: str = "llama", **parts: Any) -> dict[str, Any]:
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
    return node(number, labels=labels, **parts)


def counted(watched: Watched) -> list[tuple[str, int, int]]:
    facts = (fact for fact in watched.due_facts() if isinstance(fact, HostsChanged))
    return [(fact.slice_id, fact.attempt, fact.usable) for fact in facts]


def test_legacy_hosts_are_counted_as_attempt_0_of_their_jobs_slice(watched: Watched) -> None:
    watched.see(jobset(), *(legacy_node(number) for number in range(4)))
    assert counted(watched) == [(claim_id(JOB), 0, 4)]


def test_legacy_hosts_are_not_reported_before_their_jobset_is_seen(watched: Watched) -> None:
    watched.see(legacy_node())
    assert counted(watched) == []
    watched.see(jobset())
    assert counted(watched) == [(claim_id(JOB), 0, 1)]


def test_legacy_hosts_of_a_job_that_the_jobset_lacks_are_not_reported(watched: Watched) -> None:
    watched.see(jobset(), legacy_node(job="llama-workers-7"))
    assert counted(watched) == []


def test_a_leader_on_a_legacy_host_is_reported(watched: Watched) -> None:
    watched.see(jobset(), legacy_node(), bound_pod(0, legacy_node()["metadata"]["name"]))
    (fact,) = reports(watched.due_facts())
    assert (fact.slice_id, fact.attempt) == (claim_id(JOB), 0)
    assert [each.workload_job(CLUSTER) for each in fact.occupants] == [JOB]


def test_the_hosts_of_a_jobset_that_was_created_anew_are_reported_for_both_slices(watched: Watched) -> None:
    watched.see(jobset(), legacy_node())
    watched.due_facts()
    watched.lose(jobset())
    watched.see(jobset(uid="u-2"))
    again = bound_pod(0, legacy_node()["metadata"]["name"], labels={"jobset.sigs.k8s.io/jobset-uid": "u-2"})
    watched.see(again)
    facts = reports(watched.due_facts())
    new = claim_id(a_job(uid=WorkloadUid("u-2"), replicated_job="workers"))
    assert {fact.slice_id for fact in facts} == {claim_id(JOB), new}
    assert occupants(facts) == [["pod-0"], ["pod-0"]]


def test_the_loss_of_the_last_legacy_host_is_reported(watched: Watched) -> None:
    watched.see(jobset(), legacy_node())
    watched.due_facts()
    watched.relist(Kind.HOSTS, version=50)
    watched.pass_time(15)
    assert counted(watched) == [(claim_id(JOB), 0, 0)]


def about(uid: str, number: int = 1) -> HostsQuestion:
    job = a_job(uid=WorkloadUid(uid), replicated_job="workers")
    return question(slice_id=claim_id(job), attempt=0, number=number)


def test_a_legacy_pool_is_closed_as_attempt_0_of_its_jobs_slice(watched: Watched) -> None:
    watched.see(jobset(), legacy_node())
    watched.due_facts()
    watched.queue.ask(about("u-1"), watched.now)
    assert states(watched.due_facts()) == [("u-1", WorkloadState.ACTIVE)]
    watched.see({**legacy_node(), "spec": {"unschedulable": True}})
    watched.pass_time(5)
    (fact,) = reports(watched.due_facts())
    assert (fact.slice_id, fact.attempt, fact.closed, fact.answers) == (claim_id(JOB), 0, 1, 1)


def test_a_legacy_pool_is_closed_for_its_jobset_that_is_gone(watched: Watched) -> None:
    watched.see(jobset(), legacy_node())
    watched.due_facts()
    watched.lose(jobset())
    watched.due_facts()
    watched.queue.ask(about("u-1"), watched.now)
    assert len(watched.patches()) == 1


def replies(watched: Watched) -> dict[str, tuple[int, int | None, int]]:
    """Return of the report under each slice how many hosts are closed, the number of its answer, and the highest."""
    return {fact.slice_id: (fact.closed, fact.answers, fact.highest) for fact in reports(watched.due_facts())}


def test_of_two_slices_of_one_legacy_pool_that_ask_by_the_same_numbers_the_later_is_told_to_ask_anew(
    watched: Watched,
) -> None:
    watched.see(jobset(), legacy_node())
    watched.due_facts()
    watched.lose(jobset())
    watched.see(jobset(uid="u-2"))
    watched.due_facts()
    first, second = about("u-1"), about("u-2")
    watched.queue.ask(first, watched.now)
    assert replies(watched) == {}
    watched.queue.ask(second, watched.now)
    assert replies(watched) == {first.slice_id: (0, None, 1), second.slice_id: (0, None, 2)}
    watched.see({**legacy_node(metadata={"annotations": {CLOSED: "1"}}), "spec": {"unschedulable": True}})
    watched.pass_time(5)
    assert replies(watched) == {first.slice_id: (1, 1, 1), second.slice_id: (1, None, 1)}

    watched.queue.ask(about("u-2", number=2), watched.now)
    assert replies(watched) == {first.slice_id: (1, None, 2), second.slice_id: (1, 2, 2)}
    watched.queue.ask(first, watched.now)
    assert replies(watched) == dict.fromkeys((first.slice_id, second.slice_id), (1, None, 2))


def test_a_legacy_pool_that_another_jobset_of_that_name_uses_is_not_reported_as_empty(watched: Watched) -> None:
    """After a restart the relay does not know the earlier one's UID: it cannot tell whose pool is meant."""
    again = bound_pod(0, legacy_node()["metadata"]["name"], labels={"jobset.sigs.k8s.io/jobset-uid": "u-2"})
    watched.see(jobset(uid="u-2"), legacy_node(), again)
    watched.pass_time(5)
    watched.due_facts()
    watched.queue.ask(about("u-1"), watched.now)
    watched.pass_time(61)
    assert watched.due_facts() == []
    assert watched.patches() == ()


def test_a_legacy_pool_of_another_name_does_not_hold_up_an_answer(watched: Watched) -> None:
    watched.see(jobset(), legacy_node(0, "gemma-workers-0", "gemma"), legacy_node(1, "llama"))
    watched.queue.ask(about("u-1"), watched.now)
    assert [(fact.joined, fact.answers) for fact in reports(watched.due_facts())] == [(0, 1)]
