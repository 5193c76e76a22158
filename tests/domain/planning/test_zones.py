"""The zone of a slice: whose it is, and the refusal of one that the cluster cannot have."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import settings
from tests.domain.asking import outcome, refusal_of, selecting, spec_of
from tpu_slices.domain.model.facts import TemplateRequest
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import SliceSpec
from tpu_slices.domain.planning.zones import impossible_zones

ZONE = "topology.kubernetes.io/zone"
RESERVED = {"cloud.google.com/reservation-name": "hall-7"}
SOMEWHERE = selecting({})
ELSEWHERE = selecting({ZONE: "europe-west4-b"})
ANY = "where this cluster can have no slices: it can have them in any zone of us-central2"
TWO = "where this cluster can have no slices: it can have them in us-central2-a or us-central2-b"


@pytest.mark.parametrize(
    ("request_", "set_", "message"),
    [
        pytest.param(ELSEWHERE, {}, f'{ZONE}: the pod selects "europe-west4-b", {ANY}', id="pod"),
        pytest.param(
            selecting({ZONE: "us-central2"}), {}, f'{ZONE}: the pod selects "us-central2", {ANY}', id="a region"
        ),
        pytest.param(
            selecting({ZONE: "us-central21-a"}),
            {},
            f'{ZONE}: the pod selects "us-central21-a", {ANY}',
            id="a longer name",
        ),
        pytest.param(
            selecting({ZONE: "us-central2-c"}),
            {"zones": ("us-central2-a", "us-central2-b")},
            f'{ZONE}: the pod selects "us-central2-c", {TWO}',
            id="pod, zones of the settings",
        ),
        pytest.param(
            selecting(RESERVED),
            {"reservation_zones": {"hall-7": "us-east5-a"}},
            f'reservation_zones: the cluster\'s settings have "us-east5-a" for hall-7, {ANY}',
            id="reservation",
        ),
        pytest.param(
            SOMEWHERE, {"zone": "us-east5-a"}, f'zone: the cluster\'s settings have "us-east5-a", {ANY}', id="settings"
        ),
        pytest.param(
            SOMEWHERE,
            {"zone": "us-central2-c", "zones": ("us-central2-a", "us-central2-b")},
            f'zone: the cluster\'s settings have "us-central2-c", {TWO}',
            id="settings, zones of the settings",
        ),
    ],
)
def test_a_zone_that_the_cluster_cannot_have_is_refused_with_its_source_and_the_zones_there_are(
    request_: TemplateRequest, set_: dict[str, Any], message: str
) -> None:
    refusal = refusal_of(request_, **set_)
    assert (refusal.reason, refusal.message) == (Reason.DOES_NOT_FIT, f"replicatedJob slice: {message}.")


@pytest.mark.parametrize(
    ("location", "zone", "possible"),
    [
        ("us-central2", "us-central2-b", True),
        ("us-central2-b", "us-central2-b", True),
        ("us-central2-b", "us-central2-a", True),
        ("us-central2-b", "us-east5-a", False),
        ("us-south1", "us-south1-ai1b", True),
        ("us-south1-ai1b", "us-south1-a", True),
        ("us-south1-ai1b", "us-south2-a", False),
    ],
)
def test_a_clusters_location_is_a_region_or_a_zone_of_one(location: str, zone: str, *, possible: bool) -> None:
    path = f"projects/p/locations/{location}/clusters/c"
    found = outcome(selecting({ZONE: zone}), path=path, zone=None)
    assert isinstance(found, SliceSpec) is possible


def test_a_zone_of_the_settings_zones_is_used() -> None:
    zones = ("us-central2-a", "us-central2-b")
    assert spec_of(selecting({ZONE: "us-central2-a"}), zones=zones).zone == "us-central2-a"


def test_a_zone_that_is_overridden_is_not_looked_at() -> None:
    assert spec_of(selecting({ZONE: "us-central2-a"}), zone="us-east5-a").zone == "us-central2-a"


def test_every_zone_of_the_settings_that_the_cluster_cannot_have_is_named() -> None:
    wrong = settings(
        zone="us-central2-c",
        zones=("us-central2-a", "us-central2-b", "us-east5-a"),
        reservation_zones={"hall-7": "us-central2-a", "hall-8": "us-east5-b"},
    )
    assert list(impossible_zones(wrong)) == [
        f'zones: the cluster\'s settings have "us-east5-a", {ANY}',
        f'zone: the cluster\'s settings have "us-central2-c", {TWO}',
        f'reservation_zones: the cluster\'s settings have "us-east5-b" for hall-8, {TWO}',
    ]


def test_zones_that_the_cluster_can_have_are_no_mistake() -> None:
    right = settings(zones=("us-central2-a", "us-central2-b"), reservation_zones={"hall-7": "us-central2-a"})
    assert list(impossible_zones(right)) == []
    assert list(impossible_zones(settings(zone=None))) == []
