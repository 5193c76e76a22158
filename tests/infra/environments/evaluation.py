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
CONFIGURATION = ROOT / "infra" / "environments" / "training" / "configuration"
TRITON = ROOT / "infra" / "environments" / "triton" / "infrastructure"

REQUIRED: Mapping[Path, Mapping[str, object]] = {
    TRAINING: {
        "project_id": "shop-project",
        "region": "us-central2",
        "zone": "us-central2-b",
        "network_name": "training",
        "subnet_name": "training-nodes",
        "cluster_name": "trainer",
        "artifact_repository_bucket_name": "shop-project-artifacts",
    },
    CONFIGURATION: {"project_id": "shop-project", "state_bucket": "shop-project-state"},
    TRITON: {
        "project_id": "shop-project",
        "region": "us-central1",
        "zone": "us-central1-a",
        "network_name": "serving",
        "subnet_name": "serving-nodes",
        "cluster_name": "server",
        "repository_bucket_name": "shop-project-models",
    },
}
"""The variables of each root that have no default."""


def prepared(folder: Path, root: Path = TRAINING) -> Path:
    """Return a folder with the variables of a root, the locals that need no provider, and the files that they read."""
    for path in (*root.glob("variables*.tf"), root / "preconditions.tf", *root.glob("*.json")):
        shutil.copy(path, folder)
    (folder / "locals.tf").write_text("\n".join(_evaluable(root)))
    (folder / "terraform.tfvars.json").write_text(json.dumps(REQUIRED[root]))
    return folder


def _evaluable(root: Path) -> Iterator[str]:
    for path in sorted(root.glob("*.tf")):
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
    (folder / "asked.auto.tfvars.json").write_text(json.dumps(variables))
