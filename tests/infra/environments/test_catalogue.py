"""The catalogue that Terraform reads, compared with the provisioner's own."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from infra.environments.training.catalogue import FILE, NAMED, catalogue, text
from tests.infra.environments.evaluation import evaluated, prepared
from tpu_slices.domain.catalogue.accelerators import CATALOGUE, accelerator_of, legal_topologies, shape_of
from tpu_slices.domain.catalogue.topology import Topology
from tpu_slices.domain.catalogue.zones import zones_with

KNOWN = catalogue()
TYPES = KNOWN["types"]

CLOUD_TPU = {
    "v4-8": ("2x2x1", 1),
    "v4-16": ("2x2x2", 2),
    "v4-32": ("2x2x4", 4),
    "v4-64": ("2x4x4", 8),
    "v4-128": ("4x4x4", 16),
    "v4-256": ("4x4x8", 32),
    "v4-512": ("4x8x8", 64),
    "v4-1024": ("8x8x8", 128),
    "v4-1536": ("8x8x12", 192),
    "v4-2048": ("8x8x16", 256),
    "v4-4096": ("8x16x16", 512),
    "v5litepod-16": ("4x4", 4),
    "v5litepod-32": ("4x8", 8),
    "v5litepod-64": ("8x8", 16),
    "v5litepod-128": ("8x16", 32),
    "v5litepod-256": ("16x16", 64),
    "v5p-128": ("4x4x4", 16),
    "v5p-12288": ("16x16x24", 1536),
    "v5p-17920": ("16x20x28", 2240),
    "v6e-64": ("8x8", 16),
    "v6e-256": ("16x16", 64),
    "tpu7x-2": ("1x1x1", 1),
    "tpu7x-128": ("4x4x4", 16),
    "tpu7x-16384": ("16x16x32", 2048),
    "tpu7x-18432": ("16x24x24", 2304),
}
"""Names, as Google's and xpk's tables have them: topology and hosts."""


def test_the_file_is_what_the_provisioners_catalogue_says_now() -> None:
    assert FILE.read_text() == text(), "run python -m infra.environments.training.catalogue"


@pytest.mark.parametrize("name", CLOUD_TPU)
def test_a_name_is_the_slice_that_cloud_tpu_and_xpk_mean(name: str) -> None:
    found = TYPES[name]
    machine = KNOWN["machines"][found["machine_type"]]
    assert (found["topology"], machine["hosts"][found["topology"]]) == CLOUD_TPU[name]


@pytest.mark.parametrize("prefix", NAMED)
def test_the_number_of_a_name_counts_its_chips_and_every_number_of_chips_has_a_name(prefix: str) -> None:
    label, counts = NAMED[prefix]
    named = {int(name.rpartition("-")[2]): entry for name, entry in TYPES.items() if name.rpartition("-")[0] == prefix}

    assert {number: Topology.parse(entry["topology"]).chips for number, entry in named.items()} == {
        number: number // counts for number in named
    }
    every = {topology.chips * counts for topology in legal_topologies(accelerator_of(label))}
    assert set(named) == every


def test_a_name_that_two_machine_types_could_have_is_one_host() -> None:
    assert TYPES["v5litepod-8"] == {"machine_type": "ct5lp-hightpu-8t", "topology": "2x4"}
    assert TYPES["v6e-8"] == {"machine_type": "ct6e-standard-8t", "topology": "2x4"}


def test_zones_are_of_accelerators_that_exist() -> None:
    assert set(zones_with()) <= set(CATALOGUE)
    every = [zone for row in zones_with().values() for zone in row]
    assert all(re.fullmatch(r"[a-z]+-[a-z]+\d+-[a-z0-9]+", zone) for zone in every)
    assert len(set(every)) < len(every) == sum(len(set(row)) for row in zones_with().values())


@pytest.mark.emulators
@pytest.mark.enable_socket
@pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed")
def test_terraform_gives_each_name_the_hosts_that_the_provisioner_would_buy(tmp_path: Path) -> None:
    """The provisioner is asked as by a pod: accelerator, topology and chips per host."""
    pools = {f"pool-{name}": {"type": name} for name in TYPES}
    found = evaluated(prepared(tmp_path), {"pools": "local.pools"}, tpu_pools=pools)["pools"]

    assert set(found) == set(pools)
    for name, pool in found.items():
        shape = shape_of(pool["accelerator"], Topology.parse(pool["topology"]), pool["chips_per_host"])
        said = (pool["machine_type"], pool["hosts"], pool["placement"] or None)
        assert said == (shape.machine.name, shape.hosts, shape.placement), name
        assert pool["boot_disk"] == CATALOGUE[pool["accelerator"]].boot_disks[0]


def test_the_file_has_every_slice_of_every_machine_type_and_no_other() -> None:
    machines = json.loads(FILE.read_text())["machines"]
    possible = {
        (machine.name, str(topology))
        for kind in CATALOGUE.values()
        for machine in kind.machines
        for topology in legal_topologies(kind)
        if topology == machine.single_host or (machine.multi_host and topology.chips > machine.chips)
        if not machine.by_name or topology.chips <= 64
    }
    assert {(name, topology) for name, machine in machines.items() for topology in machine["hosts"]} == possible
