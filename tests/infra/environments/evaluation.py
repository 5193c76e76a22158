"""Lets Terraform itself evaluate a root of an environment, as far as it can without a provider."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.infra.evaluation import planning, terraform
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

QUICKLY = ("-no-color", "-input=false", "-refresh=false", "-lock=false")


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
    terraform(folder, "plan", *QUICKLY)


Refusal = tuple[Mapping[str, object], str]
"""Variables that cannot be, and what says why, as a pattern."""


def said(folder: Path, variables: Mapping[str, object]) -> str:
    """Return what Terraform says when it plans with these variables beside the required ones."""
    _set(folder, variables)
    return planning(folder, *QUICKLY)


def refusals(cases: Sequence[Refusal], says_of: Callable[[Mapping[str, object]], str]) -> list[str]:
    """Return what is said of the variables of each case, and of no other.

    Cases of different variables and different texts are planned together. An error that two of them expect counts for
    neither. If a case is not told then what it expects, as a precondition is not said while a variable has no valid
    value, it is planned with fewer others, and at last alone.
    """
    told = [""] * len(cases)
    for most in (len(cases), len(cases), 1):
        left = [index for index, (_, says) in enumerate(cases) if not re.search(says, told[index])]
        for group in _groups(cases, left, most):
            errors = _errors(says_of({name: value for index in group for name, value in cases[index][0].items()}))
            for index in group:
                others = [cases[other][1] for other in group if other != index]
                own = (each for each in errors if not any(re.search(says, each) for says in others))
                told[index] = "\n".join(own)
    return told


def _errors(said: str) -> list[str]:
    """Return what Terraform says, error by error, each in one line."""
    return [" ".join(each.split()) for each in said.split("Error: ")[1:]]


def _groups(cases: Sequence[Refusal], left: Sequence[int], most: int) -> list[list[int]]:
    """Return groups of so many cases at most, no two of which set the same variable or expect the same text."""
    groups: list[list[int]] = []
    for index in left:
        free = (
            each
            for each in groups
            if len(each) < most and not any(_alike(cases[index], cases[other]) for other in each)
        )
        if group := next(free, None):
            group.append(index)
        else:
            groups.append([index])
    return groups


def _alike(one: Refusal, other: Refusal) -> bool:
    (sets, says), (sets_too, says_too) = one, other
    return bool(sets.keys() & sets_too.keys() or re.search(says, says_too) or re.search(says_too, says))


def _set(folder: Path, variables: Mapping[str, object]) -> None:
    (folder / "asked.auto.tfvars.json").write_text(json.dumps(variables))
