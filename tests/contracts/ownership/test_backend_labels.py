"""What every `Backend` guarantees of pools whose labels somebody replaced."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.builders import a_job, a_spec
from tests.contracts.backends import Place
from tests.contracts.test_backend import an_order, made, name_of, refused, started
from tpu_slices.domain.model.observations import (
    Absent,
    Broken,
    Busy,
    Deleting,
    FailureKind,
    LegacyPool,
    PoolSeen,
    Running,
    Started,
    Unowned,
)
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.ports.errors import Temporary
from tpu_slices_simulator.fakes.troubles import Trouble, Verb

LEGACY = LegacyPool(name="llama-slice-0", namespace="research", jobset="llama", job="llama-slice-0")


def bare(place: Place, **changes: Any) -> PoolOrder:
    """Return the order, as the record has it, of a pool whose labels were replaced."""
    order = made(place, an_order(place))
    place.replace_labels(name_of(order))
    return replace(order, **{"ours_since": place.now(), "made_by": order.operation, **changes})


def test_what_is_on_record_proves_a_pool_ours_and_says_what_is_lacking(place: Place) -> None:
    seen = place.backend.look(bare(place))
    assert isinstance(seen, Running)
    assert seen.lacking.startswith("it has no label ")


def test_without_that_it_is_unowned_and_left_alone(place: Place) -> None:
    order = bare(place, ours_since=None)
    assert isinstance(place.backend.look(order), Unowned)
    assert place.backend.relabel(order) == Started(None)
    assert place.backend.delete(order) == Started(None)
    assert isinstance(place.backend.look(order), Unowned)


def test_labels_are_put_back_by_an_operation(place: Place) -> None:
    order = bare(place)
    started(place.backend.relabel(order))
    assert isinstance(place.backend.look(order), Busy)
    assert refused(place.backend.relabel(order)) is FailureKind.BUSY
    assert refused(place.backend.delete(order)) is FailureKind.BUSY
    place.finish(name_of(order))
    assert place.backend.look(order) == Running(a_spec().fingerprint)
    assert place.backend.look(replace(order, ours_since=None)) == Running(a_spec().fingerprint)
    assert place.backend.relabel(order) == Started(None)


def test_those_of_a_pool_of_which_only_its_job_is_known_are_put_back_too(place: Place) -> None:
    order = bare(place, spec=None)
    started(place.backend.relabel(order))
    place.finish(name_of(order))
    seen = place.backend.look(replace(order, ours_since=None))
    assert isinstance(seen, Running)
    assert seen.lacking == ""


def test_a_pool_without_its_labels_is_deleted(place: Place) -> None:
    order = bare(place)
    started(place.backend.delete(order))
    assert isinstance(place.backend.look(order), Deleting)
    place.finish(name_of(order))
    assert place.backend.look(order) == Absent()


def test_a_pool_with_its_labels_an_absent_one_and_that_of_another_job_are_left_as_they_are(place: Place) -> None:
    order = an_order(place)
    assert place.backend.relabel(order) == Started(None)
    order = made(place, order)
    assert place.backend.relabel(order) == Started(None)
    job = replace(order.job, owner=replace(order.job.owner, uid=WorkloadUid("uid-of-its-successor")))
    assert place.backend.relabel(replace(order, job=job)) == Started(None)
    assert place.backend.look(order) == Running(a_spec().fingerprint)


@pytest.mark.parametrize("forgotten", [False, True])
def test_one_that_somebody_made_in_its_place_is_not_ours(place: Place, *, forgotten: bool) -> None:
    order = bare(place)
    place.vanish(name_of(order))
    place.wait(timedelta(minutes=5))
    place.squat(name_of(order))
    noted = replace(order, made_by=None) if forgotten else order
    assert isinstance(place.backend.look(noted), Unowned)
    assert place.backend.relabel(noted) == Started(None)
    assert place.backend.delete(noted) == Started(None)
    assert isinstance(place.backend.look(noted), Unowned)


def test_it_is_known_by_the_operation_that_made_it_when_our_clock_is_behind(place: Place) -> None:
    order = bare(place, ours_since=place.now() - timedelta(minutes=20), operation=None)
    assert isinstance(place.backend.look(order), Running)
    assert isinstance(place.backend.look(replace(order, made_by=None)), Unowned)
    started(place.backend.delete(order))


def test_it_stays_ours_when_gke_has_forgotten_the_operation_that_made_it(place: Place) -> None:
    order = bare(place, operation=None)
    place.forget_ended_operations()
    assert isinstance(place.backend.look(order), Running)
    started(place.backend.relabel(order))


def test_labels_of_a_broken_pool_prove_nothing_that_its_record_does_not(place: Place) -> None:
    order = bare(place)
    place.wreck(name_of(order))
    assert isinstance(place.backend.look(order), Broken)
    assert isinstance(place.backend.look(replace(order, ours_since=None)), Unowned)


def test_an_adopted_pool_is_known_by_its_adoption_and_gets_its_makers_labels_back(place: Place) -> None:
    place.hold_legacy_pool(LEGACY)
    order = an_order(place, attempt=0, legacy_pool=LEGACY.name, job=a_job(), ours_since=place.now())
    seen = place.backend.look(order)
    place.replace_labels(order.name)
    assert seen == Running()
    assert place.backend.legacy_pools(place.cluster) == ()
    started(place.backend.relabel(order))
    place.finish(order.name)
    assert place.backend.look(replace(order, ours_since=None)) == Running()
    assert place.backend.legacy_pools(place.cluster) == (LEGACY,)


def test_labels_for_billing_prove_nothing_and_are_left_as_they_are(place: Place) -> None:
    order = made(place, an_order(place))
    place.replace_billing_labels(name_of(order))
    assert place.backend.look(order) == Running(a_spec().fingerprint)
    assert place.backend.relabel(order) == Started(None)


def test_the_inventory_has_every_pool_with_a_name_of_ours(place: Place) -> None:
    order = bare(place)
    nameless = PoolSeen(name=order.name, slice_id=order.slice_id, attempt=order.attempt, job=None)
    assert place.backend.inventory(place.cluster) == (nameless,)
    started(place.backend.relabel(order))
    place.finish(name_of(order))
    assert place.backend.inventory(place.cluster) == (replace(nameless, job=order.job),)


def test_one_that_may_not_be_changed_is_refused(place: Place) -> None:
    order = bare(place)
    place.trouble(Trouble.FORBIDDEN, Verb.RELABEL)
    assert refused(place.backend.relabel(order)) is FailureKind.CONFIGURATION


@pytest.mark.parametrize("trouble", [Trouble.UNAVAILABLE, Trouble.ANSWER_LOST])
def test_what_became_of_it_is_unknown_if_gke_does_not_answer(place: Place, trouble: Trouble) -> None:
    order = bare(place)
    place.trouble(trouble, Verb.RELABEL, calls=1)
    with pytest.raises(Temporary):
        place.backend.relabel(order)
    assert isinstance(place.backend.look(order), Busy) is (trouble is Trouble.ANSWER_LOST)
