"""What is true of the requests for every slice of the catalogue, under any settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.adapters.local_gke import why_refused
from tests.adapters.stories import EVERYTHING, FLEX_START, KEY, RESERVATION, SPOT, Story, asking, story
from tests.builders import a_job, settings
from tpu_slices.adapters.gke.requests import as_rest, create_request
from tpu_slices.domain.catalogue.accelerators import CATALOGUE, ImpossibleShape, legal_topologies, shape_of
from tpu_slices.domain.model.clusters import PoolSettings, Upgrades
from tpu_slices.domain.model.facts import TemplateRequest
from tpu_slices.domain.model.slices import Network, WorkloadUid
from tpu_slices.domain.planning.pool_labels import MOST_CHARACTERS
from tpu_slices.domain.records.claims import Refusal

NODES_PER_ZONE = 1000  # GKE's limit for one node pool
CAPACITIES: tuple[dict[str, str], ...] = ({}, {SPOT: "true"}, {f"{RESERVATION}-name": "hall-7"}, {FLEX_START: "true"})
LONGEST = a_job(
    namespace="n" * 63, name="j" * 100, uid=WorkloadUid("0" * 36), replicated_job="r" * 63, job_index=99_999
)


@dataclass(frozen=True, slots=True)
class Shaped:
    """A slice of the catalogue that one zone can hold."""

    accelerator: str
    topology: str
    chips: int

    def request(self, **selectors: str) -> TemplateRequest:
        return asking(self.accelerator, self.topology, self.chips, **selectors)


def every_shape() -> Iterator[Shaped]:
    for label, kind in CATALOGUE.items():
        for topology in legal_topologies(kind):
            for machine in kind.machines:
                try:
                    shape = shape_of(label, topology, machine.chips)
                except ImpossibleShape:
                    continue
                if shape.hosts <= NODES_PER_ZONE:
                    yield Shaped(label, str(topology), machine.chips)


SHAPES = tuple(every_shape())


@pytest.mark.slow
@pytest.mark.proof
def test_gke_accepts_every_slice_of_the_catalogue() -> None:
    assert {shape.accelerator for shape in SHAPES} == CATALOGUE.keys() - {"tpu-v3-slice"}  # it has no known topology
    refused = {}
    for shape in SHAPES:
        for capacity in CAPACITIES:
            if FLEX_START in capacity and CATALOGUE[shape.accelerator].flex_start is False:
                continue
            no = why_refused(story(shape.request(**capacity)).order)
            if no is not None:
                refused[f"{shape} {capacity}"] = no
    assert refused == {}


tags = st.text("abcxyz-0189", max_size=61).map(lambda middle: f"a{middle}z")
words = st.text("abcxyz-_0189", max_size=61).map(lambda middle: f"a{middle}z")
lengths = st.integers(1, 63)
labels = st.dictionaries(lengths.map("k".__mul__), lengths.map("v".__mul__), max_size=10)
networks = st.lists(st.builds(Network, words, words), max_size=2).map(tuple)


@st.composite
def pool_settings(draw: st.DrawFn, disks: tuple[str, ...]) -> PoolSettings:
    """Draw settings that `slices configure` accepts, for an accelerator with these boot disks."""
    drawn = draw(
        st.builds(
            PoolSettings,
            service_account=st.sampled_from([None, EVERYTHING.service_account]),
            boot_disk_gb=st.integers(10, 65536),
            boot_disk_type=st.sampled_from([None, *disks]),
            boot_disk_kms_key=st.sampled_from([None, KEY]),
            secondary_boot_disk=st.sampled_from([None, EVERYTHING.secondary_boot_disk]),
            image_streaming=st.booleans(),
            max_pods_per_node=st.integers(8, 256),
            auto_upgrade=st.booleans(),
            upgrades=st.sampled_from(Upgrades),
            gvnic=st.booleans(),
            secure_boot=st.booleans(),
            integrity_monitoring=st.booleans(),
            network_tags=st.lists(tags, max_size=3).map(tuple),
            additional_networks=networks,
            workload_policy=st.sampled_from(["tpu-provisioner-{topology}", "wired-{topology}"]),
            accelerator_network_profile=st.sampled_from([None, "auto"]),
            host_maintenance_interval=st.sampled_from([None, "PERIODIC"]),
            resource_labels=st.dictionaries(words, words, max_size=60),
        )
    )
    balanced = (drawn.boot_disk_type or disks[0]) == "hyperdisk-balanced"
    return replace(drawn, confidential_storage=balanced and drawn.boot_disk_kms_key is not None)


@st.composite
def stories(draw: st.DrawFn) -> Story:
    shape = draw(st.sampled_from(SHAPES))
    request = shape.request(**draw(st.sampled_from(CAPACITIES)), **draw(labels))
    pools = draw(pool_settings(CATALOGUE[shape.accelerator].boot_disks))
    return Story(request, settings(pools=pools), draw(st.sampled_from([a_job(), LONGEST])))


@given(stories())
def test_gke_accepts_every_request_that_is_not_refused_for_its_labels(drawn: Story) -> None:
    outcome = drawn.outcome
    if isinstance(outcome, Refusal):
        assert f"GKE allows {MOST_CHARACTERS}" in outcome.message or "GKE has no flex-start" in outcome.message
        return
    pool = create_request(drawn.order).node_pool
    assert sum(len(key) + len(value) for key, value in pool.config.labels.items()) <= MOST_CHARACTERS
    assert (
        pool.initial_node_count or pool.autoscaling.max_node_count
    ) * outcome.chips_per_host == outcome.topology.chips
    assert why_refused(drawn.order) is None


@given(stories())
def test_the_same_order_gives_the_same_request(drawn: Story) -> None:
    if isinstance(drawn.outcome, Refusal):
        return
    one, other = create_request(drawn.order), create_request(drawn.order)
    assert one == other
    assert as_rest(drawn.order) == as_rest(drawn.order)
