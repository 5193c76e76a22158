"""`python -m infra.environments.training.catalogue`: writes the TPU catalogue for Terraform, which cannot import it.

| in `infrastructure/catalogue.json` | says                                                                       |
|------------------------------------|----------------------------------------------------------------------------|
| `machines`                         | by machine type: accelerator, chips of a host, hosts by each topology      |
| `accelerators`                     | by label: placement, boot disk, flex-start, first GKE version, zones       |
| `types`                            | by name (v4-32): machine type and topology                                 |

All is of the provisioner's own catalogue (tpu_slices/domain/catalogue), as it resolves pods.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tpu_slices.domain.catalogue.accelerators import CATALOGUE
from tpu_slices.domain.catalogue.machines import Accelerator, MachineType
from tpu_slices.domain.catalogue.topology import Topology
from tpu_slices.domain.catalogue.zones import zones_with

FILE = Path(__file__).parent / "infrastructure" / "catalogue.json"

_COUNTS = {"CHIPS": 1, "CORES": 2}
NAMED: Mapping[str, tuple[str, int]] = {
    # what names begin with: accelerator, and how much a chip counts in the number of a name
    kind.slice_names.rpartition("-")[0]: (kind.label, _COUNTS[kind.slice_names.rpartition("-")[2]])
    for kind in CATALOGUE.values()
    if kind.slice_names
}
"""Names of Cloud TPU and xpk. Those of v4, v5p and 7 count TensorCores, two for each chip; the others count chips."""


def catalogue() -> dict[str, dict[str, Any]]:
    """Return what Terraform reads."""
    return {
        "machines": {machine.name: _machine(kind, machine) for kind in CATALOGUE.values() for machine in kind.machines},
        "accelerators": {kind.label: _accelerator(kind) for kind in CATALOGUE.values()},
        "types": {name: entry for prefix in NAMED for name, entry in _types(prefix)},
    }


def text() -> str:
    """Return the catalogue as JSON, with a line for each entry, so that a change of one is seen."""
    parts = [
        f'"{part}": {{\n' + ",\n".join(f'"{name}": {json.dumps(entry)}' for name, entry in entries.items()) + "\n}"
        for part, entries in catalogue().items()
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _machine(kind: Accelerator, machine: MachineType) -> dict[str, Any]:
    return {
        "accelerator": kind.label,
        "chips": machine.chips,
        "hosts": {str(topology): hosts for topology, hosts in machine.slices.items()},
    }


def _accelerator(kind: Accelerator) -> dict[str, Any]:
    return {
        "placement": kind.placement,
        "boot_disk": kind.boot_disks[0],
        "flex_start": kind.flex_start,
        "minimum_gke": kind.minimum_gke,
        "zones": sorted(zones_with().get(kind.label, ())),
    }


def _types(prefix: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each name with its slice: of all with as many chips, the most compact one, on the fewest hosts.

    So v5litepod-8 is one host of 8 chips, and v4-512 is 4x8x8. Others are asked for by machine type and topology.
    """
    label, counts = NAMED[prefix]
    kind = CATALOGUE[label]
    found: dict[int, tuple[Topology, int, MachineType]] = {}
    for machine in kind.machines:
        for topology, hosts in machine.slices.items():
            best = found.get(topology.chips)
            if best is None or (*_spread(topology), hosts) < (*_spread(best[0]), best[1]):
                found[topology.chips] = (topology, hosts, machine)
    for chips, (topology, _, machine) in sorted(found.items()):
        yield f"{prefix}-{chips * counts}", {"machine_type": machine.name, "topology": str(topology)}


def _spread(topology: Topology) -> tuple[int, int]:
    return max(topology.dimensions), sum(topology.dimensions)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
