"""Clusters that a build drops, or takes away: what the records say of node pools in them."""

from dataclasses import replace

import pytest

from infra.preflight.findings import Severity
from infra.preflight.records import SHOWN, Books, dropped, held, may_stand, read
from tests.builders import CLUSTER, NOW, a_job, a_record, settings
from tests.domain.cases import going
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices_simulator.fakes.settings import FakeSettings
from tpu_slices_simulator.fakes.store import FakeStore

ORDERED = a_record(create_requested_at=NOW)


def books_of(*records: SliceRecord, configured: bool = True) -> Books:
    """Return what is read of a store with these records."""
    store = FakeStore()
    store.put(*records)
    if configured:
        store.put_settings(settings())
    [books] = read(store)
    return books


def of_job(index: int) -> SliceRecord:
    return a_record(job=a_job(job_index=index), create_requested_at=NOW)


@pytest.mark.parametrize(
    ("record", "stands"),
    [
        (a_record(), False),
        (a_record(phase=Phase.REFUSED), False),
        (ORDERED, True),
        (a_record(earlier=(1,), attempt=2), False),
        (going(), True),
    ],
    ids=["queued", "refused", "ordered", "whose last slice has a record of its own", "a slice that no claim has"],
)
def test_a_pool_may_stand_from_the_order_on_until_it_is_gone(record: SliceRecord, stands: bool) -> None:
    assert may_stand(record) is stands
    assert books_of(record).may_hold_pools is stands


def test_a_slice_that_is_gone_holds_nothing() -> None:
    assert not books_of(replace(ORDERED, phase=Phase.GONE)).may_hold_pools


def test_a_cluster_that_keeps_its_file_is_not_judged() -> None:
    assert list(dropped(books_of(ORDERED), [CLUSTER], "shop")) == []


@pytest.mark.parametrize(
    ("books", "why"),
    [
        (books_of(ORDERED), f"1 slices may have node pools: {ORDERED.id} (QUEUED)"),
        (books_of(ORDERED, configured=False), f"1 slices may have node pools: {ORDERED.id} (QUEUED)"),
        (books_of(), "a JobSet could still be given a slice in it"),
    ],
    ids=["with slices", "with slices, without settings", "with settings"],
)
def test_a_cluster_that_is_not_retired_cannot_be_dropped(books: Books, why: str) -> None:
    [finding] = dropped(books, ["another"], "shop")
    assert finding.severity is Severity.ERROR
    assert why in finding.message
    assert finding.remedies == ("slices --project shop retire demo --message 'it is dropped'",)


def test_a_retired_cluster_is_forgotten_and_can_be_dropped() -> None:
    store = FakeStore()
    store.put_settings(settings())
    FakeSettings(store).retire(CLUSTER, "it is dropped")
    FakeSettings(store).forget(CLUSTER)
    assert read(store) == []


def test_a_record_that_cannot_be_read_counts_as_a_pool() -> None:
    unreadable = Books(CLUSTER, (), unreadable=2)
    for findings in (dropped(unreadable, [], "shop"), held(unreadable, "shop")):
        [finding] = findings
        assert finding.severity is Severity.ERROR
        assert "2 records of slices cannot be read" in finding.message


def test_nothing_is_taken_away_while_a_cluster_holds_slices() -> None:
    [finding] = held(books_of(ORDERED), "shop")
    assert finding.severity is Severity.ERROR
    assert list(held(books_of(), "shop")) == []


def test_of_many_slices_the_first_are_named() -> None:
    [finding] = held(books_of(*(of_job(index) for index in range(SHOWN + 2))), "shop")
    assert f"{SHOWN + 2} slices may have node pools: " in finding.message
    assert " and 2 more" in finding.message


def test_settings_that_cannot_be_read_are_settings() -> None:
    store = FakeStore()
    store.put_settings(settings())
    store.put_document(next(iter(store._documents)), {"path": 5})
    assert [books.cluster for books in read(store)] == [CLUSTER]
