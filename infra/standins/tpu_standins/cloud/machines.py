"""The TPU machine types and topologies that GKE accepts.

Sources: [CA] is GKE's published cluster autoscaler (machinetypes/deprecated_tpu_config.go and the machine
families' disk types, reserved.go for what is allocatable); [xpk] system_characteristics.py for sizes.
Not covered, so that requests get UNIMPLEMENTED: ct3p, of which no source has a topology. What is allocatable of the
memory of ct3 and ct4l is not known: less is offered than any reading of the formula leaves.
"""

import math
import re
from dataclasses import dataclass

COVERED_FAMILIES = ("ct3-", "ct4l-", "ct4p-", "ct5l-", "ct5lp-", "ct5p-", "ct6e-", "tpu7x-", "tpu7-standard-")

_TOPOLOGY = re.compile(r"[1-9]\d{0,3}(x[1-9]\d{0,3}){1,2}")
_FLAT = frozenset({(2, 4), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16)})
_BELOW_A_CUBE = frozenset({(2, 2, 2), (2, 2, 4), (2, 4, 4)})
_CUBE_EDGE = 4

PD = ("pd-balanced", "pd-ssd")
PD_AND_HYPERDISK = ("pd-standard", "pd-balanced", "pd-ssd", "hyperdisk-balanced")
HYPERDISK = ("hyperdisk-balanced",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One row of [CA]'s table.

    `chips` is per VM; `cpu_milli` and `memory_gib` are allocatable; `disks` are the boot disk types, the default
    first; `largest` is the number of chips of the largest slice, 0 if there are only single-host slices.
    `by_policy`: multi-host slices are placed by a workload policy, not by COMPACT [xpk, ctk, CA, doc:tpu-ironwood].
    """

    name: str
    accelerator: str
    chips: int
    vcpus: int
    ram_gib: int
    cpu_milli: int
    memory_gib: int
    single_host: str
    disks: tuple[str, ...]
    largest: int = 0
    by_policy: bool = False


def _v5e(name: str, accelerator: str, largest: int = 0) -> Machine:
    chips = int(name[-2])
    vcpus, ram, cpu, memory, topology = {
        1: (24, 48, 23_870, 42, "1x1"),
        4: (112, 192, 111_650, 178, "2x2"),
        8: (224, 384, 223_370, 363, "2x4"),
    }[chips]
    return Machine(
        name=name,
        accelerator=accelerator,
        chips=chips,
        vcpus=vcpus,
        ram_gib=ram,
        cpu_milli=cpu,
        memory_gib=memory,
        single_host=topology,
        disks=PD,
        largest=largest,
    )


def _v6e(name: str, allocatable: tuple[int, int], largest: int = 0) -> Machine:
    chips = int(name[-2])
    return Machine(
        name=name,
        accelerator="tpu-v6e-slice",
        chips=chips,
        vcpus=44 if chips == 1 else 180,
        ram_gib={1: 176, 4: 720, 8: 1_440}[chips],
        cpu_milli=allocatable[0],
        memory_gib=allocatable[1],
        single_host={1: "1x1", 4: "2x2", 8: "2x4"}[chips],
        disks=HYPERDISK,
        largest=largest,
    )


def _v7(accelerator: str, ram: tuple[int, int], memory: tuple[int, int], cubes: int) -> tuple[Machine, Machine]:
    """Return the machine types with one chip and with four; the vCPUs are the same for both accelerators."""
    one = Machine(
        name=f"{accelerator}-standard-1t",
        accelerator=accelerator,
        chips=1,
        vcpus=56,
        ram_gib=ram[0],
        cpu_milli=55_790,
        memory_gib=memory[0],
        single_host="1x1x1",
        disks=HYPERDISK,
    )
    four = Machine(
        name=f"{accelerator}-standard-4t",
        accelerator=accelerator,
        chips=4,
        vcpus=224,
        ram_gib=ram[1],
        cpu_milli=223_370,
        memory_gib=memory[1],
        single_host="2x2x1",
        disks=HYPERDISK,
        largest=cubes * 64,
        by_policy=True,
    )
    return one, four


def _older(name: str, accelerator: str, cpu: tuple[int, int], disks: tuple[str, ...]) -> Machine:
    """Return a machine type of v3 or v4i, with its vCPUs and what pods can have of them, of single hosts alone."""
    return Machine(
        name=name,
        accelerator=accelerator,
        chips=4,
        vcpus=cpu[0],
        ram_gib=340,
        cpu_milli=cpu[1],
        memory_gib=318,
        single_host="2x2",
        disks=disks,
    )


MACHINES: dict[str, Machine] = {
    machine.name: machine
    for machine in (
        Machine(
            name="ct4p-hightpu-4t",
            accelerator="tpu-v4-podslice",
            chips=4,
            vcpus=240,
            ram_gib=407,
            cpu_milli=239_330,
            memory_gib=385,
            single_host="2x2x1",
            disks=PD_AND_HYPERDISK,
            largest=64 * 64,
        ),
        _v5e("ct5l-hightpu-1t", "tpu-v5-lite-device"),
        _v5e("ct5l-hightpu-4t", "tpu-v5-lite-device"),
        _v5e("ct5l-hightpu-8t", "tpu-v5-lite-device"),
        _v5e("ct5lp-hightpu-1t", "tpu-v5-lite-podslice"),
        _v5e("ct5lp-hightpu-4t", "tpu-v5-lite-podslice", largest=256),
        _v5e("ct5lp-hightpu-8t", "tpu-v5-lite-podslice"),
        Machine(
            name="ct5p-hightpu-4t",
            accelerator="tpu-v5p-slice",
            chips=4,
            vcpus=208,
            ram_gib=448,
            cpu_milli=207_410,
            memory_gib=425,
            single_host="2x2x1",
            disks=PD,
            largest=140 * 64,
        ),
        _v6e("ct6e-standard-1t", (43_820, 162)),
        _v6e("ct6e-standard-4t", (179_480, 687), largest=256),
        _v6e("ct6e-standard-8t", (179_480, 1_381)),
        *_v7("tpu7x", (248, 992), (232, 949), cubes=144),
        Machine(  # [CA, xpk]: the hosts of tpu7x-standard-4t; no source has a larger slice
            name="tpu7x-ultranet-4t",
            accelerator="tpu7x",
            chips=4,
            vcpus=224,
            ram_gib=992,
            cpu_milli=223_370,
            memory_gib=949,
            single_host="2x2x1",
            disks=HYPERDISK,
            largest=64,
            by_policy=True,
        ),
        _older("ct4l-hightpu-4t", "tpu-v4-lite-device", (48, 47_810), PD_AND_HYPERDISK),
        _older("ct3-hightpu-4t", "tpu-v3-device", (96, 95_690), PD_AND_HYPERDISK[:3]),
        *_v7("tpu7", (240, 960), (224, 918), cubes=4),
    )
}


def dimensions(topology: str) -> tuple[int, ...] | None:
    """Parse `4x4x8` as (4, 4, 8); return None if it is not a topology."""
    if _TOPOLOGY.fullmatch(topology) is None:
        return None
    return tuple(int(edge) for edge in topology.split("x"))


def is_single_host(machine: Machine, topology: str) -> bool:
    """Return whether the slice has exactly the chips of one VM [CA IsMultiHostTpuPodslice]."""
    edges = dimensions(topology)
    return edges is not None and math.prod(edges) == machine.chips


def is_multi_host(machine: Machine, topology: str) -> bool:
    """Return whether GKE builds this slice from several such VMs [CA, xpk, kray]: sorted, known, not too large."""
    edges = dimensions(topology)
    if edges is None or len(edges) != len(machine.single_host.split("x")):
        return False
    if math.prod(edges) > machine.largest:
        return False
    if len(edges) == 2:  # v5e and v6e are flat
        return edges in _FLAT
    cubes = all(edge % _CUBE_EDGE == 0 for edge in edges)
    return edges in _BELOW_A_CUBE or (cubes and list(edges) == sorted(edges))


def is_tpu7x(topology: str) -> bool:
    """Return whether tpu7x has this topology, single-host or multi-host."""
    kinds = [machine for machine in MACHINES.values() if machine.accelerator == "tpu7x"]
    return any(topology == kind.single_host or is_multi_host(kind, topology) for kind in kinds)


def host_count(machine: Machine, topology: str) -> int:
    """Return the number of VMs of a slice [CA NumNodesFromTopology]."""
    return math.prod(dimensions(topology) or (0,)) // machine.chips
