"""Plans of a root by Terraform itself, with the stand-in for its providers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.infra.environments.evaluation import REQUIRED, TRAINING
from tests.infra.stand_in.provider import plan


@dataclass(frozen=True)
class Plan:
    """What Terraform would make."""

    resources: Mapping[str, Mapping[str, Any]]
    """By address, what is known of each."""
    outputs: Mapping[str, Any]

    def all(self, kind: str) -> dict[str, Mapping[str, Any]]:
        """Return the resources of a kind, by what follows it in their addresses."""
        return {
            address.removeprefix(f"{kind}."): body
            for address, body in self.resources.items()
            if address.startswith(f"{kind}.")
        }

    def pools(self) -> dict[str, Mapping[str, Any]]:
        """Return the node pools of static slices, by name."""
        return {body["name"]: body for name, body in self.all("google_container_node_pool").items() if name != "cpu"}


def prepared(folder: Path, source: Path = TRAINING, **variables: object) -> Path:
    """Return a copy of a root with these variables beside the required ones."""
    root = folder / "root"
    shutil.copytree(source, root, ignore=shutil.ignore_patterns(".terraform*"))
    (root / "terraform.tfvars.json").write_text(json.dumps({**REQUIRED[source], **variables}))
    return root


def plan_of(folder: Path, source: Path = TRAINING, **variables: object) -> Plan:
    """Plan a root with these variables beside the required ones."""
    return planned_in(prepared(folder, source, **variables))


def planned_in(root: Path) -> Plan:
    """Plan what is in a folder."""
    found = plan(root)
    changes = {change["address"]: change["change"]["after"] for change in found["resource_changes"]}
    outputs = {name: output.get("value") for name, output in found["planned_values"]["outputs"].items()}
    return Plan(changes, outputs)
