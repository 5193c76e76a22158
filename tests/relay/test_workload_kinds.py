"""Jobs by themselves and LeaderWorkerSets: what the relay reads of them, and what it publishes."""

from __future__ import annotations

from typing import Any

import pytest

from relay import translate
from relay.cluster_cache import ClusterCache
from relay.objects import Kind, Place, PoolKey, WorkloadName
from tests.builders import CLUSTER, an_occupant
from tests.relay.objects import (
    ONE_HOST,
    SELECTOR,
    Json,
    container,
    group_pod,
    job,
    job_of_one_pod,
    job_pod,
    jobset,
    leader_worker_set,
    node,
    only_pod,
    pod,
    replicated_job,
    worker_pod,
)
from tests.relay.watched import READERS, Watched, demand, occupants, states
from tpu_slices.domain.model.facts import SlicesWanted, WorkloadChanged, WorkloadState
from tpu_slices.domain.model.slices import ClaimId, OwnerKind, WorkloadUid
from tpu_slices.domain.records.hosts import job_of

JOBSET = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "llama", "controller": True}
CRON = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "controller": True}
CPU_LEADER = {"spec": {"containers": [container(0)]}}
OTHER_LEADER = {"spec": {"containers": [container(8)], "nodeSelector": dict(SELECTOR)}}


def aside() -> ClusterCache:
    """Return what a relay knows that started after a LeaderWorkerSet was edited to request no TPU."""
    cache, seen = ClusterCache(CLUSTER), READERS[Kind.LEADER_WORKER_SETS](leader_worker_set(workerTemplate=CPU_LEADER))
    assert seen is not None
    assert cache.sets_aside(seen)
    return cache


USER = an_occupant("serve", uid=WorkloadUid("u-lws"))


def test_a_set_that_requests_no_tpu_is_known_once_pods_of_it_are_found_on_hosts_and_not_before() -> None:
    cache = aside()
    assert (cache.workload(WorkloadUid("u-lws")), cache.live_standings()) == (None, {})
    assert [each.name.name for each in cache.calls_up([USER, USER])] == ["serve"]
    assert cache.live_standings().keys() == {"u-lws"}
    assert cache.calls_up([USER]) == [], "it is known by then"


def test_a_set_that_requests_no_tpu_and_is_gone_is_found_again_by_none_of_its_pods() -> None:
    cache = aside()
    assert cache.identities(Kind.LEADER_WORKER_SETS) == {"u-lws"}, "a list without it tells that it is gone"
    cache.drop(Kind.LEADER_WORKER_SETS, "u-lws")
    assert cache.calls_up([USER]) == []


@pytest.fixture
def watched() -> Watched:
    return Watched()


def on(pod_: Json, host: Json) -> Json:
    bound = {"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True"}]}
    return pod_ | {"spec": pod_["spec"] | {"nodeName": host["metadata"]["name"]}, "status": bound}


def test_an_indexed_job_is_one_slice() -> None:
    seen = READERS[Kind.JOBS](job())
    assert seen is not None
    assert (seen.name, seen.slices) == (WorkloadName("research", "tune", OwnerKind.JOB), 1)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "parts",
    [
        {"spec": {"template": {"spec": {"containers": [container(0)]}}}},
        {"metadata": {"ownerReferences": [JOBSET]}},
    ],
    ids=["without chips", "of a JobSet"],
)
def test_other_jobs_are_not_kept(parts: dict[str, Any]) -> None:
    assert READERS[Kind.JOBS](job(**parts)) is None


def test_a_job_without_indexes_of_one_pod_that_fills_a_slice_is_one_slice(watched: Watched) -> None:
    watched.see(job_of_one_pod(), only_pod())
    (fact,) = [fact for fact in watched.due_facts() if isinstance(fact, SlicesWanted)]
    assert (fact.workload.owner.kind, demand([fact])) == ("Job", [[0]])


@pytest.mark.parametrize(
    "spec",
    [
        {"parallelism": 2, "completions": 2},
        {"completions": 5},
        {"parallelism": 0},
        {"template": {"spec": {"containers": [container(4)], "nodeSelector": dict(SELECTOR)}}},
    ],
    ids=["several pods", "one after the other", "no pods", "several hosts"],
)
def test_other_jobs_without_indexes_are_kept_aside(watched: Watched, spec: Json) -> None:
    watched.see(job_of_one_pod(spec=spec), only_pod())
    assert (watched.due_facts(), watched.queue.cache.live_standings()) == ([], {})


@pytest.mark.parametrize(
    ("containers", "leads"),
    [([container(8)], True), ([container(4)], False), ([container(4), container(4)], False), ([container(0)], False)],
    ids=["all chips", "a part of them", "all in two containers", "none"],
)
def test_a_pod_without_an_index_may_lead_if_one_container_fills_its_slice(containers: list[Json], leads: bool) -> None:
    assert (translate.leader(only_pod(spec={"containers": containers})) is not None) is leads


