"""Claims of a gang wait as soon as one leader of it does, whether or not they have pods."""

import pytest

from tests.relay.gangs.objects import gang, gated, opened
from tests.relay.objects import bound_pod, jobset, replicated_job
from tests.relay.watched import Watched, demand
from tpu_slices.domain.model.facts import Family, Reach, SlicesWanted, WaitingLeader
from tpu_slices.domain.model.gangs import GANG


def wanted(watched: Watched) -> list[WaitingLeader]:
    """Return the leaders that are told to wait, a second later."""
    watched.pass_time(1)
    return [leader for fact in watched.due_facts() if isinstance(fact, SlicesWanted) for leader in fact.waiting]


def test_a_leader_that_only_its_gang_holds_waits(watched: Watched) -> None:
    watched.see(gang(replicas=1), gated())
    (leader,) = wanted(watched)
    assert leader.node_selector is not None


@pytest.mark.parametrize("gates", [["kueue.x-k8s.io/topology"], [GANG, "kueue.x-k8s.io/topology"]])
def test_a_leader_that_others_hold_does_not_wait_yet(watched: Watched, gates: list[str]) -> None:
    watched.see(gang(replicas=1), gated(0, *gates))
    assert wanted(watched) == []
    watched.see(gated(0))
    assert len(wanted(watched)) == 1


def test_all_claims_of_a_gang_wait_as_soon_as_one_leader_does(watched: Watched) -> None:
    watched.see(gang(replicas=3), gated(1))
    first, second, third = wanted(watched)
    assert [first.job_index, second.job_index, third.job_index] == [0, 1, 2]
    assert second.node_selector
    assert (first.node_selector, third.node_selector) == (None, None)


def test_a_claim_without_a_pod_reaches_what_the_leaders_of_its_gang_do(watched: Watched) -> None:
    watched.see(gang(replicas=2), gated(0))
    assert [leader.reach for leader in wanted(watched)] == [Reach.ANY, Reach.ANY]


def test_claims_of_other_gangs_wait_for_leaders_of_their_own(watched: Watched) -> None:
    jobs = [replicated_job(), {**replicated_job("after"), "dependsOn": [{"name": "workers", "status": "Complete"}]}]
    watched.see(gang(spec={"replicatedJobs": jobs}), gated(0))
    assert [leader.replicated_job for leader in wanted(watched)] == ["workers", "workers"]


def test_what_is_of_no_gang_waits_only_by_its_leaders(watched: Watched) -> None:
    watched.see(jobset(), gated(0))
    assert [leader.job_index for leader in wanted(watched)] == [0]


def test_claims_of_which_some_jobs_succeeded_wait_only_by_their_leaders(watched: Watched) -> None:
    obj = gang(replicas=2)
    obj["status"]["replicatedJobsStatus"] = [{"name": "workers", "succeeded": 1}]
    watched.see(obj, gated(0))
    assert [leader.job_index for leader in wanted(watched)] == [0]


def test_a_claim_whose_leader_runs_does_not_wait(watched: Watched) -> None:
    watched.see(gang(replicas=2), gated(0), bound_pod(1, "n"))
    assert [leader.job_index for leader in wanted(watched)] == [0]


def test_a_gang_is_gathered_even_if_all_of_it_waits(watched: Watched) -> None:
    watched.see(gang(replicas=2), gated(0), gated(1))
    assert demand(watched.due_facts()) == []
    assert len(wanted(watched)) == 2


def test_a_gang_that_is_let_go_within_a_second_is_not_told(watched: Watched) -> None:
    watched.see(gang(replicas=2), gated(0), gated(1))
    watched.due_facts()
    watched.see(opened(0), opened(1))
    assert wanted(watched) == []


def test_a_claim_that_was_told_without_a_pod_is_told_again_with_it(watched: Watched) -> None:
    watched.see(gang(replicas=2), gated(0))
    assert len(wanted(watched)) == 2
    watched.see(gated(1))
    assert [leader.job_index for leader in wanted(watched)] == [1]


def test_a_claim_that_was_told_with_its_pod_is_not_told_again_when_that_is_gone(watched: Watched) -> None:
    watched.see(gang(replicas=2), gated(0), gated(1))
    assert len(wanted(watched)) == 2
    watched.lose(gated(1))
    assert wanted(watched) == []
    assert watched.digests(Family.DEMAND)["u-1"] != 0


def test_the_claims_without_pods_wait_no_longer_than_the_leaders_of_their_gang(watched: Watched) -> None:
    watched.see(gang(replicas=2), gated(0))
    assert len(wanted(watched)) == 2
    watched.see(opened(0))
    assert watched.digests(Family.DEMAND) == {}
    watched.see(gated(0, uid="pod-again"))
    watched.pass_time(60)
    assert [leader.job_index for leader in wanted(watched)] == [0, 1]


def test_an_annotation_that_is_not_supported_is_told_and_nothing_waits(watched: Watched) -> None:
    watched.see(jobset(metadata={"annotations": {GANG: "some"}}), gated(0))
    facts = [fact for fact in watched.due_facts() if hasattr(fact, "template_error")]
    assert GANG in facts[0].template_error
    assert wanted(watched) == []
