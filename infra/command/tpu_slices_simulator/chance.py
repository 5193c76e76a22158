"""Chance that depends on what it is asked about, and on nothing that was asked before."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")
_RANGE = 1 << 64


class Chance:
    """Draws by a seed and a key: what is taken out of a story changes nothing that is drawn for the rest."""

    def __init__(self, seed: object) -> None:
        self._seed = f"{seed}"

    def of(self, *key: object) -> float:
        """Return a number of at least 0 and below 1."""
        text = "\0".join(map(str, (self._seed, *key)))
        return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") / _RANGE

    def happens(self, share: float, *key: object) -> bool:
        return share > 0 and self.of(*key) < share

    def pick(self, options: Sequence[T], *key: object) -> T:
        return options[int(self.of(*key) * len(options))]

    def between(self, least: int, most: int, *key: object) -> int:
        """Return a whole number; both ends are possible."""
        return least + int(self.of(*key) * (most - least + 1))
