"""The catalogue against the documented slices, row by row, both ways.

`tpu_standins.testing.documented` is the facts: each row names its source. Those of tpu7x-ultranet-4t are only got by
selecting the machine type by its name. Rows marked "rule only" are larger than anything Google lists, but follow from
the same rule of cubes, and are in.
"""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpu_slices.domain.catalogue.accelerators import (
    CATALOGUE,
    ImpossibleShape,
    accelerator_of,
    legal_topologies,
    shape_of,
    topology_of,
)
from tpu_slices.domain.catalogue.machines import MachineType, Placement
from tpu_slices.domain.catalogue.topology import Topology
from tpu_standins.testing import documented

V4, V5E, V5P, V6E = "tpu-v4-podslice", "tpu-v5-lite-podslice", "tpu-v5p-slice", "tpu-v6e-slice"
V5E_DEVICE, V7X, V7 = "tpu-v5-lite-device", "tpu7x", "tpu7"
V4I, V3_DEVICE, V3 = "tpu-v4-lite-device", "tpu-v3-device", "tpu-v3-slice"
POLICY_KINDS = {
    "none": None,
    "COMPACT+tpu_topology": Placement.COMPACT,
    "workload-policy HIGH_THROUGHPUT (placement_policy.policy_name)": Placement.WORKLOAD_POLICY,
}
BY_NAME = "explicit request only"

MACHINES = {machine.name: machine for kind in CATALOGUE.values() for machine in kind.machines}
FACTS = list(documented.slices())
ROWS = [row for row in FACTS if BY_NAME not in row["source"]]


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row['accelerator_label']} {row['topology']} on {row['machine_type']}"
)
def test_each_slice_of_the_table_has_the_hosts_of_its_row(row: dict[str, str]) -> None:
    shape = shape_of(row["accelerator_label"], Topology.parse(row["topology"]), int(row["chips_per_vm"]))
    assert (shape.machine.name, shape.machine.chips) == (row["machine_type"], int(row["chips_per_vm"]))
    assert shape.hosts == int(row["vms"])
    assert ("multi" if shape.hosts > 1 else "single") == row["host_kind"]
    assert shape.placement is POLICY_KINDS[row["policy_kind"]]


def test_hosts_that_are_only_got_by_name_are_got_by_it_and_are_nobodys_else() -> None:
    rows = [row for row in FACTS if BY_NAME in row["source"]]
    assert {row["machine_type"] for row in rows} == {name for name, each in MACHINES.items() if each.by_name}
    assert {row["topology"] for row in rows} == {str(each) for each in MACHINES["tpu7x-ultranet-4t"].slices}
    for row in rows:
        label, topology, chips = row["accelerator_label"], Topology.parse(row["topology"]), int(row["chips_per_vm"])
        named, unnamed = shape_of(label, topology, chips, row["machine_type"]), shape_of(label, topology, chips)
        assert (named.machine.name, named.hosts) == (row["machine_type"], int(row["vms"]))
        assert (unnamed.machine.name, unnamed.hosts) == ("tpu7x-standard-4t", named.hosts)


@pytest.mark.parametrize("label", CATALOGUE.keys() - {"tpu-v3-slice"})
def test_no_slice_is_offered_that_is_not_in_the_table(label: str) -> None:
    kind = CATALOGUE[label]
    facts = [row for row in ROWS if row["accelerator_label"] == label]
    assert {str(topology) for topology in legal_topologies(kind)} == {row["topology"] for row in facts}
    assert {machine.name for machine in kind.machines} == {
        row["machine_type"] for row in FACTS if row["accelerator_label"] == label
    }
    assert {kind.generation} == {row["generation"] for row in facts}


def test_the_table_is_complete() -> None:
    rows = Counter(row["accelerator_label"] for row in ROWS)
    assert rows == {V4: 186, V5E: 9, V5E_DEVICE: 3, V5P: 414, V6E: 9, V7X: 433, V7: 10, V4I: 1, V3_DEVICE: 1}
    assert {*rows, V3} == CATALOGUE.keys()


