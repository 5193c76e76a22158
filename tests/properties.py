"""How many examples of a property are tried."""

from __future__ import annotations

from typing import Any

from hypothesis import settings


def at_most(examples: int, **more: Any) -> settings:
    """Return the settings of a property whose examples take long: as many as the profile says, up to these."""
    profile = settings.default
    assert profile is not None
    return settings(max_examples=min(examples, profile.max_examples), **more)
