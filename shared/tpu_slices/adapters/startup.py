"""The startup script of a slice's instances on Compute Engine."""

from __future__ import annotations

from pathlib import Path

STARTUP_SCRIPT = "startup-script"
"""The key of the metadata that Compute Engine runs at every boot."""


def startup_script() -> str:
    """Return the script; it is the same for all, since it reads what differs from its instance's metadata."""
    return Path(__file__).with_suffix(".sh").read_text(encoding="utf-8")
