"""The TPU catalogue: which slices exist, and which hosts each consists of.

A slice is an accelerator, a topology and the chips that one pod (one host) requests; from those follow the machine
type, the number of hosts (chips / chips per host, an exact division) and the placement policy that GKE requires.
Sources: GKE's cluster autoscaler (GoogleCloudPlatform/cluster-autoscaler@7d25050: machinetypes/ for labels, machine
types, chips and boot disks, reserved.go and os-reserved.yaml for allocatable resources); xpk@367c838
(system_characteristics.py) for topologies and caps; Google's pages on Ironwood and KubeRay's on v6e for versions.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tpu_slices.domain.catalogue.topology import Topology


class Placement(StrEnum):
    """The placement policy of a multi-host pool of this accelerator."""

    COMPACT = "COMPACT"  # type COMPACT and the topology
    WORKLOAD_POLICY = "WORKLOAD_POLICY"  # the name of a Compute Engine workload policy


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineType:
    """One kind of host."""

    name: str
    chips: int
    vcpus: int
    memory_gib: int
    allocatable_cpu_milli: int
    """What a node offers to pods, in thousandths of a CPU: GKE reserves the rest."""
    allocatable_memory_gib: int
    """What a node offers to pods up to GKE 1.36; later versions offer more."""
    single_host: Topology
    """The topology of a slice of one such host."""
    multi_host: bool = False
    """Whether slices of several such hosts exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One value of the node label `cloud.google.com/gke-tpu-accelerator`."""

    label: str
    generation: str
    machines: tuple[MachineType, ...]
    small: tuple[Topology, ...]
    """Every valid topology that does not consist of 4x4x4 cubes, smallest first."""
    cubes: int = 0
    """Largest slice in cubes of 4x4x4; such topologies are sorted and every side is a multiple of 4. 0: none."""
    placement: Placement = Placement.COMPACT
    boot_disks: tuple[str, ...]
    """The boot disk types that the hosts support, the default first."""
    flex_start: bool = True
    """Whether GKE provisions its hosts by flex-start, too (dwsDisabled)."""
    network_profile: bool = False
    """Whether GKE has an accelerator network profile for its hosts (cluster-toolkit and xpk: v6e and tpu7x)."""
    in_groups: bool = False
    """Whether there are managed instance groups of its hosts (docs.cloud.google.com/tpu/docs/tpus-and-migs)."""
    minimum_gke: str | None = None
    """The first GKE version that supports the accelerator, where it is recent enough to matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The hosts that a slice consists of."""

    machine: MachineType
    hosts: int
    placement: Placement | None
    """None for a single host: GKE rejects a placement policy there."""


class ImpossibleShape(ValueError):
    """No such slice exists; the text names the field, its value and the nearest valid choices."""


def _topologies(*texts: str) -> tuple[Topology, ...]:
    return tuple(Topology.parse(text) for text in texts)


def _machine(
    name: str, has: tuple[int, int, int], for_pods: tuple[int, int], single: str, *, multi_host: bool = False
) -> MachineType:
    """Return a row of the table: name, (chips, vCPUs, GiB), allocatable (milli-CPUs, GiB), topology of one host."""
    return MachineType(
        name=name,
        chips=has[0],
        vcpus=has[1],
        memory_gib=has[2],
        allocatable_cpu_milli=for_pods[0],
        allocatable_memory_gib=for_pods[1],
        single_host=Topology.parse(single),
        multi_host=multi_host,
    )


_GENERATION = re.compile(r"(?:tpu)?[-_ ]?v?(\d{1,2})[-_ ]?(e|p|x|lite)?(?![a-z0-9])", re.ASCII)
"""At the beginning of what is meant for a label, as in tpu-v7x, v6e or tpu-v5-lite."""
_NAMED = {"trillium": "6e", "ironwood": "7x"}
"""Google's names of generations."""
_LONGEST_SIDE = 256  # of any topology that xpk lists

