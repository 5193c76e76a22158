"""The arrangement of a slice's chips: the value of `cloud.google.com/gke-tpu-topology`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Self

_SYNTAX = re.compile(r"[1-9][0-9]{0,3}(x[1-9][0-9]{0,3}){1,2}")


@dataclass(frozen=True, slots=True, order=True)
class Topology:
    """The number of chips along each of two or three dimensions, as in `4x4` or `2x2x4`."""

    dimensions: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the topology of a text like `4x4` or `2x2x4`; raise ValueError with a text for the tenant."""
        if not _SYNTAX.fullmatch(text):
            raise ValueError(f'"{text}" is not a topology; use 2 or 3 positive numbers joined by x, as in 4x4 or 2x2x4')
        return cls(tuple(int(part) for part in text.split("x")))

    @property
    def chips(self) -> int:
        return math.prod(self.dimensions)

    def __str__(self) -> str:
        return "x".join(str(dimension) for dimension in self.dimensions)
