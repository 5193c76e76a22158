"""Whose leaders are on a pool's hosts, as reported with the hosts."""

from typing import Any

import pytest

from relay.fact_queue import FactQueue
from relay.objects import Kind
from tests.builders import CLUSTER
from tests.relay.objects import OPTED_OUT, SELECTOR, Json, bound_pod, container, controlled_by, jobset, node, pod
from tests.relay.objects import replicated_job as template
from tests.relay.watched import START, Watched, nodes, none_of, occupants, read, reports
from tpu_slices.domain.model.facts import HostsChanged
from tpu_slices_simulator.relays import due_facts

HOST = "tpu-llama-0-aaaaaaaaaaaaa-1-0"
GUEST: dict[str, Any] = {
    "jobset": "guest",
    "uid": "guest",
    "labels": {"jobset.sigs.k8s.io/jobset-uid": "u-2"},
}


def test_a_leader_on_our_hosts_is_reported_with_them_until_it_is_gone(watched: Watched) -> None:
    watched.see(jobset(generation=7), node(0), bound_pod(1, HOST))
    (fact,) = reports(watched.due_facts())
    assert (fact.slice_id, fact.attempt, fact.usable, fact.joined) == ("tpu-llama-0-aaaaaaaaaaaaa", 1, 1, 1)
    (occupant,) = fact.occupants
    assert (occupant.owner.uid, occupant.owner.full_name, occupant.generation) == ("u-1", "research/llama", 7)
    assert (occupant.replicated_job, occupant.job_index, occupant.pod_uid) == ("workers", 1, "pod-1")
    watched.lose(bound_pod(1, HOST))
    watched.pass_time(5)
    assert occupants(watched.due_facts()) == [[]]
    watched.pass_time(300)
    assert watched.due_facts() == []


def test_that_a_leader_left_is_reported_after_a_moment_in_which_more_may_happen(watched: Watched) -> None:
    watched.see(jobset(), node(0), bound_pod(0, HOST))
    watched.due_facts()
    watched.lose(bound_pod(0, HOST))
    watched.pass_time(4)
    assert watched.due_facts() == []
    watched.see(bound_pod(0, HOST, uid="next"))
    assert occupants(watched.due_facts()) == [["next"]]


def test_a_leader_that_ended_is_gone(watched: Watched) -> None:
    watched.see(jobset(), node(0), bound_pod(0, HOST))
    watched.due_facts()
    watched.see(bound_pod(0, HOST, phase="Succeeded"))
    watched.pass_time(5)
    assert occupants(watched.due_facts()) == [[]]


def test_a_leader_that_restarts_is_another_occupant_of_the_same_job(watched: Watched) -> None:
    watched.see(jobset(), node(0), bound_pod(0, HOST, uid="first"))
    (before,) = reports(watched.due_facts())
    watched.lose(bound_pod(0, HOST, uid="first"))
    watched.pass_time(5)
    assert occupants(watched.due_facts()) == [[]]
    watched.see(pod(0, uid="second"))
    watched.see(bound_pod(0, HOST, uid="second"))
    (after,) = reports(watched.due_facts())
    assert [each.pod_uid for each in after.occupants] == ["second"]
    assert after.occupants[0].workload_job(CLUSTER) == before.occupants[0].workload_job(CLUSTER)


def test_two_leaders_at_once_are_reported_in_the_order_of_their_pods(watched: Watched) -> None:
    watched.see(jobset(), *nodes(2), bound_pod(1, HOST, uid="pod-b"))
    watched.see(bound_pod(0, "tpu-llama-0-aaaaaaaaaaaaa-1-1", uid="pod-a"))
    assert occupants(watched.due_facts()) == [["pod-a", "pod-b"]]


def test_the_old_and_the_new_leader_of_a_job_are_both_reported(watched: Watched) -> None:
    watched.see(jobset(), *nodes(2), bound_pod(0, HOST, uid="old"))
    watched.see(bound_pod(0, HOST, uid="new"))
    assert occupants(watched.due_facts()) == [["new", "old"]]


