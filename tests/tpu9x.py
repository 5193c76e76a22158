"""An accelerator that does not exist: its row of machines as an operator writes it, and as files have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

READ: Mapping[str, str] = {"read": "2026-11-30", "source": "invented for tests"}
TPU9X: Mapping[str, Any] = {
    "accelerator": "tpu9x",
    "machine_type": "tpu9x-standard-4t",
    "arch": "arm64",
    "chips": 4,
    "topologies": ["2x2", "4x4", "4x6=8"],
    "placement": "COMPACT",
    "boot_disks": ["hyperdisk-balanced"],
    **READ,
}
"""All that the recipe of CONTRIBUTING.md asks for; what else there is to know is not known."""
CELLS: Mapping[str, str] = {
    **TPU9X,
    "chips": "4",
    "topologies": "2x2 4x4 4x6=8",
    "boot_disks": "hyperdisk-balanced",
}