@pytest.mark.parametrize(("label", "cubes"), [(V4, 64), (V5P, 140), (V7X, 144), (V7, 4)])
def test_large_3d_topologies_are_sorted_cubes_within_the_largest_pod(label: str, cubes: int) -> None:
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
def test_hosts_times_chips_is_the_whole_topology(case: tuple[str, Topology, int]) -> None:
    label, topology, chips = case
    try:
        shape = shape_of(label, topology, chips)
    except ImpossibleShape:
        return
    assert shape.hosts * shape.machine.chips == topology.chips
    assert (shape.placement is None) == (shape.hosts == 1)


@given(st.sampled_from(sorted(CATALOGUE.keys() - {V3})), st.data())
def test_every_legal_topology_is_available_with_some_number_of_chips(label: str, data: st.DataObject) -> None:
    kind = CATALOGUE[label]
    topology = data.draw(st.sampled_from(legal_topologies(kind)))
    made = []
    for machine in kind.machines:
        try:
            made.append(shape_of(label, topology, machine.chips))
        except ImpossibleShape as impossible:
            offered = re.findall(r"\d+", str(impossible).rpartition("request ")[2])
            assert all(shape_of(label, topology, int(chips)) for chips in offered)
    assert made


TOPOLOGY, CHIPS = "cloud.google.com/gke-tpu-topology", "google.com/tpu"
IMPOSSIBLE = {
    "a shape between the cubes": (V5P, "3x5x7", 4, f"{TOPOLOGY}: {V5P} has no 3x5x7: use 2x4x4, 4x4x4 or 4x4x8"),
    "a side that is no multiple of four": (
        V5P, "4x4x6", 4, f"{TOPOLOGY}: {V5P} has no 4x4x6: use 2x4x4, 4x4x4 or 4x4x8"
    ),
    "an unlisted 2D shape": (V5E, "3x5", 4, f"{TOPOLOGY}: {V5E} has no 3x5: use 2x2, 2x4 or 4x4"),
    "two dimensions of a 3D chip": (V5P, "4x4", 4, f"{TOPOLOGY}: {V5P} has no 4x4: use 2x2x1, 2x2x2 or 2x2x4"),
    "three dimensions of a 2D chip": (V6E, "4x4x4", 4, f"{TOPOLOGY}: {V6E} has no 4x4x4: use 4x4, 4x8 or 8x8"),
    "unsorted": (V5P, "8x4x4", 4, f"{TOPOLOGY}: {V5P} has no 8x4x4: use 4x4x8"),
    "unsorted below a cube": (V4, "4x2x4", 4, f"{TOPOLOGY}: {V4} has no 4x2x4: use 2x4x4"),
    "unsorted and 2D": (V5E, "8x4", 4, f"{TOPOLOGY}: {V5E} has no 8x4: use 4x8"),
    "larger than a v4 pod": (
        V4, "16x16x20", 4, f"{TOPOLOGY}: {V4} has no 16x16x20: use 4x32x32, 8x16x32 or 16x16x16"
    ),
    "larger than a v6e pod": (V6E, "16x32", 4, f"{TOPOLOGY}: {V6E} has no 16x32: use 8x8, 8x16 or 16x16"),
    "larger than a tpu7x pod": (
        V7X, "16x24x32", 4, f"{TOPOLOGY}: {V7X} has no 16x24x32: use 8x32x36, 12x24x32 or 16x24x24"
    ),
    "larger than the largest tpu7": (V7, "4x8x16", 4, f"{TOPOLOGY}: {V7} has no 4x8x16: use 4x4x12, 4x4x16 or 4x8x8"),
    "an unlisted side": (
        V5P, "4x4x260", 4, f"{TOPOLOGY}: {V5P} has no 4x4x260: use 4x32x32, 16x16x16 or 4x20x52"
    ),
    "several hosts of a device": (V5E_DEVICE, "4x4", 4, f"{TOPOLOGY}: {V5E_DEVICE} has no 4x4: use 1x1, 2x2 or 2x4"),
    "three chips": (V6E, "4x4", 3, f"{CHIPS}: {V6E} 4x4 is not available with 3 per pod: request 4"),
    "chips that do not divide": (V6E, "2x2", 8, f"{CHIPS}: {V6E} 2x2 is not available with 8 per pod: request 4"),
    "chips that do not divide one": (V5E, "1x1", 4, f"{CHIPS}: {V5E} 1x1 is not available with 4 per pod: request 1"),
    "one chip on many hosts": (V6E, "4x4", 1, f"{CHIPS}: {V6E} 4x4 is not available with 1 per pod: request 4"),
    "one 3D chip on many hosts": (V7X, "2x2x2", 1, f"{CHIPS}: {V7X} 2x2x2 is not available with 1 per pod: request 4"),
    "eight chips on many hosts": (V5E, "4x4", 8, f"{CHIPS}: {V5E} 4x4 is not available with 8 per pod: request 4"),
    "one chip for eight": (V6E, "2x4", 1, f"{CHIPS}: {V6E} 2x4 is not available with 1 per pod: request 4 or 8"),
    "one chip for four": (V6E, "2x2", 1, f"{CHIPS}: {V6E} 2x2 is not available with 1 per pod: request 4"),
    "no chips": (V5E, "4x4", 0, f"{CHIPS}: {V5E} 4x4 is not available with 0 per pod: request 4"),
    "a negative number": (V5E, "4x4", -4, f"{CHIPS}: {V5E} 4x4 is not available with -4 per pod: request 4"),
}  # fmt: skip


