"""A store that counts what is asked of it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tpu_slices_simulator.fakes.store import FakeStore


class CountingStore:
    """Counts the calls of each method of a store, and the documents that they returned."""

    def __init__(self, store: FakeStore) -> None:
        self.calls: Counter[str] = Counter()
        self.documents = 0
        self._store = store

    def __getattr__(self, name: str) -> Any:
        def counted(*args: Any) -> Any:
            answer = getattr(self._store, name)(*args)
            self.calls[name] += 1
            self.documents += len(answer) if isinstance(answer, tuple | dict) else 1
            return answer

        return counted
