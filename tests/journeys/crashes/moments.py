"""The moments of a story at which its process crashes."""

from __future__ import annotations

import pytest
from _pytest.mark.structures import ParameterSet

EVERY = 5
"""Of so many moments one is tried each time; the others are proofs."""


def moments(side_effects: int, first: int = 1) -> list[ParameterSet]:
    """Return after how many side effects the process crashes: after each."""
    return [
        pytest.param(last, marks=() if last % EVERY == first % EVERY else pytest.mark.proof)
        for last in range(first, side_effects + 1)
    ]
