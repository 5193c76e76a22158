"""What a slice costs by list prices, and what is told where that is not known."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import NOW, a_record, a_spec, some_hosts
from tpu_slices.domain.catalogue.prices import PriceKind
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import Capacity, CapacityKind, SliceSpec
from tpu_slices.domain.planning.costs import billed, price_of
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices_cli.prices import Total

ON_DEMAND = Capacity()
SPOT = Capacity(CapacityKind.SPOT)
FLEX_START = Capacity(CapacityKind.FLEX_START)
RESERVED = Capacity(CapacityKind.RESERVATION, "hall-7")


def a_v6e(zone: str = "us-east5-b", capacity: Capacity = ON_DEMAND) -> SliceSpec:
    return a_spec(accelerator="tpu-v6e-slice", zone=zone, capacity=capacity, hosts=4, chips_per_host=4)


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        pytest.param(a_v6e(), "43.20", id="on demand"),
        pytest.param(a_v6e(capacity=SPOT), "22.45", id="spot"),
        pytest.param(a_v6e("us-central1-b", SPOT), "8.71", id="spot in another region"),
        pytest.param(a_v6e("southamerica-west1-a", SPOT), "unknown", id="no spot price in the region"),
        pytest.param(a_v6e("us-south1-ai1b"), "43.20", id="a zone with a longer name"),
        pytest.param(a_v6e("us-central2-b"), "unknown", id="a region without prices"),
        pytest.param(a_v6e(capacity=FLEX_START), "21.60", id="flex-start"),
        pytest.param(a_v6e("us-west1-c", FLEX_START), "unknown", id="no price of flex-start in the region"),
        pytest.param(a_spec(accelerator="tpu-v5-lite-podslice", zone="us-east5-b"), "19.20", id="v5e"),
        pytest.param(a_spec(accelerator="tpu7", zone="us-east5-b"), "unknown", id="an accelerator without prices"),
        pytest.param(a_v6e(capacity=RESERVED), "reserved", id="a reservation"),
    ],
)
def test_a_slice_costs_its_chips_in_its_region_and_capacity(spec: SliceSpec, shown: str) -> None:
    assert str(price_of(spec)) == shown


def test_both_prices_of_a_region_are_there_to_compare() -> None:
    price = price_of(a_v6e(capacity=RESERVED)).as_json()
    assert {kind: price[f"{kind}_usd_per_hour"] for kind in PriceKind} == {
        "on_demand": 43.2,
        "spot": 22.45,
        "flex_start": 21.6,
        "calendar": 30.24,
        "commitment_1y": 30.24,
        "commitment_3y": 19.52,
    }
    assert (price["usd_per_hour"], price["reserved"], price["source"]) == (None, True, None)


NOTE = "(list prices of 7 August 2026, without discounts; spot prices change monthly)"
LATER = NOTE.replace("2026,", "2026 to 21 November 2026,")


@pytest.mark.parametrize(
    ("specs", "total", "told"),
    [
        pytest.param([a_v6e(), a_v6e(capacity=SPOT)], 65.65, f"65.65 USD per hour for 2 slices {NOTE}.", id="known"),
        pytest.param([a_v6e(), a_v6e("us-west1-c")], 86.4, f"86.40 USD per hour for 2 slices {LATER}.", id="days"),
        pytest.param([a_spec()], None, "The price of 1 slice is unknown.", id="unknown"),
        pytest.param(
            [a_v6e(), a_spec(), a_v6e(capacity=RESERVED)],
            43.2,
            f"43.20 USD per hour for 1 slice {NOTE}; the price of 1 slice is unknown; 1 slice in reservations, "
            "not priced.",
            id="of each kind",
        ),
    ],
)
def test_the_total_tells_what_it_leaves_out(specs: list[SliceSpec], total: float | None, told: str) -> None:
    prices = Total(tuple(map(price_of, specs)))
    assert (prices.usd_per_hour, str(prices)) == (total, told)


def stands(spec: SliceSpec, **fields: Any) -> SliceRecord:
    record = a_record(spec=spec, phase=Phase.READY, reason=Reason.READY, **fields)
    return record.with_current(create_requested_at=NOW, hosts=some_hosts())


@pytest.mark.parametrize(
    ("slices", "told"),
    [
        pytest.param([a_v6e()], "16 chips are billed, 43.20 USD per hour by list price", id="one"),
        pytest.param(
            [a_v6e(), a_v6e(capacity=SPOT)], "32 chips are billed, 65.65 USD per hour by list price", id="two"
        ),
        pytest.param([a_v6e("us-central2-b")], "16 chips are billed at an unknown price", id="unknown"),
        pytest.param([a_v6e(capacity=RESERVED)], "16 chips of its reservation stand", id="reserved"),
        pytest.param(
            [a_v6e(), a_v6e("us-central2-b"), a_v6e(capacity=RESERVED)],
            "16 chips are billed, 43.20 USD per hour by list price and 16 more chips are billed at an unknown price "
            "and 16 chips of reservations stand",
            id="all",
        ),
        pytest.param([], "", id="none"),
    ],
)
def test_what_stands_is_billed_by_list_price_and_what_has_none_is_said_to_have_none(
    slices: list[SliceSpec], told: str
) -> None:
    assert billed(map(stands, slices), None) == told


def test_a_slice_that_does_not_stand_costs_nothing() -> None:
    assert billed([a_record(spec=a_v6e())], None) == ""


def test_a_slice_costs_what_was_made_though_its_request_is_another_by_now() -> None:
    record = stands(a_v6e("us-central2-b")).with_current(ordered=a_v6e())
    assert billed([record], None) == "16 chips are billed, 43.20 USD per hour by list price"
