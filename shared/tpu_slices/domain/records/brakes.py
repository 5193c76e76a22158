"""The document `brakes/{cluster}`: the releases that were stopped. `reconciling.brake` says when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Self

from tpu_slices.domain.model.slices import ClusterId

WINDOW = timedelta(minutes=10)
"""Within it unconfirmed ends are counted."""
_KEPT_FOR = timedelta(days=1)
"""How long it is kept that an operator confirmed the ends in a namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnconfirmedEnd:
    """That the workload is missing, of which nobody confirmed that it was deleted: see `reconciling.brake`."""

    found_at: datetime
    """When that was found of a slice that has a pool."""
    counted: bool
    """Whether it counts for the cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """That releases were stopped, in a namespace or in the whole cluster."""

    since: datetime
    """Ends that were found since then are stopped."""
    stopped_at: datetime
    ended: int
    """How many slices had lost their workloads within WINDOW."""
    live: int
    """How many others were READY then."""
    chips: int
    """How many chips stood then: while releases are stopped, nothing is bought beyond them."""
    confirmed_at: datetime | None = None
    """When an operator last confirmed the ends up to then; None: they never did."""

    @property
    def is_on(self) -> bool:
        return self.confirmed_at is None or self.confirmed_at < self.stopped_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Brake:
    """The document `brakes/{cluster}`: when releases were stopped last, in the whole cluster and in its namespaces."""

    cluster: ClusterId
    whole: Stop | None = None
    namespaces: Mapping[str, Stop] = field(default_factory=dict)

    @classmethod
    def released(cls, cluster: ClusterId) -> Self:
        """Return the brake that a cluster begins with."""
        return cls(cluster=cluster)

    def of(self, namespace: str | None) -> Stop | None:
        """Return the last stop in a namespace; None: in the whole cluster."""
        return self.whole if namespace is None else self.namespaces.get(namespace)

    def on(self, namespace: str | None) -> Stop | None:
        """Return the stop in a namespace, or in the whole cluster, that nobody confirmed."""
        stop = self.of(namespace)
        return stop if stop is not None and stop.is_on else None

    def stops(self, namespace: str) -> bool:
        """Return whether releases, and purchases beyond what stood, are stopped in a namespace."""
        return self.on(namespace) is not None or self.on(None) is not None

    def counted_since(self, namespace: str | None, now: datetime) -> datetime:
        """Return since when ends count in a namespace, or in the whole cluster: ends that an operator confirmed do not.

        In the cluster they begin anew with each confirmation: one namespace alone, confirmed or not, stops no other.
        """
        stops = [self.whole, *(self.namespaces.values() if namespace is None else [self.of(namespace)])]
        confirmed = [stop.confirmed_at for stop in stops if stop is not None and stop.confirmed_at is not None]
        since: datetime = max([now - WINDOW, *confirmed])
        return since

    def pulled(self, namespace: str | None, stop: Stop) -> Self:
        """Return the brake with another stop."""
        last = self.of(namespace)
        stop = replace(stop, confirmed_at=last.confirmed_at if last else None)
        return replace(self, whole=stop) if namespace is None else self._with(namespace, stop)

    def confirmed(self, namespace: str | None, now: datetime) -> Self:
        """Return the brake once an operator confirmed the ends in a namespace; None: all of them."""
        if namespace is not None:
            own = self.of(namespace) or self.whole
            return self if own is None else self._with(namespace, replace(own, confirmed_at=now))
        ended = {name: replace(stop, confirmed_at=now) for name, stop in self.namespaces.items()}
        return replace(self, whole=self.whole and replace(self.whole, confirmed_at=now), namespaces=ended)

    def _with(self, namespace: str, stop: Stop) -> Self:
        """Return the brake with the stop of a namespace, and without stops that an operator confirmed long ago."""
        stops, long_ago = {**self.namespaces, namespace: stop}, (stop.confirmed_at or stop.stopped_at) - _KEPT_FOR
        kept = {name: it for name, it in stops.items() if it.is_on or (it.confirmed_at or it.since) > long_ago}
        return replace(self, namespaces=stops if self.on(None) else kept)
