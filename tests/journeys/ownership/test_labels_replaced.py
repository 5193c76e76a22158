"""Somebody replaces the labels of a pool, with which it names its slice: what the record knows proves it ours, too."""

from __future__ import annotations

import pytest

from tests.builders import CLUSTER, MINUTE
from tests.world import World
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import PoolName
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices_simulator.fakes.backend import Trouble, Verb
from tpu_slices_simulator.live import LiveWorkload

FORBIDDEN = Failure(FailureKind.CONFIGURATION, 'Required "container.clusters.update" permission.')
BUSY = Failure(FailureKind.BUSY, "Cluster is running incompatible operation operation-9.")
A_CHECK = 16
"""Minutes, within which the inventory is checked."""


def serving(world: World | None = None) -> tuple[World, LiveWorkload, PoolName]:
    """Return a world in which a JobSet runs on its slice, and the name of the pool."""
    world = world or World()
    jobset = world.jobset_appears()
    world.settle(until=lambda: bool(jobset.bound))
    world.settle(minutes=2)
    record = world.record(jobset)
    assert record.reason is Reason.READY
    return world, jobset, record.pool


def calls(world: World, verb: Verb) -> int:
    return sum(call.verb is verb for call in world.backend.calls)


def reasons(record: SliceRecord) -> list[Reason]:
    return [each.reason for each in record.transitions]


def test_they_are_put_back_while_the_job_runs_on() -> None:
    world, jobset, pool = serving()
    world.backend.replace_labels(pool)
    world.settle(minutes=A_CHECK)
    assert Reason.LABELS_REPLACED in reasons(world.record(jobset))
    world.settle(minutes=15)
    record = world.record(jobset)
    assert (record.reason, record.current.relabelling) == (Reason.READY, None)
    assert world.backend.pools[pool].lacking == ""
    assert jobset.bound == {0}
    assert calls(world, Verb.RELABEL) == 1
    assert {each.phase for each in record.transitions if each.at >= record.created_at + 15 * MINUTE} <= {Phase.READY}


def test_it_is_told_with_what_is_lacking_and_nobody_is_asked_to_delete_it() -> None:
    world, jobset, pool = serving()
    world.backend.replace_labels(pool, "it has no label google.com/nodepool-manager.")
    world.settle(minutes=A_CHECK, until=lambda: world.record(jobset).reason is Reason.LABELS_REPLACED)
    record = world.record(jobset)
    assert record.phase is Phase.READY
    assert "it has no label google.com/nodepool-manager." in record.message
    assert "elete" not in record.message
    told = (each.transition for each in world.publisher.updates)
    assert len({each.at for each in told if each.reason is Reason.LABELS_REPLACED}) == 1


def test_they_are_put_back_at_once_when_gke_says_that_somebody_changed_the_pool() -> None:
    world, jobset, pool = serving()
    world.backend.replace_labels(pool)
    world.tells_of_change(pool)
    world.steps()
    assert calls(world, Verb.RELABEL) == 1
    assert world.record(jobset).reason is Reason.LABELS_REPLACED


@pytest.mark.parametrize("ends", [WorkloadState.COMPLETED, WorkloadState.DELETED, WorkloadState.SUSPENDED])
def test_a_pool_without_its_labels_is_deleted_when_its_job_has_ended(ends: WorkloadState) -> None:
    world, jobset, pool = serving()
    world.backend.refuses_labels = FORBIDDEN
    world.backend.replace_labels(pool)
    world.settle(minutes=A_CHECK)
    world.ends(jobset, ends)
    world.settle(minutes=20)
    assert world.pools == []
    assert world.record(jobset).phase is Phase.GONE


def test_a_pool_whose_labels_are_replaced_while_it_is_released_is_deleted() -> None:
    world, jobset, pool = serving()
    world.backend.refuses_deletions = BUSY
    world.ends(jobset)
    world.settle(minutes=3)
    world.backend.replace_labels(pool)
    world.settle(minutes=3)
    assert world.record(jobset).phase is Phase.RELEASING
    world.backend.refuses_deletions = None
    world.settle(minutes=5)
    assert world.pools == []


