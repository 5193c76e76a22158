"""Spares as operators write them: what is read, and what is told of those that cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import CLUSTER
from tpu_slices.domain.capacity.spares import MOST_SPARES, seats_of
from tpu_slices.domain.model.capacity import Spare
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.cluster_settings import decode_settings, encode_settings

V6E = {"accelerator": "tpu-v6e-slice", "topology": "4x4", "place": "list", "count": 2, "for": ["research", "vision"]}


def a_document(*spares: dict[str, Any], **changes: Any) -> dict[str, Any]:
    places = {
        "list": {"capacity": "on-demand", "zone": "us-central2-b"},
        "spot": {"capacity": "spot", "zones": ["us-central2-b", "us-central2-c"]},
        "flex": {"capacity": "flex-start", "zone": "us-central2-b"},
    }
    path = "projects/demo-project/locations/us-central2/clusters/demo"
    return {"path": path, "places": places, "spares": list(spares), **changes}


def test_each_namespace_has_as_many_as_the_count() -> None:
    selector = {"team": "a"}
    document = a_document({**V6E, "node_selector": selector}, spares_most_usd_an_hour=300)
    settings = decode_settings(CLUSTER, document, "1")
    assert settings.spares == (
        Spare(
            accelerator="tpu-v6e-slice",
            topology="4x4",
            place="list",
            count=2,
            namespaces=("research", "vision"),
            node_selector=(("team", "a"),),
        ),
    )
    assert sorted(seat.job.owner.namespace for seat in seats_of(settings).values()) == ["research"] * 2 + ["vision"] * 2
    assert decode_settings(CLUSTER, encode_settings(settings), "1") == settings


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"place": "lst"}, 'spares.0.place: "lst" is no place: did you mean list?'),
        ({"place": "flex"}, "spares.0.place: flex-start hosts of flex leave by themselves: name another place"),
        ({"place": "spot"}, "spares.0.place: spot has 2 zones: name a place of one zone"),
        (
            {"topology": "4x5"},
            "spares.0: cloud.google.com/gke-tpu-topology: tpu-v6e-slice has no 4x5: use 2x4, 4x4 or 4x8",
        ),
        ({"accelerator": "tpu-v6"}, "spares.0: cloud.google.com/gke-tpu-accelerator: "),
        ({"count": 0}, "spares.0.count: Invalid value: 0: must be a whole number from 1 to 60"),
        ({"for": []}, "spares.0.for: Invalid value: []: must be a list of namespaces"),
        ({"count": MOST_SPARES}, "spares: 120 in all, count times namespaces: at most 60 are kept, lower a count"),
        ({"zone": "us-central2-b"}, "spares.0.zone: Unknown field"),
        (
            {"node_selector": {"cloud.google.com/gke-spot": "true"}},
            "spares.0: cloud.google.com/gke-spot",
        ),
    ],
)
def test_what_cannot_be_is_told_with_the_field_and_the_remedy(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(Permanent) as error:
        decode_settings(CLUSTER, a_document({**V6E, **wrong}), "1")
    assert told in str(error.value)


def test_what_a_policy_does_not_allow_is_told() -> None:
    policy = {"namespaces": {"vision": {"chips_per_slice": 8}}}
    with pytest.raises(Permanent) as error:
        decode_settings(CLUSTER, a_document(V6E, policy=policy), "1")
    assert "spares.0: policy.chips_per_slice: this slice has 16 chips, and at most 8" in str(error.value)


def test_two_of_the_same_are_to_be_one() -> None:
    with pytest.raises(Permanent, match="spares: two ask for the same in one namespace: add their counts up"):
        decode_settings(CLUSTER, a_document(V6E, {**V6E, "for": ["vision"]}), "1")


def test_a_limit_of_dollars_needs_something_to_limit() -> None:
    with pytest.raises(Permanent, match="spares_most_usd_an_hour: there are no spares: name some, or remove it"):
        decode_settings(CLUSTER, a_document(spares_most_usd_an_hour=300), "1")
