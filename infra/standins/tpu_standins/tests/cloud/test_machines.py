"""The machine types and topologies, compared with the table of documented ones."""

import pytest

from tpu_standins.cloud.machines import MACHINES, Machine, host_count, is_multi_host, is_single_host
from tpu_standins.testing import documented


def test_gke_makes_every_documented_slice_of_the_documented_hosts() -> None:
    rows = list(documented.slices())
    assert {row["machine_type"] for row in rows} == MACHINES.keys()
    for row in rows:
        machine, topology = MACHINES[row["machine_type"]], row["topology"]
        makes = is_single_host if row["host_kind"] == "single" else is_multi_host
        assert makes(machine, topology), row
        assert (host_count(machine, topology), machine.chips) == (int(row["vms"]), int(row["chips_per_vm"])), row
        assert machine.accelerator == row["accelerator_label"], row
        assert row["policy_kind"].startswith("workload-policy") == (
            machine.by_policy and row["host_kind"] == "multi"
        ), row


@pytest.mark.parametrize(
    ("machine", "topology", "hosts"),
    [
        ("ct4p-hightpu-4t", "2x2x2", 2),
        ("ct4p-hightpu-4t", "2x4x4", 8),
        ("ct4p-hightpu-4t", "4x4x4", 16),
        ("ct4p-hightpu-4t", "12x16x16", 768),
        ("ct5p-hightpu-4t", "4x8x12", 96),
        ("ct5lp-hightpu-4t", "2x4", 2),
        ("ct5lp-hightpu-4t", "16x16", 64),
        ("ct6e-standard-4t", "4x8", 8),
        ("tpu7x-standard-4t", "2x2x2", 2),
        ("tpu7x-standard-4t", "16x24x24", 2304),
        ("tpu7-standard-4t", "4x8x8", 64),
    ],
)
def test_a_larger_slice_has_as_many_hosts_as_its_chips_need(machine: str, topology: str, hosts: int) -> None:
    assert is_multi_host(MACHINES[machine], topology)
    assert host_count(MACHINES[machine], topology) == hosts


@pytest.mark.parametrize("machine", MACHINES.values(), ids=lambda machine: machine.name)
def test_every_machine_is_a_slice_of_its_own(machine: Machine) -> None:
    assert is_single_host(machine, machine.single_host)
    assert not is_multi_host(machine, machine.single_host)


@pytest.mark.parametrize(
    ("machine", "topology"),
    [
        pytest.param("ct4p-hightpu-4t", "4x2x4", id="unsorted"),
        pytest.param("ct4p-hightpu-4t", "4x4x6", id="not of cubes"),
        pytest.param("ct4p-hightpu-4t", "4x4", id="flat for a 3-D machine"),
        pytest.param("ct4p-hightpu-4t", "16x16x20", id="more than 4,096 chips"),
        pytest.param("ct5lp-hightpu-4t", "2x2x2", id="3-D for a flat machine"),
        pytest.param("ct5lp-hightpu-4t", "16x32", id="more than a v5e pod"),
        pytest.param("ct5lp-hightpu-4t", "8x4", id="unsorted and flat"),
        pytest.param("ct5lp-hightpu-8t", "4x4", id="a machine of single hosts only"),
        pytest.param("ct5l-hightpu-4t", "2x4", id="a device, not a pod slice"),
        pytest.param("ct6e-standard-1t", "2x2", id="one-chip machines"),
        pytest.param("tpu7x-standard-4t", "16x24x28", id="more than 144 cubes"),
        pytest.param("tpu7x-ultranet-4t", "4x4x8", id="more than is documented of ultranet"),
        pytest.param("ct3-hightpu-4t", "4x4", id="a device of v3"),
        pytest.param("tpu7-standard-4t", "4x4x20", id="more than 4 cubes"),
        pytest.param("tpu7x-standard-1t", "2x2x2", id="one-chip machines of tpu7x"),
        pytest.param("tpu7x-standard-4t", "4x4", id="flat for tpu7x"),
        pytest.param("ct4p-hightpu-4t", "2x2x0", id="no chips"),
        pytest.param("ct4p-hightpu-4t", "", id="no topology"),
    ],
)
def test_gke_makes_no_such_slice(machine: str, topology: str) -> None:
    assert not is_multi_host(MACHINES[machine], topology)