SEEN: list[Json] = [jobset(), node(0), bound_pod(0, HOST)]


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
def test_the_order_in_which_leader_jobset_and_host_are_seen_does_not_matter(
    watched: Watched, order: tuple[int, int, int]
) -> None:
    facts = []
    for number in order:
        watched.see(SEEN[number])
        facts += watched.due_facts()
    assert occupants(facts)[-1] == ["pod-0"]


def test_a_leader_whose_pods_watch_is_behind_the_nodes_watch_is_reported_at_once(watched: Watched) -> None:
    watched.see(jobset(), pod(0), *nodes(4))
    assert occupants(watched.due_facts()) == [[]]
    watched.see(bound_pod(0, HOST))
    assert occupants(watched.due_facts()) == [["pod-0"]]


def test_a_list_of_nodes_in_another_order_changes_nothing(watched: Watched) -> None:
    watched.see(jobset(), *nodes(4), bound_pod(0, HOST))
    watched.due_facts()
    watched.relist(Kind.HOSTS, *reversed(nodes(4)), version=50)
    watched.pass_time(15)
    assert reports(watched.due_facts()) == []


def test_a_leader_whose_host_is_gone_is_gone(watched: Watched) -> None:
    watched.see(jobset(), *nodes(2), bound_pod(0, HOST))
    watched.due_facts()
    watched.lose(node(0))
    watched.pass_time(5)
    assert occupants(watched.due_facts()) == [[]]


def test_a_leader_whose_jobset_is_gone_is_gone(watched: Watched) -> None:
    watched.see(jobset(), node(0), bound_pod(0, HOST))
    watched.due_facts()
    watched.lose(jobset())
    watched.pass_time(5)
    assert occupants(watched.due_facts()) == [[]]


def test_a_leader_of_an_earlier_jobset_of_that_name_is_gone(watched: Watched) -> None:
    watched.see(jobset(), node(0), bound_pod(0, HOST))
    watched.due_facts()
    watched.see(jobset(uid="u-2"))
    watched.pass_time(5)
    assert occupants(watched.due_facts()) == [[]]


def test_a_leader_on_other_nodes_is_not_reported(watched: Watched) -> None:
    watched.see(jobset(), node(0), bound_pod(0, "gke-default-pool-1"))
    assert occupants(watched.due_facts()) == [[]]


OTHER_TOPOLOGY = {**SELECTOR, "cloud.google.com/gke-tpu-topology": "4x4x4"}


@pytest.mark.parametrize(
    "parts",
    [
        {"spec": {"containers": [container(0)], "nodeSelector": {}}, "metadata": {"ownerReferences": []}},
        {"spec": {"containers": [container(0)]}},
        {"metadata": {"ownerReferences": []}},
        {"metadata": {"ownerReferences": controlled_by("other-workers-0")}},
        {"metadata": {"ownerReferences": [{**controlled_by("llama-workers-0")[0], "controller": False}]}},
        {"metadata": {"ownerReferences": [{**controlled_by("llama-workers-0")[0], "kind": "ReplicaSet"}]}},
        {"labels": {"jobset.sigs.k8s.io/replicatedjob-name": "others"}},
        {"labels": {"jobset.sigs.k8s.io/jobset-uid": "u-9"}},
        {"labels": {"jobset.sigs.k8s.io/jobset-name": "unknown"}},
    ],
    ids=[
        "a bare pod with the labels alone",
        "without chips",
        "no controller",
        "another Job's",
        "an owner that does not control it",
        "another kind's",
        "a replicatedJob that its JobSet lacks",
        "an earlier JobSet's",
        "an unknown JobSet's",
    ],
)
def test_a_strangers_pod_never_counts(watched: Watched, parts: dict[str, Any]) -> None:
    watched.see(jobset(), node(0), bound_pod(0, HOST, **parts))
    assert occupants(watched.due_facts()) == [[]]


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [container(1)]},
        {"nodeSelector": OTHER_TOPOLOGY},
        {"nodeSelector": {**SELECTOR, "cloud.google.com/gke-tpu-accelerator": "tpu-v5p-slice"}},
    ],
    ids=["other chips", "another topology", "another accelerator"],
)
def test_a_leader_that_was_made_of_an_earlier_template_counts(watched: Watched, spec: dict[str, Any]) -> None:
    watched.see(jobset(), node(0), bound_pod(0, HOST, spec=spec))
    assert occupants(watched.due_facts()) == [["pod-0"]]


