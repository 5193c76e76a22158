"""A JobSet that ended unheard is found by the list of the relay, in whatever parts; a repeated state costs little."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from relay.agenda import Timing
from tests.builders import CLUSTER, MINUTE, NOW, a_jobset, a_list, an_owner
from tests.flows.swept import requested, serving
from tests.world import World
from tpu_slices.domain.model.facts import Family, Heartbeat, Listed, WorkloadChanged, WorkloadState
from tpu_slices.domain.model.questions import ListQuestion, Question
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.domain.reconciling.inventory import QUESTIONS_PER_LIST
from tpu_slices.domain.records.standings import standing
from tpu_slices.flows.receive import DELIVERED_AGAIN, receive
from tpu_slices.flows.sweep import sweep

LIVE = [WorkloadUid(f"uid-{number:03}") for number in range(40)]
GONE = (WorkloadUid("uid-007"), WorkloadUid("uid-021"))


def world_of(*uids: WorkloadUid) -> World:
    """Return a world with these JobSets on record, reported an hour ago."""
    world = World()
    owners = [an_owner(uid.replace("uid", "jobset"), uid=uid) for uid in uids]
    earlier = NOW - 60 * MINUTE
    records = [a_jobset(uid=each.uid, demand={}, last_seen_at=earlier) for each in owners]
    world.store.put(*(replace(record, owner=owner) for record, owner in zip(records, owners, strict=True)))
    return world


def parts(*, size: int = 10) -> list[Listed]:
    """Return a list without the JobSets that are gone, in parts smaller than those that are sent."""
    seen = {uid: standing(uid, WorkloadState.ACTIVE, "", "", None) for uid in LIVE if uid not in GONE}
    uids = sorted(seen)
    starts = range(0, len(uids), size)
    return [
        a_list(
            Family.WORKLOADS,
            {uid: seen[uid] for uid in uids[start : start + size]},
            after=uids[start - 1] if start else None,
            up_to=uids[start + size - 1] if start + size < len(uids) else None,
            part=part,
            parts=len(starts),
        )
        for part, start in enumerate(starts)
    ]


def asked_about(world: World) -> list[str]:
    return sorted(question.owner.uid for _, question in world.publisher.questions if isinstance(question, Question))


def test_each_jobset_that_the_list_lacks_is_asked_about() -> None:
    world = world_of(*LIVE)
    for part in parts():
        receive(part, CLUSTER, world.deps)
    assert asked_about(world) == sorted(GONE)
    assert {record.state for record in world.store.jobset_records(CLUSTER)} == {WorkloadState.ACTIVE}


def test_parts_that_come_late_twice_and_in_any_order_lead_to_the_same_questions() -> None:
    world = world_of(*LIVE)
    mixed = [*parts(), *parts()]
    random.Random(7).shuffle(mixed)
    for part in mixed:
        world.clock.advance(17 * MINUTE)
        receive(part, CLUSTER, world.deps)
    assert set(asked_about(world)) == set(GONE)


def test_parts_of_two_lists_that_are_divided_otherwise_lead_to_the_same_questions() -> None:
    world = world_of(*LIVE)
    for part in (*parts(size=10), *parts(size=13)):
        receive(part, CLUSTER, world.deps)
    assert set(asked_about(world)) == set(GONE)


@pytest.mark.parametrize("lost", range(4))
def test_a_lost_part_leads_to_no_question_about_its_range(lost: int) -> None:
    world = world_of(*LIVE)
    for number, part in enumerate(parts()):
        if number != lost:
            receive(part, CLUSTER, world.deps)
    left = parts()[lost]
    in_range = {uid for uid in GONE if (left.after or "") < uid <= (left.up_to or "z")}
    assert set(asked_about(world)) == set(GONE) - in_range


def test_a_list_that_comes_an_hour_late_does_not_ask_about_jobsets_that_are_newer() -> None:
    world = world_of(*LIVE)
    late = parts()
    world.clock.advance(60 * MINUTE)
    newer = a_jobset(uid=WorkloadUid("uid-0075"), last_seen_at=world.clock.now() - MINUTE)
    world.store.put(newer)
    for part in late:
        receive(part, CLUSTER, world.deps)
    assert newer.owner.uid not in asked_about(world)


def test_an_empty_list_of_a_relay_that_went_blind_deletes_nothing_and_asks_a_limited_number_of_questions() -> None:
    world = world_of(*(WorkloadUid(f"uid-{number:04}") for number in range(1_500)))
    receive(a_list(Family.WORKLOADS, {}), CLUSTER, world.deps)
    assert len(asked_about(world)) == QUESTIONS_PER_LIST
    assert all(record.live for record in world.store.jobset_records(CLUSTER))


def test_jobsets_that_were_deleted_unheard_are_found_by_one_sweep_after_the_other() -> None:
    world = world_of(*(WorkloadUid(f"uid-{number:04}") for number in range(1_200)))
    for _ in range(13):
        world.cluster_lives()
        world.deliver()
        sweep(CLUSTER, world.deps)
        assert len(asked_about(world)) <= 1_200
        world.clock.advance(MINUTE)
    assert {record.state for record in world.store.jobset_records(CLUSTER)} == {WorkloadState.MISSING}


@pytest.mark.parametrize("lost", ["its first state", "its suspension"])
def test_what_was_lost_of_a_jobset_s_states_is_repeated_once_the_list_shows_it(lost: str) -> None:
    world = World()
    world.settle(minutes=1)
    jobset = world.jobset_appears(absent=True)
    if lost == "its suspension":
        world.settle(minutes=1)
        assert [record.state for record in world.store.jobset_records(CLUSTER)] == [WorkloadState.ACTIVE]
        jobset.ref, jobset.state = replace(jobset.ref, generation=2), WorkloadState.SUSPENDED
        world.cluster.changes(jobset)
    world.clock.advance(Timing().introduce)
    assert WorkloadChanged in map(type, world.cluster.facts()), "which nobody delivers"
    world.settle(minutes=6)
    (record,) = world.store.jobset_records(CLUSTER)
    assert (record.state, record.generation) == (jobset.state, jobset.ref.generation)


def test_no_document_holds_the_list() -> None:
    world = world_of(*LIVE)
    before = world.store.places()
    for part in parts():
        receive(part, CLUSTER, world.deps)
    assert world.store.places() == before


def test_a_relay_s_first_heartbeat_is_followed_by_the_question_for_each_list_and_no_other_is() -> None:
    world = world_of(*LIVE)
    for first in (True, False):
        receive(Heartbeat(count=0, first=first), CLUSTER, world.deps)
    asked = [ListQuestion(family=family, asked_at=world.clock.now()) for family in Family]
    assert [question for _, question in world.publisher.questions] == asked


@pytest.mark.parametrize(("after", "requested_again"), [(DELIVERED_AGAIN, True), (DELIVERED_AGAIN + MINUTE, False)])
def test_a_state_that_is_told_once_more_has_slices_looked_at_only_while_the_requests_may_be_missing(
    after: timedelta, *, requested_again: bool
) -> None:
    world = World()
    jobset = serving(world, slices=3)
    told = WorkloadChanged(workload=jobset.ref, state=WorkloadState.ACTIVE)
    receive(told, CLUSTER, world.deps)
    (own,) = world.store.jobset_records(CLUSTER)
    world.clock.advance(own.state_since + after - world.clock.now())
    requested(world)
    written = len(world.store.commits)
    receive(told, CLUSTER, world.deps)
    assert requested(world) == (set(own.demand) if requested_again else set())
    assert len(world.store.commits) == written
