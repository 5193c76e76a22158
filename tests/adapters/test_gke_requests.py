"""The requests as GKE gets them."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.adapters.local_gke import why_refused
from tests.adapters.recordings import ORDER
from tests.adapters.stories import EVERYTHING, STORIES
from tests.builders import a_job, a_spec
from tpu_slices.adapters.billing_labels import billing_labels
from tpu_slices.adapters.cloud_errors import CannotBeMade
from tpu_slices.adapters.gke.requests import as_rest, create_request, operation_path, pool_path
from tpu_slices.domain.model.clusters import PoolSettings, Upgrades
from tpu_standins.testing.gke import DEMO

GOLDEN = Path(__file__).parent / "golden"
RENEW = "RENEW_GOLDEN_REQUESTS"


@pytest.mark.parametrize("name", STORIES)
def test_a_request_is_as_recorded(name: str) -> None:
    """`RENEW_GOLDEN_REQUESTS=1 pytest tests/adapters` records again, and fails: check the difference."""
    asked = json.dumps(as_rest(STORIES[name].order), indent=2) + "\n"
    record = GOLDEN / f"{name}.json"
    if os.environ.get(RENEW):
        record.write_text(asked)
        pytest.fail(f"recorded anew: {record.name}")
    assert asked == record.read_text()


def test_every_recorded_request_has_its_story() -> None:
    assert {record.stem for record in GOLDEN.glob("*.json")} == set(STORIES)


@pytest.mark.parametrize("name", STORIES)
def test_gke_accepts_what_is_recorded(name: str) -> None:
    assert why_refused(STORIES[name].order) is None


@pytest.mark.parametrize(
    ("settings", "excluded"),
    [
        (PoolSettings(), True),
        (PoolSettings(upgrades=Upgrades.GKE), False),
        (PoolSettings(auto_upgrade=False), False),
    ],
    ids=["by default", "as GKE would", "off, where there is no release channel"],
)
def test_a_pool_is_upgraded_by_nobody_unless_a_setting_says_so(settings: PoolSettings, excluded: bool) -> None:
    pool = as_rest(replace(ORDER, settings=settings))
    assert bool(pool.get("maintenancePolicy", {}).get("exclusionUntilEndOfSupport", {}).get("enabled")) is excluded


def test_each_attempt_has_its_own_pool() -> None:
    pool = create_request(replace(ORDER, attempt=3)).node_pool
    assert pool.name == f"{ORDER.slice_id}-3"
    assert pool.config.labels["google.com/tpu-slice-attempt"] == "3"


def test_a_tenants_labels_are_added_and_replace_none_of_ours() -> None:
    plain = create_request(ORDER).node_pool.config.labels
    requested = {**dict.fromkeys(plain, "mine-now"), "team": "vision"}
    order = replace(ORDER, spec=a_spec(node_labels=tuple(requested.items())))
    assert create_request(order).node_pool.config.labels == {**dict(plain), "team": "vision"}


def test_a_spec_without_networks_overrides_the_settings_networks() -> None:
    settings = PoolSettings(additional_networks=EVERYTHING.additional_networks)
    chosen = create_request(replace(ORDER, spec=a_spec(networks=()), settings=settings)).node_pool
    assert "network_config" not in chosen


def test_no_setting_replaces_a_billing_label() -> None:
    plain = create_request(ORDER).node_pool.config.resource_labels
    taken = replace(ORDER, settings=PoolSettings(resource_labels=dict.fromkeys(plain, "mine-now")))
    assert create_request(taken).node_pool.config.resource_labels == plain


names = st.text(st.characters(codec="ascii"), min_size=1, max_size=80)


@pytest.mark.parametrize(("of", "label"), [("cluster", "cluster"), ("namespace", "namespace"), ("name", "owner")])
@given(one=names, other=names)
def test_billing_labels_are_valid_and_differ_where_names_do(of: str, label: str, one: str, other: str) -> None:
    ours, theirs = (billing_labels(a_job(**{of: name}), {})[f"tpu-slice-{label}"] for name in (one, other))
    assert re.fullmatch(r"[a-z0-9_-]{1,63}", ours)
    assert (ours == theirs) is (one == other)


def test_a_pool_that_was_found_without_a_record_cannot_be_created_again() -> None:
    with pytest.raises(CannotBeMade, match="found without a record"):
        create_request(replace(ORDER, spec=None))


def test_paths_have_gkes_form() -> None:
    assert pool_path(ORDER) == f"{DEMO}/nodePools/tpu-llama-slice-0-oahqlz77blgqd-1"
    operation = operation_path(DEMO, "operation-1")
    assert operation == "projects/demo-project/locations/us-central2/operations/operation-1"
