"""Finds out again and again, in a thread of its own, what becomes of objects that the API server does not store."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from tpu_slices.ports.errors import Permanent, Temporary

T = TypeVar("T")

LOOK_EVERY = 60.0


class Trial(ABC, Generic[T]):
    """Finds out at the start, and then each minute; `seen` is what it found last, None: it is not known."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._why = ""
        self.seen: T | None = None

    def run(self) -> None:
        """Find out until `stop` is called."""
        self.look()
        while not self._stopping.wait(LOOK_EVERY):
            self.look()

    def stop(self) -> None:
        self._stopping.set()

    def look(self) -> None:
        """Find out, and log what is wrong."""
        try:
            self.seen = self._found()
        except (Temporary, Permanent) as error:
            if str(error) != self._why:
                self._unknown(str(error))
            self.seen, self._why = None, str(error)
        else:
            self._why = ""

    @abstractmethod
    def _found(self) -> T:
        """Return what becomes of the objects; Temporary or Permanent: it cannot be found out."""

    @abstractmethod
    def _unknown(self, error: str) -> None:
        """Log why it cannot be found out; once, until the error is another."""