_FLAT = _topologies("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
_DEEP = _topologies("2x2x1", "2x2x2", "2x2x4", "2x4x4")

CATALOGUE: Mapping[str, Accelerator] = {
    accelerator.label: accelerator
    for accelerator in (
        Accelerator(
            label="tpu-v4-podslice",
            generation="v4",
            machines=(_machine("ct4p-hightpu-4t", (4, 240, 407), (239_330, 385), "2x2x1", multi_host=True),),
            small=_DEEP,
            cubes=64,
            boot_disks=("pd-standard", "pd-balanced", "pd-ssd", "hyperdisk-balanced"),
            flex_start=False,
        ),
        Accelerator(
            label="tpu-v5-lite-podslice",
            generation="v5e",
            machines=(
                _machine("ct5lp-hightpu-1t", (1, 24, 48), (23_870, 42), "1x1"),
                _machine("ct5lp-hightpu-4t", (4, 112, 192), (111_650, 178), "2x2", multi_host=True),
                _machine("ct5lp-hightpu-8t", (8, 224, 384), (223_370, 363), "2x4"),
            ),
            small=_FLAT,
            boot_disks=("pd-balanced", "pd-ssd"),
        ),
        Accelerator(
            label="tpu-v5-lite-device",
            generation="v5e",
            machines=(
                _machine("ct5l-hightpu-1t", (1, 24, 48), (23_870, 42), "1x1"),
                _machine("ct5l-hightpu-4t", (4, 112, 192), (111_650, 178), "2x2"),
                _machine("ct5l-hightpu-8t", (8, 224, 384), (223_370, 363), "2x4"),
            ),
            small=_topologies("1x1", "2x2", "2x4"),
            boot_disks=("pd-balanced", "pd-ssd"),
            flex_start=False,
        ),
        Accelerator(
            label="tpu-v5p-slice",
            generation="v5p",
            machines=(_machine("ct5p-hightpu-4t", (4, 208, 448), (207_410, 425), "2x2x1", multi_host=True),),
            small=_DEEP,
            cubes=140,
            boot_disks=("pd-balanced", "pd-ssd"),
            in_groups=True,
        ),
        Accelerator(
            label="tpu-v6e-slice",
            generation="v6e",
            machines=(
                _machine("ct6e-standard-1t", (1, 44, 176), (43_820, 162), "1x1"),
                _machine("ct6e-standard-4t", (4, 180, 720), (179_480, 687), "2x2", multi_host=True),
                _machine("ct6e-standard-8t", (8, 180, 1440), (179_480, 1381), "2x4"),
            ),
            small=_FLAT,
            boot_disks=("hyperdisk-balanced",),
            network_profile=True,
            in_groups=True,
            minimum_gke="1.31.2-gke.1115000",
        ),
        Accelerator(
            label="tpu7x",
            generation="tpu7x",
            machines=(
                _machine("tpu7x-standard-1t", (1, 56, 248), (55_790, 232), "1x1x1"),
                _machine("tpu7x-standard-4t", (4, 224, 992), (223_370, 949), "2x2x1", multi_host=True),
            ),
            small=(Topology((1, 1, 1)), *_DEEP),
            cubes=144,
            placement=Placement.WORKLOAD_POLICY,
            boot_disks=("hyperdisk-balanced",),
            network_profile=True,
            in_groups=True,
            minimum_gke="1.34.0-gke.2201000",
        ),
        Accelerator(
            label="tpu7",
            generation="tpu7",
            machines=(  # what pods can use is computed as for the others: no page lists these hosts
                _machine("tpu7-standard-1t", (1, 56, 240), (55_790, 224), "1x1x1"),
                _machine("tpu7-standard-4t", (4, 224, 960), (223_370, 918), "2x2x1", multi_host=True),
            ),
            small=(Topology((1, 1, 1)), *_DEEP),
            cubes=4,
            placement=Placement.WORKLOAD_POLICY,
            boot_disks=("hyperdisk-balanced",),
            in_groups=True,
        ),
    )
}


_MACHINES: Mapping[str, MachineType] = {
    machine.name: machine for accelerator in CATALOGUE.values() for machine in accelerator.machines
}


def shape_of(accelerator: str, topology: Topology, chips_per_pod: int) -> Shape:
    """Return the hosts for a topology if each pod requests `chips_per_pod` chips; raise ImpossibleShape if none fit.

    | topology vs chips per pod     | hosts                              | placement            |
    |-------------------------------|------------------------------------|----------------------|
    | equal                         | one, of the machine of that size   | none                 |
    | larger, machine is multi-host | topology chips / chips per pod     | the accelerator's    |
    | anything else                 | ImpossibleShape                    |                      |
    """
    kind = accelerator_of(accelerator)
    fitting = {machine.chips: machine for machine in machines_for(kind, topology)}
    machine = fitting.get(chips_per_pod)
    if machine is None:
        sizes = _one_of(str(chips) for chips in fitting)
        raise ImpossibleShape(
            f"google.com/tpu: {kind.label} {topology} is not available with {chips_per_pod} per pod: request {sizes}"
        )
    hosts = topology.chips // machine.chips
    return Shape(machine=machine, hosts=hosts, placement=kind.placement if hosts > 1 else None)


def machines_for(kind: Accelerator, topology: Topology) -> tuple[MachineType, ...]:
    """Return the machine types that a topology can be made of; raise ImpossibleShape if there is no such topology."""
    _refuse_unknown_topology(kind, topology)
    return tuple(machine for machine in kind.machines if _can_build(machine, topology))


def machine_named(name: str) -> MachineType:
    return _MACHINES[name]


def accelerator_with(machine: str) -> Accelerator | None:
    """Return the accelerator whose hosts are of this machine type; None: there is no such type."""
    return next((kind for kind in CATALOGUE.values() if any(each.name == machine for each in kind.machines)), None)


def accelerator_of(label: str) -> Accelerator:
    kind = CATALOGUE.get(label)
    if kind is None:
        said = f'"{label}" is unknown' if label else "the pods select none"
        meant = _meant_by(label.lower().replace("litepod", "lite"))
        use = f"did you mean {_one_of(iter(meant))}? Use one of" if meant else "use"
        raise ImpossibleShape(f"cloud.google.com/gke-tpu-accelerator: {said}: {use} {_one_of(CATALOGUE)}")
    return kind


def _meant_by(text: str) -> list[str]:
    """Return the accelerators of the generation that a text names; empty if it names none that is known."""
    named = _generation(text)
    known = {kind.label: _generation(kind.generation) for kind in CATALOGUE.values()}
    same = [label for label, generation in known.items() if generation == named]
    return same or [label for label, generation in known.items() if named and generation.rstrip("epx") == named]


def _generation(text: str) -> str:
    """Return number and letter, as in 5e; empty if the text begins with none."""
    found = _GENERATION.match(text)
    return f"{found[1]}{(found[2] or '').replace('lite', 'e')}" if found else _NAMED.get(text, "")


def topology_of(label: str, text: str) -> Topology:
    """Return the parsed topology; raise ImpossibleShape on bad syntax. The accelerator may still not have it."""
    kind = accelerator_of(label)
    try:
        return Topology.parse(text)
    except ValueError as bad:
        smallest = _one_of(str(topology) for topology in legal_topologies(kind)[:3])
        said = bad if text else "the pods select none"
        raise ImpossibleShape(
            f"cloud.google.com/gke-tpu-topology: {said}; the smallest of {kind.label} are {smallest}"
        ) from bad


def legal_topologies(kind: Accelerator) -> tuple[Topology, ...]:
    """Return every topology of an accelerator, in increasing order of chips."""
    return _legal(kind.small, kind.cubes)


@functools.cache
def _legal(small: tuple[Topology, ...], cubes: int) -> tuple[Topology, ...]:
    return tuple(sorted({*small, *_cubic(cubes)}, key=lambda topology: (topology.chips, topology)))


def _cubic(cubes: int) -> Iterator[Topology]:
    longest = _LONGEST_SIDE // 4
    for a in range(1, int(cubes ** (1 / 3)) + 2):
        for b in range(a, cubes // a + 1):
            for c in range(b, min(longest, cubes // (a * b)) + 1):
                yield Topology((4 * a, 4 * b, 4 * c))


def _refuse_unknown_topology(kind: Accelerator, topology: Topology) -> None:
    legal = legal_topologies(kind)
    if topology in legal:
        return
    ordered = Topology(tuple(sorted(topology.dimensions)))
    near = [ordered] if ordered in legal else _nearest(legal, topology.chips)
    raise ImpossibleShape(
        f"cloud.google.com/gke-tpu-topology: {kind.label} has no {topology}: use {_one_of(str(t) for t in near)}"
    )


def _nearest(legal: tuple[Topology, ...], chips: int) -> list[Topology]:
    """Return the three topologies closest in chips, smallest first; a tie goes to the shorter longest side."""
    closest = sorted(legal, key=lambda topology: (abs(topology.chips - chips), max(topology.dimensions)))[:3]
    return sorted(closest, key=lambda topology: (topology.chips, topology))


def _can_build(machine: MachineType, topology: Topology) -> bool:
    return topology == machine.single_host or (machine.multi_host and topology.chips > machine.chips)


def _one_of(choices: Iterator[str] | Mapping[str, object]) -> str:
    *most, last = choices
    return f"{', '.join(most)} or {last}" if most else last