def test_its_job_stays_known_on_nodes_without_our_labels() -> None:
    world, jobset, pool = serving()
    world.backend.refuses_labels = FORBIDDEN
    world.backend.replace_labels(pool)
    world.settle(minutes=120)
    record = world.record(jobset)
    assert record.phase is Phase.READY
    assert record.current.hosts.occupants
    assert calls(world, Verb.DELETE) == 0


def test_what_is_refused_is_told_and_tried_again_each_hour() -> None:
    world, jobset, pool = serving()
    world.backend.refuses_labels = FORBIDDEN
    world.backend.replace_labels(pool)
    world.settle(minutes=A_CHECK)
    record = world.record(jobset)
    assert record.reason is Reason.LABELS_REPLACED
    assert "container.clusters.update" in record.message
    transitions, announced = record.transition_count, len(world.publisher.updates)
    world.settle(minutes=6 * 60)
    assert 6 <= calls(world, Verb.RELABEL) <= 8
    assert (world.record(jobset).transition_count, len(world.publisher.updates)) == (transitions, announced)
    world.backend.refuses_labels = None
    world.settle(minutes=90)
    assert world.record(jobset).reason is Reason.READY


def test_a_busy_pool_is_left_in_peace_for_minutes() -> None:
    world, jobset, pool = serving()
    world.backend.refuses_labels = BUSY
    world.backend.replace_labels(pool)
    world.settle(minutes=A_CHECK + 60)
    assert calls(world, Verb.RELABEL) <= 8
    assert world.record(jobset).phase is Phase.READY
    world.backend.refuses_labels = None
    world.settle(minutes=25)
    assert world.record(jobset).reason is Reason.READY


def test_a_lost_answer_costs_one_more_look() -> None:
    world, jobset, pool = serving()
    world.backend.replace_labels(pool)
    world.backend.trouble(Trouble.ANSWER_LOST, Verb.RELABEL, calls=1)
    world.settle(minutes=A_CHECK + 15)
    assert world.record(jobset).reason is Reason.READY
    assert calls(world, Verb.RELABEL) == 1


def test_labels_that_their_replacer_puts_back_are_no_more_lacking() -> None:
    world, jobset, pool = serving()
    world.backend.refuses_labels = FORBIDDEN
    world.backend.replace_labels(pool)
    world.settle(minutes=A_CHECK)
    world.backend.restore_labels(pool)
    world.settle(minutes=70)
    assert world.record(jobset).reason is Reason.READY
    assert world.record(jobset).current.relabelling is None


def test_an_operator_who_holds_the_slice_keeps_it_as_it_is() -> None:
    world, jobset, pool = serving()
    world.store.edit_slice(CLUSTER, world.record(jobset).id, hold=True)
    world.backend.replace_labels(pool)
    world.settle(minutes=60)
    assert calls(world, Verb.RELABEL) == 0
    record = world.record(jobset)
    assert record.reason is Reason.LABELS_REPLACED
    assert "once nothing is held any more" in record.message


def test_what_was_found_without_a_record_is_proven_by_what_was_found() -> None:
    world, jobset, pool = serving()
    world.loses_its_records()
    world.relay_restarts()
    world.settle(minutes=A_CHECK)
    world.backend.replace_labels(pool)
    world.settle(minutes=2 * A_CHECK)
    assert world.backend.pools[pool].lacking == ""
    world.ends(jobset)
    world.settle(minutes=30)
    assert world.pools == []


def test_a_pool_whose_creation_was_never_answered_is_proven_by_the_first_look() -> None:
    world = World()
    world.backend.trouble(Trouble.ANSWER_LOST, Verb.CREATE, calls=1)
    jobset = world.jobset_appears()
    world.settle(until=lambda: bool(jobset.bound))
    world.settle(minutes=2)
    pool = world.record(jobset).pool
    world.backend.replace_labels(pool)
    world.settle(minutes=A_CHECK + 15)
    assert world.record(jobset).reason is Reason.READY
    assert world.backend.pools[pool].lacking == ""