@pytest.mark.parametrize(("label", "topology", "chips", "message"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_an_impossible_slice_is_refused_by_field_with_alternatives(
    label: str, topology: str, chips: int, message: str
) -> None:
    with pytest.raises(ImpossibleShape) as refused:
        shape_of(label, Topology.parse(topology), chips)
    assert str(refused.value) == message


KNOWN = (
    "tpu-v4-podslice, tpu-v5-lite-podslice, tpu-v5-lite-device, tpu-v5p-slice, tpu-v6e-slice, tpu7x, tpu7, "
    "tpu-v4-lite-device, tpu-v3-device or tpu-v3-slice"
)


@pytest.mark.parametrize(
    ("label", "meant"),
    [
        ("tpu-v7x", "tpu7x"),
        ("tpu-v7x-slice", "tpu7x"),
        ("v7x", "tpu7x"),
        ("ironwood", "tpu7x"),
        ("tpu-v7", "tpu7"),
        ("tpu-v4", "tpu-v4-podslice"),
        ("tpu-v4-slice", "tpu-v4-podslice"),
        ("tpu-v5e-slice", "tpu-v5-lite-podslice or tpu-v5-lite-device"),
        ("v5e", "tpu-v5-lite-podslice or tpu-v5-lite-device"),
        ("v5litepod", "tpu-v5-lite-podslice or tpu-v5-lite-device"),
        ("tpu-v6", "tpu-v6e-slice"),
        ("tpu-v5p-podslice", "tpu-v5p-slice"),
        ("TPU-V6E-SLICE", "tpu-v6e-slice"),
        ("tpu-v6e-slcie", "tpu-v6e-slice"),
        ("trillium", "tpu-v6e-slice"),
        ("tpu-v3-podslice", "tpu-v3-device or tpu-v3-slice"),
    ],
)
def test_an_accelerator_that_is_nearly_named_is_refused_with_what_is_meant(label: str, meant: str) -> None:
    with pytest.raises(ImpossibleShape) as refused:
        shape_of(label, Topology.parse("2x2"), 4)
    assert str(refused.value) == (
        f'cloud.google.com/gke-tpu-accelerator: "{label}" is unknown: did you mean {meant}? Use one of {KNOWN}'
    )


@pytest.mark.parametrize("label", ["tpu-v2", "nvidia-h100-80gb", "tpu", "a" * 64])
def test_an_unknown_accelerator_is_refused_with_the_known_ones(label: str) -> None:
    with pytest.raises(ImpossibleShape) as refused:
        shape_of(label, Topology.parse("2x2"), 4)
    assert str(refused.value) == f'cloud.google.com/gke-tpu-accelerator: "{label}" is unknown: use {KNOWN}'


def test_what_is_not_selected_is_said_to_be_missing() -> None:
    with pytest.raises(ImpossibleShape, match="gke-tpu-accelerator: the pods select none: use tpu-v4-podslice, "):
        accelerator_of("")
    with pytest.raises(ImpossibleShape, match="gke-tpu-topology: the pods select none; the smallest of tpu-v5p-slice"):
        topology_of(V5P, "")


@pytest.mark.parametrize("text", ["0x0x0", "4x4x", "4by4", "4x4x4x4", "-4x4x4", "4X4X4"])
def test_a_malformed_topology_is_refused_by_field_with_alternatives(text: str) -> None:
    with pytest.raises(ImpossibleShape) as refused:
        topology_of(V5P, text)
    assert str(refused.value) == (
        f'cloud.google.com/gke-tpu-topology: "{text}" is not a topology; use 2 or 3 positive numbers joined by x, '
        "as in 4x4 or 2x2x4; the smallest of tpu-v5p-slice are 2x2x1, 2x2x2 or 2x2x4"
    )


def test_the_alternatives_to_an_unknown_topology_are_the_closest_in_chips() -> None:
    with pytest.raises(ImpossibleShape, match=re.escape("use 4x4, 4x8 or 8x8")):
        shape_of(V5E, Topology.parse("5x8"), 4)


@pytest.mark.parametrize("label", [V6E, V7X, V7])
def test_a_host_that_supports_only_hyperdisks_gets_one(label: str) -> None:
    assert CATALOGUE[label].boot_disks == ("hyperdisk-balanced",)


def test_eight_chips_are_one_host_or_two_as_the_pod_requests() -> None:
    for label in (V5E, V6E):
        one, two = (shape_of(label, Topology.parse("2x4"), chips) for chips in (8, 4))
        assert (one.hosts, two.hosts) == (1, 2)
        assert (one.placement, two.placement) == (None, Placement.COMPACT)


GIB_FOR_PODS: dict[str, int | None] = {
    "ct4p-hightpu-4t": 385,
    "ct5lp-hightpu-1t": 42,
    "ct5lp-hightpu-4t": 178,
    "ct5lp-hightpu-8t": 363,
    "ct5l-hightpu-1t": 42,
    "ct5l-hightpu-4t": 178,
    "ct5l-hightpu-8t": 363,
    "ct5p-hightpu-4t": 425,
    "ct6e-standard-1t": 162,
    "ct6e-standard-4t": 687,
    "ct6e-standard-8t": 1_381,
    "tpu7x-standard-1t": 232,
    "tpu7x-standard-4t": 949,
    "tpu7x-ultranet-4t": 949,
    "tpu7-standard-1t": 224,
    "tpu7-standard-4t": 918,
    "ct4l-hightpu-4t": None,
    "ct3-hightpu-4t": None,
    "ct3p-hightpu-4t": None,
}
"""Whole GiB left after GKE's reservations: reserved.go, COS 1.36 (os-reserved.yaml), 100 MiB for eviction."""


def test_allocatable_memory_is_what_gke_computes() -> None:
    assert {name: machine.allocatable_memory_gib for name, machine in MACHINES.items()} == GIB_FOR_PODS
    for machine in MACHINES.values():
        if machine.allocatable_memory_gib is not None:
            assert machine.memory_gib is not None
            assert machine.allocatable_memory_gib < machine.memory_gib


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_allocatable_cpu_is_what_gke_computes(machine: MachineType) -> None:
    """6 % of the first, 1 % of the second, 0.5 % of the next two, 0.25 % of the others (reserved.go)."""
    assert machine.vcpus is not None
    reserved = 60 + 10 + 2 * 5 + (machine.vcpus - 4) * 2.5
    assert machine.allocatable_cpu_milli == machine.vcpus * 1000 - reserved


def test_the_minimum_gke_version_is_known_where_it_is_documented() -> None:
    known = {label: kind.minimum_gke for label, kind in CATALOGUE.items() if kind.minimum_gke}
    assert known == {V6E: "1.31.2-gke.1115000", V7X: "1.34.0-gke.2201000"}


def test_of_an_accelerator_without_known_topologies_it_is_said_who_can_name_one() -> None:
    remedy = "no topology of tpu-v3-slice is known: the operator can name it in the cluster's settings, in catalogue."
    for text in ("4x4", ""):
        with pytest.raises(ImpossibleShape, match=re.escape(remedy)):
            shape_of(V3, topology_of(V3, text), 4)


def test_all_hosts_are_of_an_architecture_that_is_known() -> None:
    assert {machine.arch for machine in MACHINES.values()} == {"amd64"}
