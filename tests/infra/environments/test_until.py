"""How often a build tries what it waits for, and how long it waits in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.infra.sources import ROOT
from tests.infra.tools import Tools, tools

pytestmark = pytest.mark.emulators

UNTIL = f"bash {ROOT / 'infra' / 'environments' / 'until.sh'}"


@pytest.fixture
def programs(tmp_path: Path) -> Tools:
    return tools(tmp_path / "tools", "sleep", "probe")


@pytest.mark.parametrize(
    ("seconds", "environment", "calls"),
    [
        ("20", {}, ["probe", "sleep 10", "probe", "sleep 10", "probe"]),
        ("20", {"UNTIL_TRIES": "2"}, ["probe", "sleep 10", "probe"]),
        ("1200", {"UNTIL_TRIES": "2"}, ["probe", "sleep 20", "probe"]),
    ],
)
def test_it_is_tried_every_ten_seconds_or_sixty_times(
    programs: Tools, tmp_path: Path, seconds: str, environment: dict[str, str], calls: list[str]
) -> None:
    programs.answer("probe", "not yet", code=1)
    failed = programs.run(f"{UNTIL} {seconds} probe", tmp_path, **environment)
    assert (failed.returncode, failed.stdout, failed.stderr) == (1, "", "not yet\n")
    assert [call.rstrip() for call in programs.calls] == calls


def test_what_succeeds_is_not_tried_again(programs: Tools, tmp_path: Path) -> None:
    programs.answer("probe", "ready")
    done = programs.run(f"{UNTIL} 20 probe", tmp_path)
    assert (done.returncode, done.stdout) == (0, "ready\n")
    assert [call.rstrip() for call in programs.calls] == ["probe"]
