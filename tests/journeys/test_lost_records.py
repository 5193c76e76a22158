"""A JobSet's record is lost, or was removed because it could not be read, while its slices are on record."""

from __future__ import annotations

import pytest

from tests.builders import CLUSTER, MINUTE
from tests.world import World
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.questions import Question
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.records.workloads import WorkloadRecord
from tpu_slices.wire.documents import key
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload


@pytest.fixture
def world() -> World:
    return World()


def serving(world: World, name: str = "llama", slices: int = 2) -> LiveWorkload:
    jobset = world.jobset_appears(name, slices=slices)
    world.settle(minutes=10, until=lambda: len(jobset.bound) == slices)
    world.settle(minutes=2)
    return jobset


def lose_record(world: World, jobset: LiveWorkload) -> None:
    world.store.remove_document(key(WorkloadRecord, CLUSTER, jobset.ref.owner.uid))


def asked_about(world: World) -> set[str]:
    return {each.owner.uid for _, each in world.publisher.questions if isinstance(each, Question)}


def test_a_jobset_whose_record_is_lost_and_that_is_gone_unheard_is_asked_about_and_released(world: World) -> None:
    jobset = serving(world)
    lose_record(world, jobset)
    world.ends_unreported(jobset)
    world.settle(minutes=60)
    assert asked_about(world) == {jobset.ref.owner.uid}
    assert world.pools == []
    assert {record.desire_message for record in world.records.values()} == {"the JobSet no longer exists"}


def test_a_jobset_whose_unreadable_record_was_removed_is_asked_about_and_released(world: World) -> None:
    jobset, other = serving(world), serving(world, "gemma")
    place = key(WorkloadRecord, CLUSTER, jobset.ref.owner.uid)
    world.store.put_document(place, {**(world.store.document(place) or {}), "schema": 99})
    world.ends_unreported(jobset)
    world.settle(minutes=60)
    assert len(world.pools) == 4
    lose_record(world, jobset)
    world.settle(minutes=60)
    assert world.pools == sorted(world.record(other, index).pool for index in range(2))


def test_a_live_jobset_whose_record_is_lost_keeps_its_slices_until_it_ends(world: World) -> None:
    jobset = serving(world)
    lose_record(world, jobset)
    world.settle(minutes=120)
    assert {record.phase for record in world.records.values()} == {Phase.READY}
    assert world.backend.ordered(Verb.DELETE) == []
    world.ends(jobset, WorkloadState.COMPLETED)
    world.settle(minutes=10)
    assert world.pools == []


def test_a_lost_record_releases_nothing_while_the_relay_is_silent(world: World) -> None:
    jobset = serving(world)
    lose_record(world, jobset)
    world.relay_is_dead = True
    world.ends_unreported(jobset)
    world.settle(minutes=180)
    assert len(world.pools) == 2
    world.relay_is_dead = False
    world.settle(minutes=60)
    assert world.pools == []


def test_the_record_made_for_a_lost_one_buys_nothing(world: World) -> None:
    jobset = serving(world, slices=1)
    record = world.record(jobset)
    lose_record(world, jobset)
    world.settle(minutes=20)
    world.backend.vanish(record.pool)
    world.clock.advance(MINUTE)
    jobset.bound.clear()
    world.relay_is_dead = True
    world.settle(minutes=60)
    assert world.backend.ordered(Verb.CREATE) == [record.pool]
