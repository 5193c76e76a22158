"""The page of the training environment, compared with its variables."""

from __future__ import annotations

import re
from typing import Any

from tests.infra.sources import ENVIRONMENTS, ROOT

PAGE = (ROOT / "infra" / "environments" / "training" / "README.md").read_text()
ROWS = dict(
    re.findall(
        r"^\| `(\w+)` \| .* \| (.+) \|$", PAGE.partition("## Variables")[2].partition("## What")[0], re.MULTILINE
    )
)
VARIABLES: dict[str, Any] = {
    name: body
    for file in ENVIRONMENTS["infra/environments/training/infrastructure"].values()
    for block in file.get("variable", [])
    for name, body in block.items()
}


def test_the_page_has_every_variable_and_no_other() -> None:
    assert sorted(ROWS) == sorted(VARIABLES)


def test_the_page_has_every_default() -> None:
    found = {name: body.get("default", "required") for name, body in VARIABLES.items()}
    written = {name: "none" if value is None else str(value) for name, value in found.items()}
    told = {name: ROWS[name].strip("`") for name in written}
    switches = {name: value for name, value in found.items() if isinstance(value, bool)}
    in_words = {"maintenance_window", "gke_sa_roles", *switches}

    assert {name: text for name, text in told.items() if name not in in_words} == {
        name: text for name, text in written.items() if name not in in_words
    }
    assert {name: told[name] == "true" for name in switches} == switches


def test_the_page_has_every_field_of_a_pool() -> None:
    fields = set(re.findall(r"(\w+)=? *=? *optional|\b(\w+) *= *\$?\{?optional", VARIABLES["tpu_pools"]["type"]))
    named = {name for pair in fields for name in pair if name}
    slices = PAGE.partition("## Slices")[2].partition("## Variables")[0]
    rows = re.findall(r"^\| (`.+?) \|", slices, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == named
