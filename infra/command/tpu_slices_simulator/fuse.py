"""A fuse that can blow after any side effect, as a process can be gone after any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

EFFECTS = {
    "commit",
    "reject",
    "request_reconcile",
    "pass_on",
    "announce",
    "announce_node_group",
    "announce_workloads",
    "notify",
    "ask",
    "create",
    "delete",
    "cancel",
}


class Crash(BaseException):
    """The process is gone, right after a side effect."""


@dataclass(slots=True)
class Fuse:
    """Counts side effects; blows once, after the one it is set to."""

    blows_after: int | None = None
    burnt: int = 0

    def burn(self) -> None:
        self.burnt += 1
        if self.burnt == self.blows_after:
            raise Crash


class Fused:
    """A port whose side effects burn the fuse once they have happened."""

    def __init__(self, inner: object, fuse: Fuse) -> None:
        self._inner = inner
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if name not in EFFECTS:
            return method

        def and_burn(*args: Any, **kwargs: Any) -> Any:
            result = method(*args, **kwargs)
            self._fuse.burn()
            return result

        return and_burn
