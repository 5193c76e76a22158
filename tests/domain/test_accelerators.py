"""The catalogue against what is documented of it, row by row (xpk@367c838, GKE's cluster autoscaler@7d25050)."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.domain.accelerators import CATALOGUE, ImpossibleShape, Placement, legal_topologies, shape_of, topology_of
from shared.domain.topology import Topology

V4, V5E, V5P, V6E = "tpu-v4-podslice", "tpu-v5-lite-podslice", "tpu-v5p-slice", "tpu-v6e-slice"
V5E_DEVICE, V7X, V7 = "tpu-v5-lite-device", "tpu7x", "tpu7"
LARGEST_POOL_LISTED = 2304  # hosts of tpu7x-standard-4t: 144 cubes of 64 chips

with (Path(__file__).parents[1] / "data" / "tpu_catalogue.tsv").open(newline="") as table:
    DOCUMENTED = list(csv.DictReader(table, delimiter="\t"))


@pytest.mark.parametrize(
    "row", DOCUMENTED, ids=lambda row: f"{row['accelerator']} {row['topology']} on {row['machine_type']}"
)
def test_each_documented_slice_is_made_of_the_documented_hosts(row: dict[str, str]) -> None:
    topology = Topology.parse(row["topology"])
    shape = shape_of(row["accelerator"], topology, int(row["chips_per_host"]))
    placement = None if row["placement"] == "none" else Placement(row["placement"])
    assert (shape.machine.name, shape.hosts, shape.placement) == (row["machine_type"], int(row["hosts"]), placement)
    assert shape.machine.chips == int(row["chips_per_host"])


def test_every_accelerator_has_documented_rows_and_the_table_is_whole() -> None:
    rows: dict[str, int] = defaultdict(int)
    for row in DOCUMENTED:
        rows[row["accelerator"]] += 1
    assert rows == {V4: 23, V5E: 9, V5E_DEVICE: 3, V5P: 278, V6E: 9, V7X: 433, V7: 10}
    assert rows.keys() == CATALOGUE.keys()


@pytest.mark.parametrize("label", [V5E, V5E_DEVICE, V6E, V7X, V7])
def test_these_accelerators_have_exactly_the_documented_topologies(label: str) -> None:
    documented = {row["topology"] for row in DOCUMENTED if row["accelerator"] == label}
    assert {str(topology) for topology in legal_topologies(CATALOGUE[label])} == documented


@pytest.mark.parametrize(("label", "cubes"), [(V4, 64), (V5P, 140), (V7X, 144), (V7, 4)])
def test_above_a_host_deep_topologies_are_sorted_cubes_within_the_largest_pod(label: str, cubes: int) -> None:
    for topology in legal_topologies(CATALOGUE[label]):
        if topology.chips < 64:
            continue
        assert list(topology.dimensions) == sorted(topology.dimensions)
        assert all(side % 4 == 0 and side <= 256 for side in topology.dimensions)
        assert topology.chips <= cubes * 64


legal = st.sampled_from(
    [
        (kind.label, topology, machine.chips)
        for kind in CATALOGUE.values()
        for topology in legal_topologies(kind)
        for machine in kind.machines
    ]
)


@given(legal)
def test_hosts_times_chips_is_always_the_whole_topology(case: tuple[str, Topology, int]) -> None:
    label, topology, chips = case
    try:
        shape = shape_of(label, topology, chips)
    except ImpossibleShape:
        return
    assert shape.hosts * shape.machine.chips == topology.chips
    assert shape.hosts <= LARGEST_POOL_LISTED
    assert (shape.placement is None) == (shape.hosts == 1)


@given(st.sampled_from(sorted(CATALOGUE)), st.data())
def test_every_legal_topology_can_be_had_with_some_number_of_chips(label: str, data: st.DataObject) -> None:
    kind = CATALOGUE[label]
    topology = data.draw(st.sampled_from(legal_topologies(kind)))
    made = []
    for machine in kind.machines:
        try:
            made.append(shape_of(label, topology, machine.chips))
        except ImpossibleShape as impossible:
            offered = re.findall(r"\d+", str(impossible).rpartition("ask for ")[2])
            assert all(shape_of(label, topology, int(chips)) for chips in offered)
    assert made


REFUSED = [
    ("another accelerator", "tpu-v2", "2x2", 4, "gke-tpu-accelerator", "tpu-v2"),
    ("none at all", "", "2x2", 4, "gke-tpu-accelerator", "tpu-v6e-slice"),
    ("a map's false label", "tpu-v5e-slice", "2x2", 4, "gke-tpu-accelerator", "tpu-v5-lite-podslice"),
    ("no such shape", V5E, "3x5", 4, "gke-tpu-topology", "3x5"),
    ("flat shape, deep chip", V5P, "4x4", 4, "gke-tpu-topology", "2x2x4"),
    ("deep shape, flat chip", V6E, "4x4x4", 4, "gke-tpu-topology", "4x4x4"),
    ("unsorted", V5P, "8x4x4", 4, "gke-tpu-topology", "use 4x4x8"),
    ("unsorted and flat", V5E, "8x4", 4, "gke-tpu-topology", "use 4x8"),
    ("no multiple of four", V5P, "4x4x6", 4, "gke-tpu-topology", "4x4x8"),
    ("one cube more than v4 has", V4, "4x20x52", 4, "gke-tpu-topology", "use"),
    ("a side nobody lists", V5P, "4x4x260", 4, "gke-tpu-topology", "4x4x256"),
    ("no chips", V5E, "4x4", 0, "google.com/tpu", "1, 4 or 8"),
    ("half a host", V5E, "4x4", 2, "google.com/tpu", "1, 4 or 8"),
    ("a negative number", V5E, "4x4", -4, "google.com/tpu", "1, 4 or 8"),
    ("one machine of many hosts", V5E, "4x4", 8, "google.com/tpu", "ask for 4"),
    ("one chip for four", V6E, "2x2", 1, "google.com/tpu", "ask for 4"),
    ("eight chips for one", V6E, "1x1", 8, "google.com/tpu", "ask for 1"),
    ("four chips for one", V6E, "1x1", 4, "google.com/tpu", "ask for 1"),
    ("several hosts of a device", V5E_DEVICE, "4x4", 4, "gke-tpu-topology", "use 1x1, 2x2 or 2x4"),
    ("a brick for a flat chip", V6E, "3x5x7", 4, "gke-tpu-topology", "use 4x8, 8x8 or 8x16"),
    ("a brick that is none", V5P, "3x5x7", 4, "gke-tpu-topology", "use 2x4x4, 4x4x4 or 4x4x8"),
    ("too large", V7X, "16x24x32", 4, "gke-tpu-topology", "has no 16x24x32"),
    ("three chips", V6E, "4x4", 3, "google.com/tpu", "3 chips per pod do not fill a host"),
    ("one chip on many hosts", V7X, "2x2x2", 1, "google.com/tpu", "ask for 4"),
    ("one chip for eight", V6E, "2x4", 1, "google.com/tpu", "ask for 4 or 8"),
]


@pytest.mark.parametrize(
    ("label", "topology", "chips", "field", "words"),
    [pytest.param(*row, id=name) for name, *row in REFUSED],
)
def test_an_impossible_slice_is_refused_by_its_field_with_what_is_possible(
    label: str, topology: str, chips: int, field: str, words: str
) -> None:
    with pytest.raises(ImpossibleShape) as refused:
        shape_of(label, Topology.parse(topology), chips)
    assert str(refused.value).partition(":")[0].endswith(field)
    assert words in str(refused.value)


@pytest.mark.parametrize("text", ["0x0x0", "4x4x", "4by4", "", "4x4x4x4", "-4x4x4", "4X4X4"])
def test_what_is_no_topology_is_refused_by_its_field_with_what_is_possible(text: str) -> None:
    with pytest.raises(ImpossibleShape) as refused:
        topology_of(V5P, text)
    assert str(refused.value) == (
        f'cloud.google.com/gke-tpu-topology: "{text}" is no topology: it takes 2 or 3 positive numbers joined by x, '
        "as in 4x4 or 2x2x4: the smallest of tpu-v5p-slice are 2x2x1, 2x2x2 or 2x2x4"
    )


def test_what_is_offered_in_place_of_an_unknown_topology_is_the_closest_in_chips() -> None:
    with pytest.raises(ImpossibleShape, match=re.escape("use 4x4, 4x8 or 8x8")):
        shape_of(V5E, Topology.parse("5x8"), 4)


def test_a_host_that_takes_only_hyperdisks_gets_one() -> None:
    assert CATALOGUE[V6E].boot_disks[0] == "hyperdisk-balanced"


def test_eight_chips_are_one_host_or_two_as_the_pod_asks() -> None:
    for label in (V5E, V6E):
        one, two = (shape_of(label, Topology.parse("2x4"), chips) for chips in (8, 4))
        assert (one.hosts, two.hosts) == (1, 2)
        assert (one.placement, two.placement) == (None, Placement.COMPACT)


def test_every_host_keeps_something_back_from_pods() -> None:
    for kind in CATALOGUE.values():
        for machine in kind.machines:
            assert 0 < machine.allocatable_cpu_milli < machine.vcpus * 1000
            assert 0 < machine.allocatable_memory_gib < machine.memory_gib
