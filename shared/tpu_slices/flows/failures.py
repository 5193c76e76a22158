"""Keeps the errors of one part of a sweep from its other parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.ports.errors import Permanent, Temporary

T = TypeVar("T")
D = TypeVar("D")


@dataclass(frozen=True, slots=True)
class Failure:
    """An error that ended one part of a sweep."""

    cluster: ClusterId | None
    """None: it concerns no cluster in particular."""
    error: Exception
    about: str = ""
    """What was not done; empty: the cluster was not swept to the end."""

    @property
    def is_bug(self) -> bool:
        """Return whether no adapter or flow foresees such an error."""
        return not isinstance(self.error, Temporary | Permanent)

    def __str__(self) -> str:
        error = repr(self.error) if self.is_bug else str(self.error)
        return ": ".join(part for part in (self.cluster, self.about, error) if part)


@dataclass(slots=True)
class Failures:
    """The failures of a sweep so far."""

    found: list[Failure] = field(default_factory=list)

    def attempt(self, cluster: ClusterId | None, step: Callable[[], T], otherwise: D, about: str = "") -> T | D:
        """Return the result of the step; if it raises, whatever that is, keep the error and return `otherwise`."""
        try:
            return step()
        except Exception as error:  # noqa: BLE001 - a bug that one cluster's data brings out is that cluster's, too
            self.found.append(Failure(cluster, error, about))
            return otherwise
