"""Where what was simulated is kept: by commit."""

from __future__ import annotations

import subprocess
from pathlib import Path

FOLDER = Path(".local") / "simulation"


def commit() -> str:
    """Return the commit that is played, with a mark if files were changed since."""
    ask = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    return subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
