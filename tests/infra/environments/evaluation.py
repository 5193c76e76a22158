"""Lets Terraform itself evaluate a root of an environment, as far as it can without a provider."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.infra.evaluation import terraform
from tests.infra.sources import ROOT

TRAINING = ROOT / "infra" / "environments" / "training" / "infrastructure"

REQUIRED: Mapping[str, object] = {
    "project_id": "shop-project",
    "region": "us-central2",
    "zone": "us-central2-b",
    "network_name": "training",
    "subnet_name": "training-nodes",
    "cluster_name": "trainer",
    "artifact_repository_bucket_name": "shop-project-artifacts",
}
"""The variables that have no default."""


def prepared(folder: Path) -> Path:
    """Return a folder with the variables of the infrastructure, the locals that need no provider, and the catalogue."""
    for path in (*TRAINING.glob("variables*.tf"), TRAINING / "preconditions.tf", TRAINING / "catalogue.json"):
        shutil.copy(path, folder)
    (folder / "locals.tf").write_text("\n".join(_evaluable()))
    return folder


def _evaluable() -> Iterator[str]:
    for path in sorted(TRAINING.glob("*.tf")):
        for found in re.findall(r"^locals \{\n.*?^\}$", path.read_text(), flags=re.MULTILINE | re.DOTALL):
            if "google_" not in found:
                yield found


def evaluated(folder: Path, expressions: Mapping[str, str], **variables: object) -> dict[str, Any]:
    """Return what these expressions are, with these variables beside the required ones."""
    _set(folder, variables)
    queries = ", ".join(f'"{name}" = {expression}' for name, expression in expressions.items())
    answers: dict[str, Any] = json.loads(json.loads(terraform(folder, "console", text=f"jsonencode({{{queries}}})\n")))
    return answers


def planned(folder: Path, **variables: object) -> None:
    """Let Terraform validate these variables beside the required ones; an AssertionError has what it says."""
    _set(folder, variables)
    terraform(folder, "plan", "-no-color")


def _set(folder: Path, variables: Mapping[str, object]) -> None:
    (folder / "terraform.tfvars.json").write_text(json.dumps({**REQUIRED, **variables}))
