"""Zones in a cluster's settings that the cluster cannot have."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import CLUSTER, settings
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.cluster_settings import decode_settings


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"zone": "us-east5-a"}, 'zone: the cluster\'s settings have "us-east5-a", {where} any zone of us-central2'),
        (
            {"zone": "us-central2-a", "zones": ["us-central2-b", "us-central2-c"]},
            'zone: the cluster\'s settings have "us-central2-a", {where} us-central2-b or us-central2-c',
        ),
        (
            {"reservation_zones": {"hall-7": "us-east5-a"}},
            'reservation_zones: the cluster\'s settings have "us-east5-a" for hall-7, {where} any zone of us-central2',
        ),
        (
            {"zones": ["us-central2-b", "us-east5-a"]},
            'zones: the cluster\'s settings have "us-east5-a", {where} any zone of us-central2',
        ),
    ],
    ids=["zone", "zone-of-the-region", "reservation", "zones"],
)
def test_a_zone_that_the_cluster_cannot_have_is_refused_with_those_that_it_can(
    document: dict[str, Any], message: str
) -> None:
    with pytest.raises(Permanent) as refused:
        decode_settings(CLUSTER, {"path": settings().path, **document}, "edition-1")
    where = "where this cluster can have no slices: it can have them in"
    assert str(refused.value) == f"clusters/demo: {message.format(where=where)}"
