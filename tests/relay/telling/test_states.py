from typing import Any

import pytest

from relay.objects import Workload
from relay.telling.states import StatesTold, ToTell
from tests.relay.objects import OPTED_OUT, jobset, leader_worker_set
from tests.relay.watched import read_as
from tpu_slices.domain.model.facts import HostsChanged, Occupant
from tpu_slices.domain.model.slices import ClaimId


def a_jobset(generation: int = 1, **parts: Any) -> Workload:
    return read_as(Workload, jobset(generation=generation, **parts))


def suspended(generation: int) -> Workload:
    return a_jobset(generation, spec={"suspend": True})


def groups(count: int, generation: int = 1) -> Workload:
    return read_as(Workload, leader_worker_set(groups=count, generation=generation))


QUEUED: dict[str, Any] = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "team-b"}}}

UNSERVED: dict[str, Any] = {"metadata": {"annotations": {OPTED_OUT: "true"}}}


def told(workload: Workload, used_at: int | None = None, index: int = 0) -> StatesTold:
    """Return what was told, if this was; `used_at`: at which generation one of its Jobs was told to be on hosts."""
    states = StatesTold()
    states.tell(workload)
    if used_at is not None:
        states.tell_hosts([hosts_of(workload, used_at, index)])
    return states


def hosts_of(workload: Workload, generation: int, index: int = 0) -> HostsChanged:
    user = Occupant(
        owner=workload.ref.owner, generation=generation, replicated_job="workers", job_index=index, pod_uid="pod"
    )
    return HostsChanged(
        slice_id=ClaimId("tpu-a-aaaaaaaaaaaaa"), attempt=1, usable=1, joined=1, closed=0, occupants=(user,), sequence=1
    )


def test_of_a_workload_of_which_nothing_was_told_the_first_is_to_be_told() -> None:
    assert StatesTold().to_tell(a_jobset()) is ToTell.FIRST


@pytest.mark.parametrize(
    ("before", "now", "to_tell"),
    [
        (told(a_jobset(1)), a_jobset(2), ToTell.NOTHING),
        (told(a_jobset(1)), a_jobset(1, **QUEUED), ToTell.RENEWAL),
        (told(a_jobset(1)), a_jobset(1, **UNSERVED), ToTell.RENEWAL),
        (told(a_jobset(1)), suspended(2), ToTell.END),
        (told(a_jobset(1)), a_jobset(1, conditions=["Completed"]), ToTell.END),
        (told(suspended(1)), a_jobset(2), ToTell.RENEWAL),
        (told(suspended(1)), suspended(3), ToTell.NOTHING),
        (told(suspended(1), used_at=2), suspended(3), ToTell.END),
        (told(suspended(1), used_at=1), suspended(3), ToTell.NOTHING),
        (told(suspended(1), used_at=2), a_jobset(2), ToTell.RENEWAL),
        (told(suspended(1)), a_jobset(1, conditions=["Failed"]), ToTell.END),
        (told(groups(2)), groups(3, 2), ToTell.RENEWAL),
        (told(groups(2)), groups(1, 2), ToTell.END),
        (told(groups(2)), groups(2, 3), ToTell.NOTHING),
        (told(groups(2), used_at=2, index=2), groups(2, 3), ToTell.END),
        (told(groups(2), used_at=2, index=1), groups(2, 3), ToTell.NOTHING),
    ],
    ids=[
        "an edit that changes nothing", "another queue", "opted out", "suspended", "completed", "resumed",
        "suspended again",
        "suspended again after it came to hosts", "suspended again after it was on hosts", "resumed on hosts", "failed",
        "more groups", "fewer groups", "as many groups again", "as many again after one more came to hosts",
        "as many again after one of them came to hosts",
    ],
)  # fmt: skip
def test_an_end_of_use_is_told_from_what_may_wait(before: StatesTold, now: Workload, to_tell: ToTell) -> None:
    assert before.to_tell(now) is to_tell


@pytest.mark.parametrize(
    ("before", "now"), [(suspended(1), suspended(3)), (groups(2), groups(2, 3))], ids=["suspended", "as many groups"]
)
def test_what_a_question_was_answered_about_is_told_again(before: Workload, now: Workload) -> None:
    states = told(before)
    states.answered(before)
    assert states.to_tell(now) is ToTell.END


def test_demand_tells_that_its_workload_is_active_and_has_its_groups() -> None:
    states = told(suspended(1))
    states.tell_demand(a_jobset(2))
    assert (states.to_tell(a_jobset(2)), states.to_tell(suspended(3))) == (ToTell.NOTHING, ToTell.END)


@pytest.mark.parametrize(
    ("before", "now"),
    [(a_jobset(1), a_jobset(1, **QUEUED)), (a_jobset(1, **UNSERVED), a_jobset(1))],
    ids=["another queue", "that slices are made again"],
)
def test_demand_does_not_tell_of(before: Workload, now: Workload) -> None:
    states = told(before)
    states.tell_demand(now)
    assert states.to_tell(now) is ToTell.RENEWAL


def test_the_standing_that_was_told_is_that_of_what_was_told() -> None:
    for each in (a_jobset(1), suspended(2), a_jobset(1, **QUEUED), groups(3)):
        assert told(each).standing(each.ref.owner.uid) == each.standing


def test_what_was_told_of_an_end_has_no_standing() -> None:
    ended = a_jobset(1, conditions=["Failed"])
    assert told(ended).standing(ended.ref.owner.uid) is None


def test_a_node_group_that_may_not_be_told_of_for_a_while_is_told_again() -> None:
    states = told(a_jobset(1))
    states.lapsed(a_jobset(1).ref.owner.uid)
    assert states.to_tell(a_jobset(1)) is ToTell.RENEWAL
