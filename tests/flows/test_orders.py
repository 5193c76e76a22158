"""What the backend is told of a slice: what was ordered, whatever is requested since."""

from __future__ import annotations

from dataclasses import replace

from tests.builders import NOW, a_record, a_spec, settings, unclaimed
from tpu_slices.flows.orders import order_of

ORDERED = a_spec(zone="us-central2-b")
MOVED = replace(ORDERED, zone="us-central2-c", hosts=8)


def test_a_slice_is_looked_for_as_what_was_ordered_though_the_request_has_moved_since() -> None:
    record = a_record(spec=MOVED, create_requested_at=NOW, ordered=ORDERED)
    assert order_of(record, settings()).spec == ORDERED


def test_a_slice_that_no_claim_has_is_looked_for_by_the_claim_that_it_was_made_for_and_as_what_was_ordered() -> None:
    record = a_record(spec=MOVED, attempt=2, create_requested_at=NOW, ordered=ORDERED)
    let_go = order_of(unclaimed(record), settings())
    its_own = replace(ORDERED, key=record.id)
    assert let_go == replace(order_of(record, settings()), spec=its_own)
    assert (let_go.slice_id, let_go.attempt, let_go.name, let_go.spec) == (record.maker, 2, record.pool, its_own)


def test_a_pool_is_labelled_with_the_key_of_the_claim_that_has_it_now() -> None:
    ordered, now = replace(ORDERED, key="u-1.j0"), replace(MOVED, key="u-2.j0")
    record = a_record(spec=now, create_requested_at=NOW, ordered=ordered)
    assert order_of(record, settings()).spec == replace(ordered, key="u-2.j0")


def test_a_slice_of_which_it_is_not_known_what_was_ordered_is_looked_for_as_what_is_requested() -> None:
    record = a_record(spec=MOVED, create_requested_at=NOW, ordered=None)
    assert order_of(record, settings()).spec == MOVED


def test_what_is_created_next_is_what_is_requested_now() -> None:
    record = a_record(spec=MOVED, create_requested_at=None, ordered=ORDERED)
    assert order_of(record, settings()).spec == MOVED
