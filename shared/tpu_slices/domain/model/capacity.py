"""How long a cluster, or a namespace, keeps capacity that nobody uses at the moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class Across(StrEnum):
    """Who may get a slice that is kept warm."""

    WORKLOAD = "workload"  # the next Jobs of the same workload
    NAMESPACE = "namespace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Warm:
    """How long slices that are let go are kept for the next claim that fits, and how many."""

    lasts: timedelta
    """No time: none is kept."""
    most_chips: int | None = None
    """Of all that this setting keeps, together; None: no limit."""
    most_usd_an_hour: float | None = None
    """The same of their price by list; None: no limit."""
    across: Across = Across.NAMESPACE


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceSettings:
    """What is otherwise for the workloads of a namespace than for all of its cluster."""

    warm: Warm | None = None
    """In place of the cluster's, as a whole; None: the cluster's counts."""
