"""A workload that has quota asks for slices before it has pods, as it will be once Kueue resumes it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from relay.kueue.objects import CheckState, Flavor
from relay.kueue.objects import flavor as read_flavor
from relay.kueue.reservations import Added, Reservation, reservation_of
from tests.relay.kueue.objects import OURS, check, flavor, read
from tests.relay.objects import Json, jobset, pod, replicated_job
from tests.relay.watched import Watched
from tpu_slices.domain.model.facts import SlicesWanted, Toleration, WorkloadChanged, WorkloadState
from tpu_slices.domain.model.slices import WorkloadUid

SPOT = {"key": "cloud.google.com/gke-spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"}
V5E = read_flavor(flavor(nodeLabels={"cloud.google.com/gke-spot": "true"}, tolerations=[SPOT]))
TOLERATES = Toleration(key="cloud.google.com/gke-spot", value="true", effect="NoSchedule")
ADDED = Added(labels=(("cloud.google.com/gke-spot", "true"),), tolerations=(TOLERATES,))
RESERVED: Mapping[WorkloadUid, Reservation] = {WorkloadUid("u-1"): Reservation(added={"workers": ADDED})}


def queued_jobset(*, suspended: bool = True, generation: int = 1, **parts: Json) -> Json:
    labels = {"kueue.x-k8s.io/queue-name": "team-a"}
    return jobset(
        generation=generation, metadata={"labels": labels}, spec={"suspend": suspended, **parts.get("spec", {})}
    )


def reserve(watched: Watched, by: Mapping[WorkloadUid, Reservation]) -> None:
    watched.queue.reserve(by, watched.now)


def test_quota_brings_what_the_flavors_of_each_pod_set_have() -> None:
    found = reservation_of(read(), OURS, {"v5e": V5E})
    assert found == Reservation(added={"workers": ADDED})


@pytest.mark.parametrize("state", CheckState)
def test_slices_are_made_while_the_check_may_still_become_ready(state: CheckState) -> None:
    found = reservation_of(read(check(state)), OURS, {"v5e": V5E})
    assert (found is not None) == (state in {CheckState.PENDING, CheckState.READY})


@pytest.mark.parametrize("flavors", [{}, {"other": V5E}])
def test_nothing_is_made_while_it_is_not_known_what_pods_get(flavors: Mapping[str, Flavor]) -> None:
    assert reservation_of(read(), OURS, flavors) is None


def test_nothing_is_made_without_quota_or_for_one_that_is_evicted() -> None:
    for conditions in ({"QuotaReserved": "False"}, {"Evicted": "True"}, {"Finished": "True"}):
        assert reservation_of(read(conditions=conditions), OURS, {"v5e": V5E}) is None


def test_a_suspended_jobset_asks_for_all_its_slices_once_it_has_quota(watched: Watched) -> None:
    watched.see(queued_jobset())
    watched.pass_time(10)
    (told,) = [each for each in watched.due_facts() if isinstance(each, WorkloadChanged)]
    assert told.state is WorkloadState.SUSPENDED
    reserve(watched, RESERVED)
    watched.pass_time(1)
    facts = watched.due_facts()
    (state,) = [each for each in facts if isinstance(each, WorkloadChanged)]
    (wanted,) = [each for each in facts if isinstance(each, SlicesWanted)]
    assert state.state is WorkloadState.ACTIVE
    assert [leader.job_index for leader in wanted.waiting] == [0, 1]
    assert [leader.node_selector for leader in wanted.waiting] == [None, None]
    (request,) = wanted.requests
    assert ("cloud.google.com/gke-spot", "true") in request.node_selector
    assert TOLERATES in request.tolerations
    assert request.gang == "all"


def test_it_is_told_to_be_suspended_once_the_quota_is_gone(watched: Watched) -> None:
    watched.see(queued_jobset())
    reserve(watched, RESERVED)
    watched.pass_time(10)
    active = [each for each in watched.due_facts() if isinstance(each, SlicesWanted | WorkloadChanged)]
    reserve(watched, {})
    (told,) = [each for each in watched.due_facts() if isinstance(each, WorkloadChanged)]
    assert told.state is WorkloadState.SUSPENDED
    assert told.workload.generation == active[0].workload.generation
    assert told.workload.as_of is not None
    assert active[0].workload.as_of is not None
    assert told.workload.as_of >= active[0].workload.as_of


def test_once_it_is_resumed_it_is_what_it_is(watched: Watched) -> None:
    watched.see(queued_jobset())
    reserve(watched, RESERVED)
    watched.pass_time(10)
    watched.due_facts()
    watched.see(queued_jobset(suspended=False, generation=2), pod(0), pod(1))
    watched.pass_time(1)
    wanted = [each for each in watched.due_facts() if isinstance(each, SlicesWanted)]
    assert [each.workload.generation for each in wanted] == [2]
    assert wanted[0].requests[0].gang == ""


def test_one_that_can_never_get_slices_asks_for_none(watched: Watched) -> None:
    opted_out = {"replicatedJobs": [replicated_job()], "managedBy": "example.com/other"}
    watched.see(queued_jobset(spec=opted_out))
    reserve(watched, RESERVED)
    watched.pass_time(10)
    assert not any(isinstance(each, SlicesWanted) for each in watched.due_facts())


def test_a_relay_that_starts_says_of_nobody_that_it_is_suspended_before_it_knows_who_has_quota() -> None:
    """Its slices, which stand or are being made, would be let go."""
    watched = Watched()
    watched.queue.reservations.forget()
    watched.see(queued_jobset())
    watched.pass_time(60)
    assert not any(isinstance(each, WorkloadChanged) for each in watched.due_facts())
    reserve(watched, RESERVED)
    watched.pass_time(10)
    states = [each.state for each in watched.due_facts() if isinstance(each, WorkloadChanged)]
    assert states == [WorkloadState.ACTIVE]
