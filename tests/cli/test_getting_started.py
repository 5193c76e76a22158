"""docs/getting-started.md: its settings are valid, and its plan is what the command prints."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.conftest import Slices

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "getting-started.md").read_text()


def block(beginning: str) -> list[str]:
    """Return the lines of the code block, or of the part of one, that begins so, up to an empty line."""
    found = re.search(rf"^    {re.escape(beginning)}(?:.*\n)(?:    .*\n)+", PAGE, re.MULTILINE)
    assert found is not None, beginning
    return [line.removeprefix("    ").rstrip() for line in found[0].splitlines()]


def test_the_plan_is_what_the_command_prints_by_the_settings_of_the_page(slices: Slices, tmp_path: Path) -> None:
    settings = tmp_path / "first.yaml"
    settings.write_text("\n".join(block("path: ")).replace("PROJECT", "my-project"))
    command, *shown = block("$ slices plan ")

    example = re.search(r"-f (\S+)", command)
    assert example is not None
    printed = slices("plan", "-f", ROOT / example[1], "--cluster", settings)
    assert printed.exit_code == 0, printed.output
    assert [line.rstrip() for line in printed.stdout.splitlines()] == shown
