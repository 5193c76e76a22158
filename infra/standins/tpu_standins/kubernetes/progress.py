"""What is told of a build: one line for every twentieth of the packages."""

from collections.abc import Callable
from dataclasses import dataclass

PARTS = 20


@dataclass(slots=True)
class Progress:
    """Counts packages, and tells of every further part of them."""

    total: int
    tell: Callable[[str], None]
    done: int = 0
    told: int = 0

    def advance(self) -> None:
        self.done += 1
        part = self.done * PARTS // max(self.total, 1)
        if part > self.told:
            self.told = part
            self.tell(f"  {part * 100 // PARTS:3} %: {self.done} of {self.total} packages compiled")