def test_a_job_whose_parallelism_rises_while_its_pod_runs_keeps_its_hosts(watched: Watched) -> None:
    host = node()
    watched.see(job_of_one_pod(), host, on(only_pod(), host))
    assert occupants(watched.due_facts()) == [["pod-tune"]]
    watched.see(job_of_one_pod(generation=2, spec={"parallelism": 2}))
    watched.pass_time(60)
    assert not [state for _, state in states(watched.due_facts()) if state.ended]
    (found,) = watched.queue.cache.occupants(PoolKey(ClaimId("tpu-llama-0-aaaaaaaaaaaaa"), 1))
    assert found.pod_uid == "pod-tune"


def test_the_next_pod_of_a_job_that_failed_waits_for_the_same_slice(watched: Watched) -> None:
    host = node()
    failed = on(only_pod(), host)
    watched.see(job_of_one_pod(), host, failed)
    watched.due_facts()
    watched.lose(failed)
    watched.see(only_pod(metadata={"uid": "pod-next", "name": "tune-next"}))
    watched.pass_time(60)
    assert demand(watched.due_facts()) == [[0]]


def test_a_job_of_a_jobset_without_an_index_is_led_by_its_only_pod(watched: Watched) -> None:
    spec: Json = {"containers": [container(8)], "nodeSelector": dict(ONE_HOST)}
    alone = replicated_job(**spec)
    alone["template"]["spec"] |= {"completionMode": "NonIndexed"}
    no_index = {"batch.kubernetes.io/job-completion-index": None}
    watched.see(jobset(spec={"replicatedJobs": [alone]}), *(pod(n, labels=no_index, spec=spec) for n in range(2)))
    assert demand(watched.due_facts()) == [[0, 1]]


def test_a_job_of_a_cron_job_is_a_job_by_itself() -> None:
    assert READERS[Kind.JOBS](job(metadata={"ownerReferences": [CRON]})) is not None


@pytest.mark.parametrize(
    ("parts", "state"),
    [
        ({}, WorkloadState.ACTIVE),
        ({"spec": {"suspend": True}}, WorkloadState.SUSPENDED),
        ({"status": {"conditions": [{"type": "SuccessCriteriaMet", "status": "True"}]}}, WorkloadState.ACTIVE),
        ({"status": {"conditions": [{"type": "Complete", "status": "True"}]}}, WorkloadState.COMPLETED),
        ({"status": {"conditions": [{"type": "Failed", "status": "True"}]}}, WorkloadState.FAILED),
        ({"metadata": {"deletionTimestamp": "2026-11-01T12:00:00Z"}}, WorkloadState.DELETED),
    ],
)
def test_a_jobs_state_follows_from_its_final_condition(
    watched: Watched, parts: dict[str, Any], state: WorkloadState
) -> None:
    watched.see(job(**parts))
    watched.pass_time(5)
    assert states(watched.due_facts()) == [("u-job", state)]


def test_the_waiting_leader_of_a_job_is_demand_for_its_slice(watched: Watched) -> None:
    watched.see(job(), job_pod())
    (fact,) = [fact for fact in watched.due_facts() if isinstance(fact, SlicesWanted)]
    assert (fact.workload.owner.kind, fact.workload.owner.name) == ("Job", "tune")
    assert [(leader.replicated_job, leader.job_index) for leader in fact.waiting] == [("", 0)]


def test_a_pod_of_an_earlier_job_of_that_name_is_no_demand(watched: Watched) -> None:
    watched.see(job(), job_pod(uid="u-earlier"))
    assert demand(watched.due_facts()) == []


def test_a_job_and_a_jobset_of_one_name_are_told_apart(watched: Watched) -> None:
    watched.see(jobset(), job("llama"), job_pod("llama"), pod(0), pod(1))
    found = [fact for fact in watched.due_facts() if isinstance(fact, SlicesWanted)]
    assert sorted((fact.workload.owner.kind, len(fact.waiting)) for fact in found) == [("Job", 1), ("JobSet", 2)]


def test_a_jobs_leader_on_hosts_is_their_occupant(watched: Watched) -> None:
    host = node()
    watched.see(job(), host, on(job_pod(), host))
    assert occupants(watched.due_facts()) == [["pod-tune-0"]]


def test_each_group_is_one_slice(watched: Watched) -> None:
    watched.see(leader_worker_set(groups=3), *(group_pod(index) for index in range(3)))
    (wanted,) = watched.due_facts()
    assert isinstance(wanted, SlicesWanted)
    assert demand([wanted]) == [[0, 1, 2]]
    assert (wanted.workload.owner.kind, wanted.workload.groups) == ("LeaderWorkerSet", 3)


