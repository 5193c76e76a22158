"""The requests as GKE gets them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.local.gke.refusals import refusal
from infra.local.gke.rules import Ask
from shared.adapters.billing_labels import billing_labels
from shared.adapters.gke_requests import CannotBeMade, as_rest, create_request, operation_path, pool_path
from shared.domain.accelerators import CATALOGUE, ImpossibleShape, legal_topologies, shape_of
from shared.domain.clusters import PoolSettings
from shared.domain.slices import SliceSpec, slice_id
from shared.domain.topology import Topology
from shared.ports import PoolOrder
from tests.adapters.stories import RESERVATION, SPOT, STORIES, asking, order
from tests.builders import a_job, a_spec
from tests.local.gke.world import DEMO, a_state

NODES_PER_ZONE = 1000  # GKE's limit for one node pool


def an_order(**changes: Any) -> PoolOrder:
    job = changes.pop("job", a_job())
    fields: dict[str, Any] = {
        "cluster_path": DEMO,
        "cluster_gke_id": None,
        "slice_id": slice_id(job),
        "attempt": 1,
        "job": job,
        "spec": a_spec(),
        "settings": PoolSettings(),
    }
    return PoolOrder(**{**fields, **changes})


GOLDEN = Path(__file__).parent / "golden"
RENEW = "RENEW_GOLDEN_REQUESTS"


@pytest.mark.parametrize("story", STORIES)
def test_a_request_is_as_recorded(story: str) -> None:
    """`RENEW_GOLDEN_REQUESTS=1 pytest tests/adapters` records anew, and fails: look at the difference."""
    asked = json.dumps(as_rest(create_request(STORIES[story])), indent=2, sort_keys=True) + "\n"
    record = GOLDEN / f"{story}.json"
    if os.environ.get(RENEW):
        record.write_text(asked)
        pytest.fail(f"recorded anew: {record.name}")
    assert asked == record.read_text()


def test_every_recorded_request_has_its_story() -> None:
    assert {record.stem for record in GOLDEN.glob("*.json")} == set(STORIES)


@pytest.mark.parametrize("story", STORIES)
def test_gke_accepts_what_is_recorded(story: str) -> None:
    pool = create_request(STORIES[story]).node_pool
    ask = Ask(state=a_state(), cluster_path=DEMO, name=pool.name, spec=pool)
    assert refusal("CreateNodePool", ask) is None


def test_a_tenants_labels_are_there_and_replace_none_of_ours() -> None:
    plain = create_request(an_order()).node_pool.config.labels
    wishes = {**dict.fromkeys(plain, "mine-now"), "team": "vision"}
    labels = create_request(an_order(spec=a_spec(node_labels=tuple(wishes.items())))).node_pool.config.labels
    assert labels == {**dict(plain), "team": "vision"}


def test_no_setting_replaces_a_label_of_the_bill() -> None:
    plain = create_request(an_order()).node_pool.config.resource_labels
    taken = PoolSettings(resource_labels=dict.fromkeys(plain, "mine-now"))
    assert create_request(an_order(settings=taken)).node_pool.config.resource_labels == plain


names = st.text(st.characters(codec="ascii"), min_size=1, max_size=80)


@given(names, names)
def test_labels_of_the_bill_are_what_compute_engine_takes_and_differ_where_names_do(one: str, other: str) -> None:
    ours, theirs = (billing_labels(a_job(namespace=name), {})["tpu-slice-namespace"] for name in (one, other))
    assert re.fullmatch(r"[a-z0-9_-]{1,63}", ours)
    assert (ours == theirs) is (one == other)


def test_the_same_order_gives_the_same_request() -> None:
    assert create_request(an_order()) == create_request(an_order())


def test_what_was_found_without_a_record_cannot_be_made_anew() -> None:
    with pytest.raises(CannotBeMade, match="found without a record"):
        create_request(an_order(spec=None))


def test_paths_are_googles() -> None:
    assert pool_path(an_order()) == f"{DEMO}/nodePools/tpu-llama-slice-0-oahqlz77blgqd-1"
    operation = operation_path(DEMO, "operation-1")
    assert operation == "projects/demo-project/locations/us-central2/operations/operation-1"


def every_spec() -> Iterator[SliceSpec]:
    """Give every slice of the catalogue that one zone can hold, in each kind of capacity."""
    for label, kind in CATALOGUE.items():
        for topology in legal_topologies(kind):
            for machine in kind.machines:
                try:
                    shape = shape_of(label, topology, machine.chips)
                except ImpossibleShape:
                    continue
                if shape.hosts <= NODES_PER_ZONE:
                    yield from _in_each_capacity(label, topology, machine.chips)


def _in_each_capacity(label: str, topology: Topology, chips: int) -> Iterator[SliceSpec]:
    capacities: tuple[dict[str, str], ...] = ({}, {SPOT: "true"}, {f"{RESERVATION}-name": "hall-7"})
    for capacity in capacities:
        spec = order(asking(label, str(topology), chips, **capacity)).spec
        assert spec is not None
        yield spec


def test_the_local_gke_accepts_every_slice_of_the_catalogue() -> None:
    state = a_state()
    specs = list(every_spec())
    assert {spec.accelerator for spec in specs} == set(CATALOGUE)
    refused = {}
    for spec in specs:
        pool = create_request(an_order(spec=spec)).node_pool
        no = refusal("CreateNodePool", Ask(state=state, cluster_path=DEMO, name=pool.name, spec=pool))
        if no is not None:
            refused[f"{spec.accelerator} {spec.topology} {spec.capacity}"] = no.message
    assert refused == {}
