"""The page of each environment, compared with its variables."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.infra.sources import ENVIRONMENTS, ROOT

ENVIRONMENT = ROOT / "infra" / "environments"
PAGES = {name: (ENVIRONMENT / name / "README.md").read_text() for name in ("training", "triton")}
ROOTS = [path.removeprefix("infra/environments/") for path in ENVIRONMENTS]
IN_WORDS = {"maintenance_window", "gke_sa_roles"}

every_root = pytest.mark.parametrize("root", ROOTS)


def rows(root: str) -> dict[str, str]:
    """Return the defaults that the page of an environment tells of a root, by variable."""
    name, _, part = root.partition("/")
    tables = PAGES[name].partition("## Variables")[2].partition("\n## ")[0]
    table = re.split(rf"^### .*{part}$", tables, flags=re.MULTILINE)[-1].partition("\n### ")[0]
    return dict(re.findall(r"^\| `(\w+)` \| .* \| (.+) \|$", table, re.MULTILINE))


def variables(root: str) -> dict[str, Any]:
    files = ENVIRONMENTS[f"infra/environments/{root}"].values()
    return {each: body for file in files for block in file.get("variable", []) for each, body in block.items()}


@every_root
def test_the_page_has_every_variable_and_no_other(root: str) -> None:
    assert sorted(rows(root)) == sorted(variables(root))


@every_root
def test_the_page_has_every_default(root: str) -> None:
    found = {each: body.get("default", "required") for each, body in variables(root).items() if each not in IN_WORDS}
    told = {each: text.strip("`") for each, text in rows(root).items() if each not in IN_WORDS}
    switches = {each: value for each, value in found.items() if isinstance(value, bool)}
    written = {each: "none" if value is None else str(value) for each, value in found.items()}

    assert told == written | {each: str(value).lower() for each, value in switches.items()}


def test_the_page_has_every_field_of_a_pool() -> None:
    tpu_pools = variables("training/infrastructure")["tpu_pools"]["type"]
    fields = set(re.findall(r"(\w+)=? *=? *optional|\b(\w+) *= *\$?\{?optional", tpu_pools))
    named = {name for pair in fields for name in pair if name}
    slices = PAGES["training"].partition("## Slices")[2].partition("## Queues")[0]
    table = re.findall(r"^\| (`.+?) \|", slices, re.MULTILINE)
    assert {name for row in table for name in re.findall(r"`(\w+)`", row)} == named
