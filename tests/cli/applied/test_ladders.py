"""`slices plan` shows the rungs of a ladder: what each costs, or what is against it."""

from __future__ import annotations

import json

from tests.cli.conftest import Slices

SPOT = "examples/v6e-spot.yaml"


def test_a_plan_shows_each_rung_with_its_price_or_with_what_is_against_it(slices: Slices) -> None:
    result = slices("plan", "-f", SPOT, "--cluster", "examples/clusters/patient.yaml", "-o", "json")
    (ladder,) = json.loads(result.stdout)["ladders"]
    assert (ladder["kind"], ladder["name"], ladder["ladder"]) == ("JobSet", "v6e-spot", "patient")
    booked, spot, flex, on_demand = ladder["rungs"]
    assert spot["fits"]
    assert spot["how"] == "spot in us-east5-b"
    assert spot["for"] == "40 minutes"
    assert spot["price"]["usd_per_hour"]
    assert [each["fits"] for each in (booked, flex, on_demand)] == [False, False, False]
    assert "cloud.google.com/gke-spot" in on_demand["against"]


def test_people_read_a_line_for_each_rung(slices: Slices) -> None:
    result = slices("plan", "-f", SPOT, "--cluster", "examples/clusters/patient.yaml")
    assert "JobSet v6e-spot, replicatedJob workers: a slice is asked for by ladder patient:" in result.stdout
    assert "rung 2, spot (spot in us-east5-b, for 40 minutes): fits, " in result.stdout
    assert "rung 4, list (on-demand in us-east5-b): passed over: " in result.stdout


def test_without_a_ladder_a_plan_has_none(slices: Slices) -> None:
    result = slices("plan", "-f", SPOT, "--cluster", "examples/clusters/zones.yaml", "-o", "json")
    assert json.loads(result.stdout)["ladders"] == []