def test_a_number_of_groups_that_changes_is_published_at_once(watched: Watched) -> None:
    watched.see(leader_worker_set(groups=3))
    watched.due_facts()
    watched.see(leader_worker_set(groups=1, generation=2))
    (change,) = [fact for fact in watched.due_facts() if isinstance(fact, WorkloadChanged)]
    assert (change.workload.generation, change.workload.groups, change.state) == (2, 1, WorkloadState.ACTIVE)


def test_a_groups_leader_on_hosts_is_their_occupant_until_it_is_gone_also_when_it_is_scaled_away(
    watched: Watched,
) -> None:
    host = node()
    watched.see(leader_worker_set(groups=2), host, on(group_pod(1), host))
    assert occupants(watched.due_facts()) == [["pod-serve-1"]]
    watched.see(leader_worker_set(groups=1, generation=2))
    watched.pass_time(5)
    assert occupants(watched.due_facts()) == [["pod-serve-1"]]
    watched.lose(on(group_pod(1), host))
    watched.pass_time(5)
    assert occupants(watched.due_facts()) == [[]]


@pytest.mark.parametrize(
    "owners",
    [[], [{**JOBSET, "apiVersion": "apps/v1", "kind": "StatefulSet"}]],
    ids=["of nobody", "of another StatefulSet"],
)
def test_a_pod_that_only_has_the_labels_of_a_groups_leader_is_no_occupant(watched: Watched, owners: list[Json]) -> None:
    host = node()
    watched.see(leader_worker_set(), host, on(group_pod(0, metadata={"ownerReferences": owners}), host))
    assert occupants(watched.due_facts()) == [[]]


@pytest.mark.parametrize(
    "template",
    [
        {"subGroupPolicy": {"subGroupSize": 2}},
        {"leaderTemplate": OTHER_LEADER},
    ],
    ids=["subgroups", "a leader with other chips"],
)
def test_a_leader_worker_set_whose_groups_were_never_slices_is_none_of_ours(
    watched: Watched, template: dict[str, Any]
) -> None:
    watched.see(leader_worker_set(**template))
    assert watched.due_facts() == []
    assert watched.queue.cache.live_standings() == {}


def test_a_leader_worker_set_that_is_edited_to_request_no_tpu_is_live(watched: Watched) -> None:
    watched.see(leader_worker_set())
    watched.due_facts()
    none = {"spec": {"containers": [container(0)]}}
    watched.see(leader_worker_set(generation=2, workerTemplate=none))
    assert ("u-lws", WorkloadState.MISSING) not in states(watched.due_facts())
    assert [*watched.queue.cache.live_standings()] == ["u-lws"]


@pytest.mark.parametrize(
    ("seen", "leads"),
    [
        (group_pod(), True),
        (group_pod(spec={"containers": [container(0)]}), False),
        (worker_pod(), True),
        (worker_pod(leader_has_chips=True), False),
        (worker_pod(worker=2), False),
        (worker_pod(spec={"containers": [container(0)]}), False),
    ],
    ids=[
        "the leader",
        "a leader without chips",
        "the first worker beside a leader without chips",
        "the first worker beside one with chips",
        "another worker",
        "a worker without chips",
    ],
)
def test_a_group_is_led_by_its_first_pod_with_chips(seen: Json, leads: bool) -> None:
    assert (translate.group_leader(seen) is not None) is leads


def test_groups_whose_leaders_have_no_chips_are_slices_of_their_workers(watched: Watched) -> None:
    host = node()
    apart = leader_worker_set(groups=2, size=5, leaderTemplate=CPU_LEADER)
    watched.see(apart, host, on(worker_pod(0), host), worker_pod(1))
    watched.pass_time(5)
    facts = watched.due_facts()
    assert (demand(facts), occupants(facts)) == ([[1]], [["pod-serve-0-1"]])
    (request,) = next(fact for fact in facts if isinstance(fact, SlicesWanted)).requests
    assert (request.parallelism, request.completions, request.leader_apart) == (4, 4, True)


def test_a_group_is_the_same_occupant_before_and_after_an_edit_takes_its_leader_the_chips(watched: Watched) -> None:
    host = node()
    watched.see(leader_worker_set(), host, on(group_pod(0), host))
    (before,) = watched.queue.cache.occupants(PoolKey(ClaimId("tpu-llama-0-aaaaaaaaaaaaa"), 1))
    watched.see(leader_worker_set(generation=2, size=5, leaderTemplate=CPU_LEADER))
    watched.lose(on(group_pod(0), host))
    watched.see(on(worker_pod(0), host))
    after = watched.queue.cache.occupants(PoolKey(ClaimId("tpu-llama-0-aaaaaaaaaaaaa"), 1))
    assert {job_of(each) for each in after} == {job_of(before)}


def test_a_worker_is_no_leader() -> None:
    assert translate.leader(job_pod(index=1)) is None


def test_a_leader_of_a_group_has_the_place_of_its_group() -> None:
    seen = translate.group_leader(group_pod(7))
    assert seen is not None
    assert (seen.place, seen.job) == (Place("", 7), "serve-7")
