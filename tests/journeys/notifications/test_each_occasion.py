"""A target is notified of each thing that happens to a workload, when it matters and once."""

from __future__ import annotations

import pytest

from tests.builders import MINUTE
from tests.journeys.notifications.stories import annotates, notifying, occasions, runs, the_only, waiting, wedged
from tests.journeys.serving import reason, serving
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.notifications import NotificationRule, Occasion
from tpu_slices.domain.model.reasons import Reason


def test_a_wait_is_told_once_when_it_has_lasted_as_long_as_the_rule_says() -> None:
    world = notifying()
    waiting(world)
    world.settle(minutes=19)
    assert occasions(world) == []
    world.settle(minutes=3)
    sent = the_only(world)
    assert (sent.target, sent.occasion, sent.owner.name) == ("slack", Occasion.WAITING, "llama")
    assert 20 * MINUTE <= sent.at - sent.since < 22 * MINUTE
    assert sent.text.startswith("research/llama (JobSet) has waited for slices for 2")
    assert "out of" in sent.text
    assert sent.text.endswith("Look further: kubectl describe jobset llama -n research")
    world.settle(minutes=200)
    assert occasions(world) == [Occasion.WAITING]


def test_a_wait_that_is_over_before_is_not_told() -> None:
    world = notifying()
    serving(world=world)
    world.settle(minutes=60)
    assert occasions(world) == []


def test_another_wait_is_another_thing() -> None:
    world = notifying()
    jobset = waiting(world)
    world.settle(minutes=25)
    world.backend.refuses_creations = None
    world.settle(minutes=60, until=lambda: jobset.bound == {0})
    world.suspends(jobset)
    world.settle(minutes=20)
    waiting(world, "gemma")
    world.resumes(jobset)
    world.settle(minutes=30)
    told = [(each.owner.name, each.occasion) for each in world.publisher.notifications]
    assert sorted(told) == [("gemma", "waiting"), ("llama", "waiting"), ("llama", "waiting")]
    assert len({each.id for each in world.publisher.notifications}) == 3


def test_pods_that_do_not_run_are_told_with_what_their_slices_cost() -> None:
    world = notifying()
    wedged(world)
    world.settle(minutes=12)
    sent = the_only(world)
    assert sent.occasion is Occasion.NOT_RUNNING
    assert sent.text.startswith("research/llama does not run on its slices (since ")
    assert "32.00 USD" in sent.text
    assert "manifest unknown" in sent.text
    world.settle(minutes=120)
    assert len(world.publisher.notifications) == 1


def test_what_flaps_is_told_again_after_half_an_hour_if_it_holds_then() -> None:
    world = notifying()
    _, pod = wedged(world)
    for _ in range(2):
        world.settle(minutes=9)
        runs(world, pod)
        world.settle(minutes=1)
        pod.status, pod.since = {"phase": "Pending"}, world.clock.now()
        world.cluster.saw(pod)
    assert occasions(world) == [Occasion.NOT_RUNNING]
    world.settle(minutes=25)
    first, second = world.publisher.notifications
    assert second.at - first.at >= 30 * MINUTE


def test_a_slice_that_nobody_uses_is_told() -> None:
    world = notifying()
    _, jobset = serving(world=world)
    world.leaves(jobset)
    jobset.absent = True
    world.settle(minutes=25)
    assert reason(world, jobset) is Reason.IDLE
    sent = the_only(world)
    assert sent.occasion is Occasion.IDLE
    assert "leaves slices idle" in sent.text


def test_hosts_that_are_taken_are_told_at_once_and_what_their_slice_says_of_it_next_is_the_same() -> None:
    world = notifying()
    _, jobset = serving(world=world)
    pool = world.record(jobset).pool
    world.backend.upgrade(pool)
    world.settle(minutes=2)
    sent = the_only(world)
    assert sent.occasion is Occasion.INTERRUPTED
    assert sent.text.startswith("research/llama (JobSet) lost hosts; llama-slice-0 at ")
    world.settle(minutes=15)
    assert occasions(world) == [Occasion.INTERRUPTED]


@pytest.mark.parametrize(
    ("state", "how"),
    [
        (WorkloadState.COMPLETED, "The JobSet completed"),
        (WorkloadState.FAILED, "The JobSet failed"),
        (WorkloadState.DELETED, "The JobSet was deleted"),
    ],
)
def test_an_end_is_told_within_two_minutes_and_once(state: WorkloadState, how: str) -> None:
    world = notifying()
    _, jobset = serving(world=world)
    world.ends(jobset, state)
    world.settle(minutes=2)
    sent = the_only(world)
    assert (sent.occasion, how in sent.text) == (Occasion.ENDED, True)
    world.settle(minutes=60)
    assert occasions(world) == [Occasion.ENDED]


def test_a_target_is_told_only_of_what_its_rule_names() -> None:
    world = notifying(slack=NotificationRule(when=(Occasion.ENDED,)))
    jobset = waiting(world)
    world.settle(minutes=60)
    world.ends(jobset)
    world.settle(minutes=15)
    assert occasions(world) == [Occasion.ENDED]


def test_the_end_of_a_workload_that_notifies_nobody_is_told_nobody() -> None:
    world = notifying()
    jobset = waiting(world, annotation="none")
    world.settle(minutes=30)
    world.ends(jobset, WorkloadState.DELETED)
    world.settle(minutes=15)
    assert occasions(world) == []


def test_an_annotation_that_is_changed_counts_from_then_on() -> None:
    world = notifying(slack=NotificationRule(), pager=NotificationRule(only_if_named=True))
    jobset = waiting(world, annotation="none")
    world.settle(minutes=40)
    assert occasions(world) == []
    annotates(world, jobset, "pager, slack")
    world.settle(minutes=2)
    assert {each.target for each in world.publisher.notifications} == {"pager", "slack"}
