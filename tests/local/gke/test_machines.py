import pytest

from infra.local.gke.machines import MACHINES, Machine, host_count, is_multi_host, is_single_host


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
        pytest.param("ct4p-hightpu-4t", "2x2x0", id="no chips"),
        pytest.param("ct4p-hightpu-4t", "", id="no topology"),
    ],
)
def test_gke_makes_no_such_slice(machine: str, topology: str) -> None:
    assert not is_multi_host(MACHINES[machine], topology)
