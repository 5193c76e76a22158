"""What only GKE's beta API has."""

from __future__ import annotations

import pytest

from tests.adapters.stories import STORIES
from tpu_slices.adapters.gke.beta import with_interval
from tpu_slices.adapters.gke.requests import create_request


@pytest.mark.parametrize("name", STORIES)
def test_with_a_maintenance_interval_a_request_is_the_same_otherwise(name: str) -> None:
    plain = create_request(STORIES[name].order)
    beta = with_interval(plain, "PERIODIC")
    assert beta.node_pool.config.host_maintenance_policy.maintenance_interval.name == "PERIODIC"
    del beta.node_pool.config.host_maintenance_policy
    assert type(plain).deserialize(type(beta).serialize(beta)) == plain
