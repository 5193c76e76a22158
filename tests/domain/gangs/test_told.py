"""What a gang says of who has the chips that it lacks, who is before it, and what was paid in vain."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import NOW, a_spec, settings
from tests.domain.gangs.test_deciding import FORMING, HOUR, a_case, a_gang, at_most, slices, standing, stuck
from tests.domain.gangs.test_deciding import waiting_in_line as in_line
from tpu_slices.domain.gangs.deciding import decided
from tpu_slices.domain.gangs.members import Members
from tpu_slices.domain.model.slices import Capacity, CapacityKind
from tpu_slices.domain.planning.policy import Held
from tpu_slices.domain.records.gangs import GangKey

IN_EUROPE = a_spec(zone="europe-west4-a")


def test_a_gang_that_waits_for_chips_says_who_has_them() -> None:
    line = {
        GangKey(f"uid-{name}/all"): in_line(workload_name=name, chips=16, namespace=namespace)
        for name, namespace in (("gemma", "research"), ("secret", "others"))
    }
    case = a_case(a_gang(), Members(made=slices(3)), policy=at_most(64, 128), held=Held(32, 96), line=line)
    assert "32 of 64 are free: others of the namespace have 32 (gangs among them: gemma)." in decided(case).message
    in_cluster = replace(case, settings=settings(policy=at_most(None, 128)))
    message = decided(in_cluster).message
    assert "32 of 128 are free: others have 96, 32 of them in this namespace." in message
    assert "secret" not in message


def test_of_many_gangs_that_have_chips_some_are_named() -> None:
    line = {GangKey(f"{name}/all"): in_line(workload_name=name, chips=16) for name in "abcde"}
    case = a_case(a_gang(), Members(made=slices(3)), policy=at_most(96), held=Held(80, 80), line=line)
    assert "(gangs among them: a, b, c and 2 more)" in decided(case).message


@pytest.mark.parametrize(("elder", "told"), [(1, False), (3, True)])
def test_a_gang_that_waits_in_line_says_how_many_came_before_it(elder: int, told: bool) -> None:
    line = {GangKey(f"{number}/all"): in_line() for number in range(elder)}
    line[GangKey("younger/all")] = in_line(since=NOW)
    message = decided(a_case(a_gang(), Members(made=slices(3)), line=line)).message
    assert ("(3 gangs of the cluster came before it)" in message) is told


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (IN_EUROPE, "2 of 3 slices stood for 60 min (95.04 USD by list price), and llama-slice-2 did not come"),
        (a_spec(), "2 of 3 slices stood for 60 min, and llama-slice-2 did not come"),
    ],
)
def test_a_gang_that_is_let_go_says_what_that_has_cost_and_how_long_the_next_pause_is(spec: object, told: str) -> None:
    gang = a_gang(**FORMING, held_since=NOW - HOUR, stuck_since=NOW - HOUR, tries=1)
    held = standing(2, spec=spec, ordered=spec, since=NOW - HOUR)
    after = decided(a_case(gang, Members(standing=held, stuck=stuck(1, 2))))
    assert after.message.startswith(told)
    assert after.message.endswith("; if they are let go again, after about 20 min")


def test_hosts_of_a_reservation_cost_a_gang_nothing_that_is_told() -> None:
    reserved = replace(IN_EUROPE, capacity=Capacity(CapacityKind.RESERVATION, reservation="r"))
    gang = a_gang(**FORMING, held_since=NOW - 5 * HOUR, stuck_since=NOW - 5 * HOUR, tries=9)
    held = standing(2, spec=reserved, ordered=reserved, since=NOW - timedelta(hours=5))
    line = {GangKey("uid-gemma/all"): in_line(since=NOW, lacks=tuple(Members(standing=held).holds))}
    after = decided(a_case(gang, Members(standing=held, stuck=stuck(1, 2, spec=reserved)), line=line))
    assert "2 of 3 slices stood for 5 h 0 min, and" in after.message
    assert after.message.endswith("after about 60 min")
