"""Who comes first where slots and capacity are short: gangs in their order, and single claims beside them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.builders import MINUTE, NOW, a_job, a_record, a_spec, an_owner
from tpu_slices.domain.gangs.turns import Line, told_behind
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.slices import ClaimId, SliceId, WorkloadUid
from tpu_slices.domain.records.awaited import PoolOperation
from tpu_slices.domain.records.gangs import GangKey, InLine
from tpu_slices.domain.records.limiters import Candidate, CapacityPool
from tpu_slices.domain.records.queues import capacity_pool_of
from tpu_slices.domain.records.slices import SliceRecord

POOL = capacity_pool_of(a_spec())


def a_front(name: str = "gemma", since: datetime = NOW - 30 * MINUTE, **changes: Any) -> InLine:
    fields: dict[str, Any] = {
        "namespace": "research",
        "workload_name": name,
        "chips": 0,
        "lacks": (POOL,),
        "holds_until": NOW + 20 * MINUTE,
    }
    return InLine(**{"workload": WorkloadUid(f"uid-{name}"), "since": since, **fields, **changes})


def a_line(*gangs: InLine, **limits: Any) -> Line:
    return Line({GangKey(f"{each.workload}/all"): each for each in gangs}, NOW, Limits(**limits))


def asked(name: str = "single", since: datetime = NOW - MINUTE, **changes: Any) -> SliceRecord:
    record = a_record(job=a_job(owner=an_owner(name, uid=WorkloadUid(f"uid-{name}"))), **changes)
    return record.with_claim(awaited_since=since)


def test_a_single_waits_behind_a_gang_that_came_before_it_and_holds_slices_there() -> None:
    assert a_line(a_front()).holds_back(asked()) == a_front()


@pytest.mark.parametrize(
    ("front", "single"),
    [
        (a_front(since=NOW), asked(since=NOW - MINUTE)),
        (a_front(holds_until=None), asked()),
        (a_front(holds_until=NOW), asked()),
        (a_front(lacks=(CapacityPool("elsewhere"),)), asked()),
        (a_front(lacks=()), asked()),
        (a_front("llama"), asked("llama")),
    ],
    ids=["it came first", "nothing is held", "for too long", "other capacity is lacking", "none is", "it is of a gang"],
)
def test_it_waits_behind_no_other(front: InLine, single: SliceRecord) -> None:
    assert a_line(front).holds_back(single) is None


def test_it_waits_behind_the_first_of_several() -> None:
    first, second = a_front("gemma", NOW - 40 * MINUTE), a_front("opt", NOW - 30 * MINUTE)
    assert a_line(second, first).holds_back(asked()) == first


def test_where_the_setting_lets_singles_by_they_wait_behind_none() -> None:
    assert a_line(a_front(), gang_backfill=True).holds_back(asked()) is None


def test_a_gang_of_another_namespace_is_not_named() -> None:
    assert "gemma" in told_behind(a_front(), asked())
    told = told_behind(a_front(namespace="others"), asked())
    assert "gemma" not in told
    assert "a workload of another namespace" in told


def a_creation(name: str, number: int = 0, **changes: Any) -> Candidate:
    fields: dict[str, Any] = {
        "slice_id": ClaimId(f"tpu-{name}-{number}"),
        "namespace": "research",
        "operation": PoolOperation.CREATE,
        "attempt": 1,
        "capacity_pool": POOL,
        "since": NOW,
    }
    return Candidate(**{**fields, **changes})


def before(first: Candidate, *others: Candidate) -> list[Candidate]:
    """Return who comes before the first: the gangs are gemma and, ten minutes later, opt."""
    records: dict[SliceId, SliceRecord] = {each.id: asked(each.slice_id.split("-")[1]) for each in (first, *others)}
    line = a_line(a_front("gemma"), a_front("opt", NOW - 20 * MINUTE))
    return line.before(first, [first, *others], records)


def test_a_gang_is_finished_before_the_next_is_begun() -> None:
    rest = [a_creation("gemma", number, since=NOW - timedelta(seconds=9 - number)) for number in range(3)]
    assert before(a_creation("opt"), *reversed(rest)) == rest
    assert before(rest[0], a_creation("opt")) == []


def test_gangs_come_before_no_single_and_no_deletion() -> None:
    assert before(a_creation("single"), a_creation("gemma")) == []
    deletion = a_creation("opt", operation=PoolOperation.DELETE, capacity_pool=None)
    assert before(deletion, a_creation("gemma")) == []