def test_a_leader_of_a_job_that_is_being_scaled_away_counts_while_it_runs(watched: Watched) -> None:
    watched.see(jobset(), node(0), bound_pod(2, HOST))
    assert occupants(watched.due_facts()) == [["pod-2"]]


def test_a_leader_of_a_jobset_without_a_uid_label_is_known_by_name(watched: Watched) -> None:
    """JobSet's earlier versions do not label pods with the UID."""
    watched.see(jobset(), node(0), bound_pod(0, HOST, labels={"jobset.sigs.k8s.io/jobset-uid": None}))
    assert occupants(watched.due_facts()) == [["pod-0"]]


INACTIVE: list[dict[str, Any]] = [
    {"metadata": {"annotations": {OPTED_OUT: "true"}}},
    {"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}},
    {"spec": {"suspend": True}},
    {"conditions": ["Completed"]},
    {"metadata": {"deletionTimestamp": "2026-11-01T12:00:00Z"}},
    {"spec": {"replicatedJobs": [template("others")]}},
]
IDS = [
    "opted out",
    "managed by another",
    "suspended",
    "completed",
    "deleted",
    "without the Job",
]


@pytest.mark.parametrize("parts", INACTIVE, ids=IDS)
def test_a_jobset_that_changes_takes_its_leaders_off_the_hosts_and_back(
    watched: Watched, parts: dict[str, Any]
) -> None:
    watched.see(jobset(), node(0), bound_pod(0, HOST))
    assert occupants(watched.due_facts()) == [["pod-0"]]
    watched.see(jobset(version=11, **parts))
    watched.pass_time(5)
    assert occupants(watched.due_facts()) == [[]]
    watched.see(jobset(version=12))
    assert occupants(watched.due_facts()) == [["pod-0"]]


def test_an_occupants_new_generation_is_reported(watched: Watched) -> None:
    watched.see(jobset(generation=1), node(0), bound_pod(0, HOST))
    watched.due_facts()
    watched.see(jobset(generation=2))
    (fact,) = reports(watched.due_facts())
    assert [each.generation for each in fact.occupants] == [2]


def test_templates_that_cannot_be_parsed_any_more_leave_the_occupants(watched: Watched) -> None:
    watched.see(jobset(), node(0), bound_pod(0, HOST))
    watched.due_facts()
    watched.see(jobset(spec={"replicatedJobs": [template(tolerations="all")]}))
    watched.asked_for_hosts()
    assert occupants(watched.due_facts()) == [["pod-0"]]


def test_a_change_of_a_jobsets_status_alone_reports_no_hosts(watched: Watched) -> None:
    watched.see(jobset(), node(0), bound_pod(0, HOST))
    watched.due_facts()
    watched.see(jobset(version=11))
    watched.pass_time(15)
    assert reports(watched.due_facts()) == []


def test_hosts_are_told_again_with_their_occupants_on_request(watched: Watched) -> None:
    watched.see(jobset(), node(0), bound_pod(0, HOST))
    watched.due_facts()
    watched.asked_for_hosts()
    assert occupants(watched.due_facts()) == [["pod-0"]]


def test_a_relay_that_restarts_reports_everything_again() -> None:
    queue = FactQueue(CLUSTER)
    none_of(queue, *set(Kind) - {Kind.LEADERS, Kind.JOBSETS, Kind.HOSTS})
    queue.listed(Kind.HOSTS, [read(each) for each in nodes(4)], "30", START)
    queue.listed(Kind.LEADERS, [read(bound_pod(0, HOST))], "20", START)
    queue.listed(Kind.JOBSETS, [read(jobset())], "10", START)
    (fact,) = (fact for fact in due_facts(queue, START) if isinstance(fact, HostsChanged))
    assert (fact.usable, fact.joined, fact.sequence) == (4, 4, 66)
    assert [each.pod_uid for each in fact.occupants] == ["pod-0"]
