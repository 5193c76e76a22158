"""The text and the remedy for each reason."""

from __future__ import annotations

import re

import pytest

from tests.builders import a_record, a_spec
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import Capacity, CapacityKind, SliceSpec
from tpu_slices.domain.model.vendors import COMPUTE_ENGINE, GKE, Vendor
from tpu_slices.domain.reporting.reason_texts import REASON_TEXTS, reason_text

POSSIBLE = [
    pytest.param(reason, vendor, id=f"{reason} on {vendor}")
    for reason in Reason
    for vendor in (GKE, COMPUTE_ENGINE)
    if REASON_TEXTS[reason].only in {None, vendor}
]


def test_every_reason_has_a_text() -> None:
    assert set(REASON_TEXTS) == set(Reason)


@pytest.mark.parametrize(("reason", "vendor"), POSSIBLE)
@pytest.mark.parametrize("spec", [a_spec(), None], ids=["known", "not known"])
def test_a_text_can_follow_the_names_of_slices_and_has_no_gap(
    reason: Reason, vendor: Vendor, spec: SliceSpec | None
) -> None:
    record = a_record(reason=reason, message="Somebody said so.", spec=spec)
    text = reason_text(record, reason, vendor).message
    assert not re.search(r"[{}]|\bNone\b|  ", text)
    assert not text.endswith((".", " ", ":"))


@pytest.mark.parametrize(("reason", "vendor"), POSSIBLE)
def test_every_remedy_begins_with_a_capital_and_ends_with_a_period(reason: Reason, vendor: Vendor) -> None:
    remedy = reason_text(a_record(), reason, vendor).remedy
    assert remedy[0].isupper()
    assert remedy.endswith(".")


def test_what_happens_on_one_of_them_only_is_marked() -> None:
    assert {reason: text.only for reason, text in REASON_TEXTS.items() if text.only is not None} == {
        Reason.AWAITING_FLEX_START: GKE,
        Reason.GKE_UPGRADES: GKE,
        Reason.GKE_REPAIRS: GKE,
        Reason.UNDER_MAINTENANCE: GKE,
        Reason.PROVISIONED_BY_GKE: GKE,
        Reason.AWAITING_CAPACITY: COMPUTE_ENGINE,
    }


@pytest.mark.parametrize("reason", [Reason.STOCKOUT, Reason.RESOURCES_EXHAUSTED, Reason.AWAITING_CAPACITY])
@pytest.mark.parametrize(
    ("capacity", "told", "absent"),
    [
        (Capacity(), "spot or a reservation may be available sooner", "did not provide it"),
        (Capacity(CapacityKind.RESERVATION, "hall-7"), "Its reservation did not provide it", "or a reservation"),
    ],
    ids=["on demand", "reserved"],
)
def test_a_slice_in_a_reservation_is_not_told_to_use_one(
    reason: Reason, capacity: Capacity, told: str, absent: str
) -> None:
    remedy = reason_text(a_record(spec=a_spec(capacity=capacity)), reason).remedy
    assert told in remedy
    assert absent not in remedy
