"""The TPU catalogue: which slices exist, and which hosts each consists of.

A slice is an accelerator, a topology and the chips that one pod (one host) requests; from those follow the machine
type, the number of hosts and the placement policy that GKE requires. The facts are rows of `machines.tsv`, which has
their sources; the rows of a cluster's settings (`catalogue.machines`) are added to them, or replace them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tpu_slices.domain.catalogue.machines import (
    Accelerator,
    MachineType,
    Placement,
    accelerators_of,
    added,
    machine_row,
)
from tpu_slices.domain.catalogue.meant import meant_by
from tpu_slices.domain.catalogue.rows import Cells, file_of, rows_of
from tpu_slices.domain.catalogue.topology import Topology

Accelerators = Mapping[str, Accelerator]
"""By label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The hosts that a slice consists of."""

    machine: MachineType
    hosts: int
    placement: Placement | None
    """None for a single host: GKE rejects a placement policy there."""

    @property
    def chips(self) -> int:
        return self.hosts * self.machine.chips


class ImpossibleShape(ValueError):
    """No such slice exists; the text names the field, its value and the nearest valid choices."""


_ROWS = tuple(map(machine_row, rows_of(file_of("machines.tsv"), "machines.tsv")))
CATALOGUE: Accelerators = accelerators_of(_ROWS)


@functools.lru_cache(maxsize=64)
def accelerators_with(rows: tuple[Cells, ...]) -> Accelerators:
    """Return the catalogue with the rows of a cluster's settings; raise WrongRow."""
    return accelerators_of(added(_ROWS, rows)) if rows else CATALOGUE


def shape_of(
    accelerator: str, topology: Topology, chips_per_pod: int, machine_type: str = "", known: Accelerators = CATALOGUE
) -> Shape:
    """Return the hosts for a topology if each pod requests `chips_per_pod` chips; raise ImpossibleShape if none fit.

    | a machine type with as many chips                    | hosts                      | placement           |
    |------------------------------------------------------|----------------------------|---------------------|
    | of which the topology is one host                    | one                        | none                |
    | of which the topology is several                     | as many as its row implies | the accelerator's   |
    | that is got only by its name, and that was selected  | the same                   | the same            |
    | any other                                            | ImpossibleShape            |                     |
    """
    kind = accelerator_of(accelerator, known)
    possible = machines_for(kind, topology)
    fitting = {machine.chips: machine for machine in reversed(possible) if not machine.by_name}
    fitting |= {machine.chips: machine for machine in possible if machine.name == machine_type}
    machine = fitting.get(chips_per_pod)
    if not fitting:
        names = one_of(machine.name for machine in possible)
        raise ImpossibleShape(
            f"node.kubernetes.io/instance-type: {kind.label} {topology} is only available by its name: select {names}"
        )
    if machine is None:
        sizes = one_of(str(chips) for chips in sorted(fitting))
        raise ImpossibleShape(
            f"google.com/tpu: {kind.label} {topology} is not available with {chips_per_pod} per pod: request {sizes}"
        )
    hosts = machine.slices[topology]
    return Shape(machine=machine, hosts=hosts, placement=kind.placement if hosts > 1 else None)


def machines_for(kind: Accelerator, topology: Topology) -> tuple[MachineType, ...]:
    """Return the machine types that a topology can be made of; raise ImpossibleShape if there is no such topology."""
    _refuse_unknown_topology(kind, topology)
    return tuple(machine for machine in kind.machines if topology in machine.slices)


def machine_named(name: str, known: Accelerators = CATALOGUE) -> MachineType | None:
    return next((machine for kind in known.values() for machine in kind.machines if machine.name == name), None)


def accelerator_with(machine: str, known: Accelerators = CATALOGUE) -> Accelerator | None:
    """Return the accelerator whose hosts are of this machine type; None: there is no such type."""
    return next((kind for kind in known.values() if any(each.name == machine for each in kind.machines)), None)


def accelerator_of(label: str, known: Accelerators = CATALOGUE) -> Accelerator:
    kind = known.get(label)
    if kind is None:
        said = f'"{label}" is unknown' if label else "the pods select none"
        meant = meant_by(label, known.values())
        use = f"did you mean {one_of(meant)}? Use one of" if meant else "use"
        raise ImpossibleShape(f"cloud.google.com/gke-tpu-accelerator: {said}: {use} {one_of(known)}")
    return kind


def topology_of(label: str, text: str, known: Accelerators = CATALOGUE) -> Topology:
    """Return the parsed topology; raise ImpossibleShape on bad syntax. The accelerator may still not have it."""
    kind = accelerator_of(label, known)
    try:
        return Topology.parse(text)
    except ValueError as bad:
        said = bad if text else "the pods select none"
        raise ImpossibleShape(f"cloud.google.com/gke-tpu-topology: {said}; {_smallest(kind)}") from bad


def legal_topologies(kind: Accelerator) -> tuple[Topology, ...]:
    """Return every topology of an accelerator that is known, in increasing order of chips."""
    every = {topology for machine in kind.machines for topology in machine.slices}
    return tuple(sorted(every, key=lambda topology: (topology.chips, topology)))


def _smallest(kind: Accelerator) -> str:
    legal = legal_topologies(kind)
    return f"the smallest of {kind.label} are {one_of(map(str, legal[:3]))}" if legal else _unheard_of(kind)


def _unheard_of(kind: Accelerator) -> str:
    return f"no topology of {kind.label} is known: the operator can name it in the cluster's settings, in {SETTING}"


SETTING = "catalogue.machines"


def _refuse_unknown_topology(kind: Accelerator, topology: Topology) -> None:
    if any(topology in machine.slices for machine in kind.machines):
        return
    legal = legal_topologies(kind)
    ordered = Topology(tuple(sorted(topology.dimensions)))
    near = [ordered] if ordered in legal else _nearest(legal, topology.chips)
    remedy = f"use {one_of(map(str, near))}" if near else _unheard_of(kind)
    raise ImpossibleShape(f"cloud.google.com/gke-tpu-topology: {kind.label} has no {topology}: {remedy}")


def _nearest(legal: tuple[Topology, ...], chips: int) -> list[Topology]:
    """Return the three topologies closest in chips, smallest first; a tie goes to the shorter longest side."""
    closest = sorted(legal, key=lambda topology: (abs(topology.chips - chips), max(topology.dimensions)))[:3]
    return sorted(closest, key=lambda topology: (topology.chips, topology))


def one_of(choices: Iterable[str]) -> str:
    *most, last = choices
    return f"{', '.join(most)} or {last}" if most else last
