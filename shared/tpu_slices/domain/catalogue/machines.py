"""The machine types of TPU hosts, and the accelerators that they have: of `machines.tsv`, and of a cluster's settings.

A row is a machine type. What holds for its accelerator stands in each of its rows, or in one of them.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from tpu_slices.domain.catalogue.rows import NOTHING, Cells, Row, rows_of_settings
from tpu_slices.domain.catalogue.topology import Topology

_LONGEST_SIDE = 256  # of any topology that xpk lists
_MOST_CUBES = 1024  # many times those of the largest pod


class Placement(StrEnum):
    """The placement policy of a multi-host pool of this accelerator."""

    COMPACT = "COMPACT"  # type COMPACT and the topology
    WORKLOAD_POLICY = "WORKLOAD_POLICY"  # the name of a Compute Engine workload policy


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineType:
    """One kind of host. What is None or empty is not known."""

    name: str
    arch: str
    """As in the node label kubernetes.io/arch."""
    chips: int
    vcpus: int | None
    memory_gib: int | None
    allocatable_cpu_milli: int | None
    """What a node offers to pods, in thousandths of a CPU: GKE reserves the rest."""
    allocatable_memory_gib: int | None
    """What a node offers to pods up to GKE 1.36; later versions offer more."""
    listed: tuple[tuple[Topology, int], ...]
    """The slices of such hosts that do not consist of 4x4x4 cubes: topology, and number of hosts."""
    cubes: int
    """Largest slice in cubes of 4x4x4; such topologies are sorted and every side is a multiple of 4. 0: none."""
    by_name: bool
    """Whether a pod gets such hosts only if it selects them by this name (node.kubernetes.io/instance-type)."""

    @property
    def slices(self) -> Mapping[Topology, int]:
        """The hosts of every slice that consists of such, by its topology, in increasing order of chips."""
        return _slices(self.listed, self.cubes, self.chips)

    @property
    def single_host(self) -> Topology | None:
        """The topology of a slice of one such host."""
        return next((topology for topology, hosts in self.listed if hosts == 1), None)

    @property
    def multi_host(self) -> bool:
        """Whether slices of several such hosts exist."""
        return self.cubes > 0 or any(hosts > 1 for _, hosts in self.listed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One value of the node label `cloud.google.com/gke-tpu-accelerator`."""

    label: str
    generation: str
    machines: tuple[MachineType, ...]
    placement: Placement
    boot_disks: tuple[str, ...]
    """The boot disk types that the hosts support, the default first."""
    flex_start: bool | None
    """Whether GKE provisions its hosts by flex-start, too (dwsDisabled); None: not known, and GKE may be asked."""
    network_profile: bool
    """Whether GKE has an accelerator network profile for its hosts (cluster-toolkit and xpk: v6e and tpu7x)."""
    in_groups: bool
    """Whether there are managed instance groups of its hosts (docs.cloud.google.com/tpu/docs/tpus-and-migs)."""
    minimum_gke: str | None
    """The first GKE version that supports the accelerator, where it is recent enough to matter."""
    slice_names: str | None
    """How Cloud TPU and xpk name its slices: `v6e-CHIPS`, or `v4-CORES` where they count two cores for each chip."""


@dataclass(frozen=True, slots=True)
class MachineRow:
    """A machine type, and what its row says of its accelerator."""

    accelerator: str
    machine: MachineType
    says: Mapping[str, str]
    """What is said of the accelerator, by field; what is not known is left out."""
    row: Row


_OF_ACCELERATOR = (
    "generation", "placement", "boot_disks", "flex_start", "network_profile", "in_groups", "minimum_gke", "slice_names",
)  # fmt: skip
COLUMNS = (
    "accelerator", "machine_type", "arch", "chips", "vcpus", "memory_gib", "cpu_milli_for_pods", "memory_gib_for_pods",
    "topologies", "cubes", "by_name", *_OF_ACCELERATOR, "read", "source",
)  # fmt: skip


_OF_MACHINE = (
    ("arch", "arch"), ("vcpus", "vcpus"), ("memory_gib", "memory_gib"), ("topologies", "listed"), ("cubes", "cubes"),
    ("cpu_milli_for_pods", "allocatable_cpu_milli"), ("memory_gib_for_pods", "allocatable_memory_gib"),
    ("by_name", "by_name"),
)  # fmt: skip
"""The columns of a machine type that may be left out, with the fields that they are read to."""
IN_SETTINGS = tuple(each for each in COLUMNS if each not in {"network_profile", "slice_names"})
"""What a row of a cluster's settings may have: not what node pools are named and joined by before these are read."""


def machine_row(row: Row, columns: Collection[str] = COLUMNS) -> MachineRow:
    """Return what a row says; raise WrongRow."""
    row.only(columns)
    row.day("read")
    row.text("source")
    chips = row.number("chips") or row.fail("chips", "it is missing: write the chips of one host")
    machine = MachineType(
        name=row.text("machine_type"),
        arch=row.maybe("arch", _arch, "amd64 or arm64, or left out if it is not known") or "",
        chips=chips,
        vcpus=row.number("vcpus"),
        memory_gib=row.number("memory_gib"),
        allocatable_cpu_milli=row.number("cpu_milli_for_pods"),
        allocatable_memory_gib=row.number("memory_gib_for_pods"),
        listed=tuple(_listed(row, chips)),
        cubes=row.number("cubes", at_most=_MOST_CUBES) or 0,
        by_name=row.flag("by_name") or False,
    )
    _accelerator_of(row, row.text("accelerator"), (machine,))
    says = {field: row.cells[field] for field in _OF_ACCELERATOR if row.cells.get(field)}
    return MachineRow(row.text("accelerator"), machine, says, row)


