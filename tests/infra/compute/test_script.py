"""The startup script as it is written, and how its tests see what it writes."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.infra.compute.conftest import SCRIPT
from tests.infra.compute.outside import written_since


def test_the_script_has_no_placeholder() -> None:
    assert re.findall(r"\{\{.*?\}\}|__[A-Z]+__|@@|%[A-Z]+%|<[A-Z_]+>", SCRIPT.read_text()) == []


def test_a_change_would_be_noticed(tmp_path: Path) -> None:
    for name in ("before", "host/etc/changed", "host/etc/kept", "machine/etc/kept"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    moment = tmp_path / "before"
    os.utime(tmp_path / "machine/etc/kept", ns=(0, moment.stat().st_mtime_ns - 1))
    (tmp_path / "machine/etc/changed").touch()
    assert written_since(moment, tmp_path / "host", tmp_path / "machine") == ["etc/changed"]
