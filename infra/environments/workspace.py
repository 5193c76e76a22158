"""The folder `build` in the workspace of a build, through which its steps talk, and what is decided between them."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from infra.environments import plans
from infra.environments.substitutions import Refused, Values

BUILD = Path("build")
KEPT = BUILD / "kept"
"""What infra/environments/kept.sh keeps beside Terraform's state."""


def read(path: Path) -> Any:
    """Return what is in a file of JSON."""
    return json.loads(path.read_text())


def write(path: Path, text: str) -> None:
    """Write a file, with the folders that it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n" if text else "")


def write_variables(values: Mapping[str, Values]) -> None:
    """Write build/ROOT.tfvars.json."""
    for root, each in values.items():
        write(BUILD / f"{root}.tfvars.json", json.dumps(each, indent=2))


def kept_variables(roots: Iterable[str]) -> dict[str, Values]:
    """Return the variables that earlier builds have kept, by root."""
    files = {root: KEPT / f"{root}.tfvars.json" for root in roots}
    return {root: read(file) for root, file in files.items() if file.is_file()}


def keep_variables(root: str, plan: plans.Json) -> Values:
    """Write the variables of a plan to where they are kept, and return them."""
    values = plans.variables(plan)
    write(KEPT / f"{root}.tfvars.json", json.dumps(values, indent=2))
    return values


def write_standing(roots: Iterable[str]) -> None:
    """Write build/standing/ROOT from build/ROOT.state.json: an address a line.

    Raises Refused if the cluster is protected.
    """
    for root in roots:
        resources = plans.standing(read(BUILD / f"{root}.state.json"))
        plans.destroyable(resources)
        write(BUILD / "standing" / root, "\n".join(resources))


def decide(commands: Mapping[str, Callable[[], None]], arguments: Iterable[str], usage: str | None) -> int:
    """Run the command that the arguments name, word by word; return the exit code."""
    command = commands.get(" ".join(arguments))
    if command is None:
        sys.stderr.write(f"{usage}\n")
        return 2
    try:
        command()
    except Refused as refused:
        sys.stderr.write(f"{refused}\n")
        return 1
    return 0