def accelerators_of(rows: Iterable[MachineRow]) -> dict[str, Accelerator]:
    """Return the accelerators of rows, which agree in what they say of each; raise WrongRow."""
    grouped: dict[str, list[MachineRow]] = {}
    names: set[str] = set()
    for each in rows:
        if each.machine.name in names:
            each.row.fail("machine_type", f"there is a row of {each.machine.name} already: remove one of them")
        names.add(each.machine.name)
        grouped.setdefault(each.accelerator, []).append(each)
    return {label: _accelerator(label, theirs) for label, theirs in grouped.items()}


def added(known: Iterable[MachineRow], rows: Iterable[Cells]) -> Iterator[MachineRow]:
    """Yield the rows of the catalogue with those of settings, each of which corrects the one of its machine type.

    What it says of its accelerator holds for the accelerator's other machine types, too; what it does not say stays.
    """
    known = tuple(known)
    before = {each.machine.name: each for each in known}
    own = [_beside(machine_row(row, IN_SETTINGS), before) for row in rows_of_settings("machines", rows)]
    mine = {each.machine.name for each in own}
    facts = {label: {**_said(label, known), **_said(label, own)} for label in {each.accelerator for each in own}}
    for each in (*(each for each in known if each.machine.name not in mine), *own):
        yield replace(each, says=facts.get(each.accelerator, each.says))


def _beside(own: MachineRow, before: Mapping[str, MachineRow]) -> MachineRow:
    """Return a row with what it leaves out of a machine type that is known; raise WrongRow if it is of another kind."""
    known = before.get(own.machine.name)
    if known is None:
        return own
    if own.accelerator != known.accelerator:
        own.row.fail("accelerator", f"{own.machine.name} is a machine type of {known.accelerator}: write that")
    stays = {field: getattr(known.machine, field) for column, field in _OF_MACHINE if not own.row.cells.get(column)}
    return replace(own, machine=replace(own.machine, **stays))


def _said(label: str, rows: Iterable[MachineRow]) -> dict[str, str]:
    """Return what rows say of an accelerator, in which they agree; raise WrongRow."""
    said: dict[str, str] = {}
    for each in rows:
        for field, value in each.says.items() if each.accelerator == label else ():
            if said.setdefault(field, value) != value:
                each.row.fail(field, f'"{value}" is not what another row of {label} says, "{said[field]}": agree')
    return said


def _accelerator(label: str, rows: list[MachineRow]) -> Accelerator:
    last = rows[-1].row
    whole = Row({**last.cells, **_said(label, rows)}, last.where)
    machines = tuple(each.machine for each in rows)
    if not whole.words("boot_disks"):
        whole.fail("boot_disks", "it is missing: write what the hosts support, the default first")
    if whole.cells.get("placement", "") in NOTHING and any(machine.multi_host for machine in machines):
        whole.fail("placement", f"it is missing, and there are slices of several hosts: write {' or '.join(Placement)}")
    return _accelerator_of(whole, label, machines)


def _accelerator_of(row: Row, label: str, machines: tuple[MachineType, ...]) -> Accelerator:
    return Accelerator(
        label=label,
        generation=row.cells.get("generation") or label,
        machines=machines,
        placement=row.maybe("placement", Placement, " or ".join(Placement)) or Placement.COMPACT,
        boot_disks=row.words("boot_disks"),
        flex_start=row.flag("flex_start"),
        network_profile=row.flag("network_profile") or False,
        in_groups=row.flag("in_groups") or False,
        minimum_gke=row.maybe("minimum_gke", str, ""),
        slice_names=row.maybe("slice_names", _names, "such as v6e-CHIPS or v4-CORES"),
    )


def _listed(row: Row, chips: int) -> Iterator[tuple[Topology, int]]:
    """Yield topologies with their hosts: as many as their chips need, or those that are named, as in 4x4=6."""
    for word in row.words("topologies"):
        text, named, count = word.partition("=")
        try:
            topology = Topology.parse(text)
            hosts = int(count) if named else topology.chips / chips
        except ValueError as wrong:
            row.fail("topologies", f'"{word}": {wrong}')
        if hosts < 1 or hosts != int(hosts):
            row.fail("topologies", f'"{word}" is not made of hosts of {chips} chips: name their number, as in {text}=2')
        yield topology, int(hosts)


@functools.cache
def _slices(listed: tuple[tuple[Topology, int], ...], cubes: int, chips: int) -> Mapping[Topology, int]:
    found = {**{topology: topology.chips // chips for topology in _cubic(cubes)}, **dict(listed)}
    return {topology: found[topology] for topology in sorted(found, key=lambda each: (each.chips, each))}


def _cubic(cubes: int) -> Iterator[Topology]:
    longest = _LONGEST_SIDE // 4
    for a in range(1, int(cubes ** (1 / 3)) + 2):
        for b in range(a, cubes // a + 1):
            for c in range(b, min(longest, cubes // (a * b)) + 1):
                yield Topology((4 * a, 4 * b, 4 * c))


def _arch(text: str) -> str:
    if text not in {"amd64", "arm64"}:
        raise ValueError(text)
    return text


def _names(text: str) -> str:
    if not text.endswith(("-CHIPS", "-CORES")):
        raise ValueError(text)
    return text
