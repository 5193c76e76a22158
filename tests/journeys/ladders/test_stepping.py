"""Workloads on ladders: who waits steps on when a place has run out, and what stands stays."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.builders import MINUTE
from tests.journeys.ladders.stories import (
    FLEX,
    LIST,
    SPOT,
    B,
    C,
    D,
    appears,
    asked,
    had,
    laddered,
    messages,
    naming,
    ordered,
    rung,
)
from tests.world import World
from tpu_slices.domain.model.capacity import ZonesOf
from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices_simulator.live import LiveWorkload

FORBIDDEN = "Required 'compute.instances.create' permission."
HOUR = 60 * MINUTE
IN_B, IN_C, IN_D = f"spot in {B}", f"spot in {C}", f"spot in {D}"
FLEX_IN_B, LIST_IN_B, LIST_IN_C = f"flex-start in {B}", f"on-demand in {B}", f"on-demand in {C}"


def all_run(jobsets: list[LiveWorkload], slices: int) -> bool:
    return all(jobset.bound == set(range(slices)) for jobset in jobsets)


def test_who_was_refused_asks_on_for_the_time_of_its_rung_and_who_was_not_steps_at_once() -> None:
    world = World(of_cluster=laddered(rung("spot", 40), rung("flex", 360), rung("list")))
    world.backend.runs_out(B, SPOT, until=world.clock.now() + 6 * HOUR)
    began = world.clock.now()
    for number in range(8):
        appears(world, f"job-{number}", 4)
    world.settle(minutes=20)
    early = had(world)[FLEX_IN_B]
    assert 16 <= early < 32
    world.settle(minutes=25)
    assert had(world) == {FLEX_IN_B: 32}
    assert all(at - began >= 39 * MINUTE for at, how in ordered(world, "job-0") if how == FLEX_IN_B)
    assert asked(world)[LIST_IN_B] == 0


def test_a_jobset_that_comes_to_a_place_known_to_be_empty_does_not_ask_there() -> None:
    world = World(of_cluster=laddered(rung("spot", 40), rung("list")))
    world.backend.runs_out(B, SPOT)
    appears(world, "first")
    world.settle(minutes=25)
    late = appears(world, "late")
    world.settle(minutes=5)
    assert asked(world, "late") == {LIST_IN_B: 1}
    assert late.bound == {0}
    assert asked(world, "first")[LIST_IN_B] == 0


def test_who_still_waits_goes_back_to_a_better_place_and_who_runs_is_not_moved() -> None:
    world = World(of_cluster=laddered(rung("spot"), rung("list")))
    world.backend.runs_out(B, SPOT)
    runs = appears(world, "runs")
    world.settle(minutes=15)
    assert runs.bound == {0}
    world.backend.runs_out(B, LIST)
    waits = appears(world, "waits")
    world.settle(minutes=180)
    assert waits.bound == set()
    world.backend.has_stock(B, SPOT)
    world.settle(minutes=60, until=lambda: waits.bound == {0})
    assert waits.bound == {0}
    assert had(world) == {LIST_IN_B: 1, IN_B: 1}
    assert world.record(runs).made_as.how == LIST_IN_B  # type: ignore[union-attr]


def test_a_refusal_of_many_hosts_holds_up_nobody_who_needs_fewer() -> None:
    world = World(of_cluster=laddered(rung("spot", 600), rung("list")))
    world.backend.runs_out(B, SPOT, hosts=16)
    appears(world, "sixteen", topology="8x8")
    world.settle(minutes=10)
    four = appears(world, "four", topology="4x4")
    appears(world, "larger", topology="8x16")
    world.settle(minutes=5)
    assert four.bound == {0}
    assert asked(world, "four") == {IN_B: 1}
    assert asked(world, "larger") == {LIST_IN_B: 1}


def test_the_next_attempt_is_in_the_zone_that_the_answer_names() -> None:
    world = World(of_cluster=laddered(rung("spot-any", 600), rung("list")))
    world.backend.runs_out(B, SPOT, stocked=(D,))
    jobset = appears(world, "llama")
    world.settle(minutes=6)
    assert [how for _, how in ordered(world, "llama")] == [IN_B, IN_D]
    assert jobset.bound == {0}
    assert f"now asked as {IN_D} (rung 3 of 4)" in world.record(jobset).transitions[-4].message


def test_a_quota_that_is_used_up_is_found_once_and_its_end_is_noticed_when_chips_go() -> None:
    world = World(of_cluster=laddered(rung("spot"), rung("list")))
    holder = appears(world, "holder")
    world.settle(minutes=5)
    assert had(world) == {IN_B: 1}
    quota = Failure(FailureKind.QUOTA, "Quota 'TPUS_PER_TPU_FAMILY' exceeded. Limit: 16.0 in region us-central2.")
    world.backend.refuses(B, SPOT, quota)
    others = [appears(world, "other-0")]
    world.settle(minutes=2)
    others += [appears(world, f"other-{number}") for number in range(1, 4)]
    world.settle(minutes=10)
    assert asked(world, "other")[IN_B] == 1
    assert all_run(others, 1)
    assert had(world) == {IN_B: 1, LIST_IN_B: 4}
    world.ends(holder)
    world.backend.accepts(B, SPOT)
    world.settle(minutes=10)
    last = appears(world, "last")
    world.settle(minutes=5)
    assert asked(world, "last") == {IN_B: 1}
    assert last.bound == {0}


def test_what_the_vendor_does_not_take_is_passed_over_and_told() -> None:
    world = World(of_cluster=laddered(rung("spot", 40), rung("list")))
    world.backend.refuses(B, SPOT, Failure(FailureKind.CONFIGURATION, FORBIDDEN))
    jobset = appears(world, "llama")
    world.settle(minutes=5)
    assert asked(world) == {IN_B: 1, LIST_IN_B: 1}
    assert jobset.bound == {0}
    assert FORBIDDEN.rstrip(".") in world.on_ladder(jobset).message


def test_a_jobset_that_has_slices_in_a_zone_asks_for_the_rest_only_there() -> None:
    world = World(of_cluster=laddered(rung("spot"), rung("list-elsewhere"), rung("list")))
    jobset = appears(world, "llama", 4)
    world.backend.runs_out(B, SPOT, after=3)
    world.settle(minutes=15)
    assert had(world) == {IN_B: 3, LIST_IN_B: 1}
    assert jobset.bound == {0, 1, 2, 3}


def test_where_the_ladder_says_so_a_jobset_has_slices_in_several_zones() -> None:
    world = World(of_cluster=laddered(rung("spot"), rung("list-elsewhere"), rung("list"), zones=ZonesOf.ANY))
    appears(world, "llama", 4)
    world.backend.runs_out(B, SPOT, after=3)
    world.settle(minutes=15)
    assert had(world) == {IN_B: 3, LIST_IN_C: 1}


def test_a_flex_start_pool_to_which_no_hosts_come_is_let_go_when_its_time_is_over() -> None:
    world = World(of_cluster=laddered(rung("flex", 60), rung("list")))
    jobset = appears(world, "llama")
    world.settle(minutes=30)
    assert had(world) == {FLEX_IN_B: 1}
    world.settle(minutes=60)
    assert had(world) == {LIST_IN_B: 1}
    assert jobset.bound == {0}


def test_a_flex_start_pool_without_a_time_waits_on() -> None:
    world = World(of_cluster=laddered(rung("flex"), rung("list")))
    appears(world, "llama")
    world.settle(minutes=300)
    assert had(world) == {FLEX_IN_B: 1}


def test_a_flex_start_slice_that_was_filled_stays() -> None:
    world = World(of_cluster=laddered(rung("flex", 60), rung("list")))
    jobset = appears(world, "llama")
    world.settle(minutes=30)
    world.backend.fill(next(iter(world.backend.pools)))
    world.settle(minutes=120)
    assert had(world) == {FLEX_IN_B: 1}
    assert jobset.bound == {0}


def test_a_workload_that_was_suspended_begins_its_ladder_anew() -> None:
    world = World(of_cluster=laddered(rung("spot"), rung("list")))
    world.backend.runs_out(B, SPOT)
    jobset = appears(world, "llama")
    world.settle(minutes=10)
    assert had(world) == {LIST_IN_B: 1}
    world.suspends(jobset)
    world.settle(minutes=100)
    assert had(world) == {}
    world.backend.has_stock(B, SPOT)
    world.resumes(jobset)
    world.settle(minutes=10)
    assert had(world) == {IN_B: 1}


def test_a_report_says_what_ran_out_and_where_a_slice_is_asked_for_now() -> None:
    world = World(of_cluster=laddered(rung("spot"), rung("flex", 360), rung("list")))
    world.backend.runs_out(B, SPOT)
    jobset = appears(world, "llama")
    world.settle(minutes=4)
    said = f"V6e 4x4 is out of stock as {IN_B} (1 attempt since 12:00 UTC); now asked as {FLEX_IN_B} (rung 2 of 3)."
    assert said in messages(world, jobset)
    assert any(said in update.message for update in world.record(jobset).transitions)


def test_an_annotation_names_a_ladder_or_none() -> None:
    world = World(of_cluster=laddered(rung("spot"), rung("list"), ladder=None))
    appears(world, "without")
    appears(world, "with", **naming("patient"))
    wrong = appears(world, "wrong", **naming("patien"))
    world.settle(minutes=4)
    assert asked(world, "without") == {LIST_IN_B: 1}
    assert asked(world, "with-slice") == {IN_B: 1}
    assert world.record(wrong).reason is Reason.DOES_NOT_FIT
    assert "did you mean patient?" in world.record(wrong).message


def test_a_rung_that_costs_too_much_is_passed_over() -> None:
    world = World(of_cluster=laddered(rung("spot"), rung("list", most_usd_an_hour=1.0)))
    world.backend.runs_out(B, SPOT)
    jobset = appears(world, "llama")
    world.settle(minutes=60)
    assert asked(world)[LIST_IN_B] == 0
    spec = world.record(jobset).spec
    assert spec is not None
    assert "most_usd_an_hour" in spec.rungs[1].against


@pytest.mark.parametrize("lasts", [None, 20])
def test_without_a_free_rung_a_jobset_waits_where_the_shortage_is_forgotten_first(lasts: int | None) -> None:
    world = World(of_cluster=laddered(rung("spot", lasts), rung("list", lasts)))
    for kind in (SPOT, LIST):
        world.backend.runs_out(B, kind)
    jobset = appears(world, "llama")
    world.settle(minutes=6 * 60)
    assert 4 <= asked(world).total() <= 60
    world.backend.has_stock(B, LIST)
    world.settle(minutes=80, until=lambda: jobset.bound == {0})
    assert had(world) == {LIST_IN_B: 1}


def test_what_ended_is_on_record_at_the_place_where_it_was() -> None:
    world = World(of_cluster=laddered(rung("spot"), rung("list")))
    world.backend.runs_out(B, SPOT)
    jobset = appears(world, "llama")
    world.settle(minutes=15)
    assert had(world) == {LIST_IN_B: 1}
    world.ends(jobset)
    world.settle(minutes=15)
    record = world.record(jobset)
    assert (record.phase, record.made_as and record.made_as.how) == (Phase.GONE, LIST_IN_B)
    assert {each.billed_as.capacity for each in record.usages if each.billed_as is not None} == {LIST}


def test_without_a_ladder_all_is_as_ever() -> None:
    world = World(of_cluster=laddered(rung("spot"), rung("list"), ladder=None))
    world.backend.runs_out(B, LIST, until=world.clock.now() + timedelta(hours=1))
    jobset = appears(world, "llama")
    world.settle(minutes=100, until=lambda: jobset.bound == {0})
    assert jobset.bound == {0}
    assert set(asked(world)) == {LIST_IN_B}
    assert FLEX
