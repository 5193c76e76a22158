"""What the processes of a job on several hosts are told."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpu_slices.domain.catalogue.accelerators import CATALOGUE, legal_topologies
from tpu_slices.domain.catalogue.topology import Topology
from tpu_slices.domain.planning.environment import (
    JobPlace,
    multislice_environment,
    topology_environment,
    worker_environment,
    worker_hostnames,
)


def test_the_pods_of_a_jobset_are_found_by_their_names() -> None:
    names = worker_hostnames(JobPlace(name="llama-workers-0", subdomain="llama", hosts=2))
    assert worker_environment(1, names) == {
        "TPU_WORKER_ID": "1",
        "TPU_WORKER_HOSTNAMES": "llama-workers-0-0.llama,llama-workers-0-1.llama",
        "TPU_PROCESS_ADDRESSES": "llama-workers-0-0.llama:8476,llama-workers-0-1.llama:8476",
        "TPU_PROCESS_PORT": "8476",
    }


def test_a_single_host_is_itself() -> None:
    names = worker_hostnames(JobPlace(name="llama-workers-0", subdomain="", hosts=1))
    assert worker_environment(0, names)["TPU_WORKER_HOSTNAMES"] == "localhost"


@pytest.mark.parametrize(
    ("topology", "chips", "of_a_host", "hosts"),
    [
        ("2x2x2", 4, "2,2,1", "1,1,2"),
        ("2x2x4", 4, "2,2,1", "1,1,4"),
        ("4x4", 4, "2,2,1", "2,2,1"),
        ("2x4", 8, "2,4,1", "1,1,1"),
        ("2x4", 4, "2,2,1", "1,2,1"),
        ("1x1", 1, "1,1,1", "1,1,1"),
    ],
)
def test_chips_and_hosts_are_arranged_as_the_device_plugin_says(
    topology: str, chips: int, of_a_host: str, hosts: str
) -> None:
    assert topology_environment(Topology.parse(topology), chips) == {
        "TPU_TOPOLOGY": topology,
        "TPU_CHIPS_PER_HOST_BOUNDS": of_a_host,
        "TPU_HOST_BOUNDS": hosts,
    }


@pytest.mark.parametrize(("topology", "chips"), [("2x3", 4), ("2x2", 3), ("1x1", 4)])
def test_hosts_that_do_not_fill_a_topology_are_told_none(topology: str, chips: int) -> None:
    assert topology_environment(Topology.parse(topology), chips) == {}


SHAPES = [
    (accelerator.label, topology, machine.chips)
    for accelerator in CATALOGUE.values()
    for topology in legal_topologies(accelerator)[:8]
    for machine in accelerator.machines
]


@given(st.sampled_from(SHAPES))
def test_as_many_hosts_are_told_as_a_slice_has(shape: tuple[str, Topology, int]) -> None:
    _, topology, chips = shape
    told = topology_environment(topology, chips)
    if told:
        assert math.prod(map(int, told["TPU_HOST_BOUNDS"].split(","))) == topology.chips // chips


def test_slices_of_one_jobset_find_each_other() -> None:
    assert multislice_environment("llama", "workers", 2, 1, "llama") == {
        "MEGASCALE_NUM_SLICES": "2",
        "MEGASCALE_SLICE_ID": "1",
        "MEGASCALE_COORDINATOR_ADDRESS": "llama-workers-0-0.llama",
    }
    assert multislice_environment("llama", "workers", 1, 0, "llama") == {}
