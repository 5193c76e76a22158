"""The brake: which ends count, how many are too many, and what a stop holds, allows and says."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import CLUSTER, MINUTE, NOW, a_jobset, a_record, unclaimed
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.planning.policy import Held
from tpu_slices.domain.reconciling.brake import MOST, enough, found, too_many, why_kept, why_not_bought
from tpu_slices.domain.records.brakes import WINDOW, Brake, Stop, UnconfirmedEnd

STANDS: dict[str, Any] = {"create_requested_at": NOW}
MISSING = a_jobset(state=WorkloadState.MISSING)


def a_stop(**changes: Any) -> Stop:
    return replace(Stop(since=NOW - WINDOW, stopped_at=NOW, ended=11, live=4, chips=240), **changes)


def a_brake(**changes: Any) -> Brake:
    return replace(Brake(cluster=CLUSTER), **changes)


@pytest.mark.parametrize("state", WorkloadState)
def test_only_a_missing_workload_is_an_end_that_nobody_confirmed(state: WorkloadState) -> None:
    end = found(a_record(**STANDS), a_jobset(state=state), NOW, None)
    assert (end is not None) is (state is WorkloadState.MISSING)


@pytest.mark.parametrize(
    ("record", "counts"),
    [
        ({}, False),
        (STANDS, True),
        ({"attempt": 2, "earlier": (1,)}, True),
        ({**STANDS, "release_requested": True}, False),
    ],
    ids=["nothing was ever bought", "a pool", "one that it had before", "an operator releases it"],
)
def test_only_slices_with_a_pool_that_no_operator_releases_count(record: dict[str, Any], *, counts: bool) -> None:
    assert (found(a_record(**record), MISSING, NOW, None) is not None) is counts
    assert found(a_record(**record), None, NOW, None) is None


def test_a_slice_and_one_that_its_claim_had_before_count_once() -> None:
    claim, before = a_record(**STANDS, attempt=2, earlier=(1,)), unclaimed(a_record(**STANDS))
    assert [found(each, MISSING, NOW, None) is not None for each in (claim, before)] == [True, False]


def test_an_end_is_found_once_and_stays_as_it_was() -> None:
    first = UnconfirmedEnd(found_at=NOW - MINUTE, counted=True)
    stopped = a_brake(namespaces={"research": a_stop()})
    assert found(a_record(**STANDS, unconfirmed_end=first), MISSING, NOW, stopped) == first


def test_what_is_found_while_its_namespace_is_stopped_does_not_count_for_the_cluster() -> None:
    of = [None, a_brake(), a_brake(namespaces={"vision": a_stop()}), a_brake(namespaces={"research": a_stop()})]
    ends = [found(a_record(**STANDS), MISSING, NOW, brake) for brake in of]
    assert [end and end.counted for end in ends] == [True, True, True, False]


@given(ended=st.integers(0, 10_000), live=st.integers(0, 100_000))
def test_more_than_ten_and_more_than_a_fifth_are_too_many_and_no_more_ready_ones_are_counted_than_decide(
    ended: int, live: int
) -> None:
    assert too_many(ended, live) is (ended > MOST and 5 * ended > live + ended)
    assert too_many(ended, min(live, enough(ended))) is too_many(ended, live)


@pytest.mark.parametrize(
    ("found_at", "kept"), [(NOW - WINDOW, True), (NOW + MINUTE, True), (NOW - WINDOW - MINUTE, False)]
)
def test_a_stop_keeps_what_it_counted_and_all_that_comes_after(found_at: datetime, *, kept: bool) -> None:
    for brake in (a_brake(whole=a_stop()), a_brake(namespaces={"research": a_stop()})):
        assert bool(why_kept(brake, "research", found_at)) is kept
        assert why_kept(brake.confirmed(None, NOW + 2 * MINUTE), "research", found_at) is None


def test_a_stop_of_a_namespace_keeps_nothing_of_another() -> None:
    assert why_kept(a_brake(namespaces={"research": a_stop()}), "vision", NOW) is None


def test_a_confirmed_namespace_is_let_go_though_the_cluster_is_stopped() -> None:
    brake = a_brake(whole=a_stop()).confirmed("research", NOW + MINUTE)
    assert why_kept(brake, "research", NOW) is None
    assert why_kept(brake, "vision", NOW) is not None
    assert why_kept(brake, "research", NOW + 2 * MINUTE) is not None, "what comes later is not confirmed"


def test_it_stays_let_go_when_it_is_stopped_again() -> None:
    brake = a_brake(whole=a_stop()).confirmed("research", NOW + MINUTE)
    again = brake.pulled("research", a_stop(since=NOW + MINUTE, stopped_at=NOW + 2 * MINUTE))
    assert why_kept(again, "research", NOW) is None
    assert why_kept(again, "research", NOW + 2 * MINUTE) is not None


@pytest.mark.parametrize("namespace", ["research", None])
def test_ends_count_within_the_window_and_since_the_last_confirmation(namespace: str | None) -> None:
    assert a_brake().counted_since(namespace, NOW) == NOW - WINDOW
    stopped = a_brake(namespaces={"research": a_stop()})
    assert stopped.confirmed("research", NOW - MINUTE).counted_since(namespace, NOW) == NOW - MINUTE
    whole = a_brake(whole=a_stop())
    assert whole.confirmed(None, NOW - MINUTE).counted_since(namespace, NOW) == NOW - MINUTE


def test_confirmations_of_namespaces_are_forgotten_after_a_day_unless_the_cluster_is_stopped() -> None:
    old, later = a_stop(confirmed_at=NOW + MINUTE), NOW + 2 * 24 * 60 * MINUTE
    forgotten = a_brake(namespaces={"research": old}).pulled("vision", a_stop(stopped_at=later))
    assert [*forgotten.namespaces] == ["vision"]
    kept = a_brake(whole=a_stop(), namespaces={"research": old}).pulled("vision", a_stop(stopped_at=later))
    assert [*kept.namespaces] == ["research", "vision"]
    on = a_brake(namespaces={"research": a_stop()}).pulled("vision", a_stop(stopped_at=later))
    assert [*on.namespaces] == ["research", "vision"]


@pytest.mark.parametrize(
    ("brake", "others", "bought"),
    [
        (a_brake(), 1_000, True),
        (a_brake(namespaces={"vision": a_stop()}), 1_000, True),
        (a_brake(namespaces={"research": a_stop()}), 224, True),
        (a_brake(namespaces={"research": a_stop()}), 225, False),
        (a_brake(whole=a_stop()), 224, True),
        (a_brake(whole=a_stop()), 225, False),
        (a_brake(whole=a_stop(confirmed_at=NOW)), 1_000, True),
    ],
)
def test_while_a_stop_is_on_no_chips_are_bought_beyond_those_that_stood(
    brake: Brake, others: int, *, bought: bool
) -> None:
    why = why_not_bought(brake, "research", 16, Held(in_namespace=others, in_cluster=others))
    assert (why is None) is bought
    if why is not None:
        assert "240 chips that stood" in why
        assert "`slices confirm-deletions --cluster demo" in why
