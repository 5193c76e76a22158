"""Which bookings in calendar mode would hold the slices of a workload."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import a_spec, settings
from tpu_slices.domain.capacity.bookings import AMOUNTS, FAMILIES, LATEST, Grouped, bookings_for
from tpu_slices.domain.catalogue.topology import Topology
from tpu_slices.domain.model.slices import Capacity, CapacityKind, RungSpec, SliceSpec

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def v5p(**changes: Any) -> SliceSpec:
    whole = {"accelerator": "tpu-v5p-slice", "topology": Topology.parse("4x4x8"), "hosts": 32, "zone": "us-east5-a"}
    return replace(a_spec(), **{**whole, "chips_per_host": 4, **changes})


def rung(zone: str, against: str = "") -> RungSpec:
    return RungSpec(place="spot", zone=zone, capacity=Capacity(CapacityKind.SPOT), against=against)


def test_the_slices_of_a_workload_are_booked_together() -> None:
    (asked,) = bookings_for(Grouped((v5p(),) * 4), settings(), 7 * DAY, NOW)
    assert (asked.chips, asked.vm_family) == (512, "VM_FAMILY_CLOUD_TPU_POD_SLICE_CT5P")
    assert (asked.region, asked.zones, asked.workload_type) == ("us-east5", ("us-east5-a",), "")
    assert (asked.not_before, asked.not_after + asked.lasts) == (NOW + DAY, NOW + LATEST)


def test_a_region_is_asked_about_once_for_all_rungs_that_the_pods_can_use() -> None:
    rungs = (rung("us-east5-a"), rung("us-east5-b"), rung("us-central1-a"), rung("europe-west4-b", "another zone"))
    asked = bookings_for(Grouped((v5p(rungs=rungs),)), settings(), DAY, NOW)
    assert [each.zones for each in asked] == [("us-east5-a", "us-east5-b"), ("us-central1-a",)]


def test_other_zones_of_the_region_that_have_such_machines_are_denied() -> None:
    spec = replace(v5p(), accelerator="tpu-v6e-slice", zone="us-east5-a")
    (asked,) = bookings_for(Grouped((spec,)), settings(), DAY, NOW)
    assert "us-east5-b" in asked.denied
    assert not {*asked.zones} & {*asked.denied}


@pytest.mark.parametrize(("hosts", "kind"), [(1, "SERVING"), (2, "SERVING"), (4, "BATCH")])
def test_few_chips_of_v5e_are_booked_for_serving_alone(hosts: int, kind: str) -> None:
    spec = replace(v5p(), accelerator="tpu-v5-lite-podslice", hosts=hosts)
    (asked,) = bookings_for(Grouped((spec,)), settings(), DAY, NOW)
    assert asked.workload_type == kind


@pytest.mark.parametrize(
    ("spec", "count", "why"),
    [
        (replace(v5p(), accelerator="tpu-v4-podslice"), 1, "not known to be booked"),
        (v5p(), 9, "at most 1,024 chips, and 1,152 are asked for"),
    ],
)
def test_what_cannot_be_booked_is_not_asked_about(spec: SliceSpec, count: int, why: str) -> None:
    grouped = Grouped((spec,) * count)
    assert bookings_for(grouped, settings(), DAY, NOW) == ()
    assert why in grouped.not_bookable


@given(accelerator=st.sampled_from(sorted(FAMILIES)), hosts=st.integers(1, 400), count=st.integers(1, 4))
def test_a_booking_holds_all_slices_and_is_the_smallest_that_does(accelerator: str, hosts: int, count: int) -> None:
    grouped = Grouped((replace(v5p(), accelerator=accelerator, hosts=hosts),) * count)
    for asked in bookings_for(grouped, settings(), DAY, NOW):
        assert asked.chips >= grouped.chips
        assert asked.chips in AMOUNTS
        assert all(amount < grouped.chips for amount in AMOUNTS if amount < asked.chips)
    assert bool(grouped.not_bookable) is (grouped.chips > max(AMOUNTS))
