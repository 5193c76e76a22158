"""The brake: if many slices lose their workloads at once and nobody confirms that, they are kept until somebody does.

A relay that errs, that talks to another API server, or to one that lost its objects, must not delete a cluster's slices
within minutes. Pure.

| an end                                                                    | is                                   |
|---------------------------------------------------------------------------|--------------------------------------|
| DELETED: the API server said of this very object that it deletes it, at a | confirmed: released without a brake  |
| resourceVersion beyond the last one on record                             |                                      |
| COMPLETED, FAILED, or suspended: the object itself says so                | the same                             |
| MISSING: a list or an answer lacks it, which is all that an API server    | counted, if the slice has a pool,    |
| can say that never had it, or lost it                                     | and stopped if there are too many    |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Self

from tpu_slices.domain.model.ends import UnconfirmedEnd
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.records import SliceRecord
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.model.workloads import WorkloadRecord
from tpu_slices.domain.planning.policy import Held

WINDOW = timedelta(minutes=10)
MOST = 10
"""Within WINDOW so many slices may lose their workloads unconfirmed, or a fifth of all that stand, if that is more."""
_KEPT_FOR = timedelta(days=1)
"""How long it is kept that an operator confirmed the ends in a namespace."""


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

    def counted_since(self, namespace: str | None, now: datetime) -> datetime:
        """Return since when ends count in a namespace, or in the whole cluster: those that were confirmed do not.

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
        """Return the brake with the stop of a namespace; those that were confirmed long ago are forgotten."""
        stops, long_ago = {**self.namespaces, namespace: stop}, (stop.confirmed_at or stop.stopped_at) - _KEPT_FOR
        kept = {name: it for name, it in stops.items() if it.is_on or (it.confirmed_at or it.since) > long_ago}
        return replace(self, namespaces=stops if self.on(None) else kept)

    def messages(self, namespace: str | None = None) -> Iterator[str]:
        """Yield what is stopped: in a namespace, or in all of them and the whole cluster."""
        of = [None, namespace] if namespace is not None else [None, *sorted(self.namespaces)]
        yield from (self._kept(each, stop) for each in of if (stop := self.on(each)) is not None)

    def stopped(self, namespace: str, found_at: datetime) -> str | None:
        """Return why a slice is kept whose end was found then; None: it is not."""
        own, whole = self.of(namespace), self.on(None)
        if own is not None and own.is_on and found_at >= own.since:
            return self._kept(namespace, own)
        confirmed = own is not None and own.confirmed_at is not None and own.confirmed_at >= found_at
        return self._kept(None, whole) if whole is not None and found_at >= whole.since and not confirmed else None

    def limited(self, namespace: str, chips: int, held: Held) -> str | None:
        """Return why a slice of so many chips is not bought, beside those that others hold; None: it may be."""
        for scope, holds in ((namespace, held.in_namespace), (None, held.in_cluster)):
            stop = self.on(scope)
            if stop is not None and holds + chips > stop.chips:
                where = self._named(scope)
                return (
                    f"Releases in {where} are stopped, and nothing is bought beyond the {stop.chips} chips that stood "
                    f"at {stop.stopped_at:%H:%M} UTC: {holds} are held, and this slice has {chips}. It is created once "
                    f"others release chips, or an operator ran `{self._command(scope)}`."
                )
        return None

    def _kept(self, namespace: str | None, stop: Stop) -> str:
        minutes = f"{WINDOW.total_seconds() / 60:.0f} minutes"
        return (
            f"{stop.ended} of {stop.ended + stop.live} slices in {self._named(namespace)} had lost their workloads "
            f"by {stop.stopped_at:%H:%M} UTC, within {minutes}, and the API server reported no deletion of these: what "
            f"has lost them is kept until an operator runs `{self._command(namespace)}`"
        )

    def _named(self, namespace: str | None) -> str:
        return f"the cluster {self.cluster}" if namespace is None else f"the namespace {namespace}"

    def _command(self, namespace: str | None) -> str:
        scope = "" if namespace is None else f" --namespace {namespace}"
        return f"slices confirm-deletions --cluster {self.cluster}{scope}"


def found(record: SliceRecord, own: WorkloadRecord | None, now: datetime, brake: Brake | None) -> UnconfirmedEnd | None:
    """Return the end of a slice that nobody confirmed, if it has a pool; None: there is none, or somebody confirmed it.

    It counts for the cluster unless the releases of its namespace are stopped: one namespace alone stops no other.
    """
    if own is None or own.state is not WorkloadState.MISSING or record.release_requested:
        return None
    if record.unconfirmed_end is not None:
        return record.unconfirmed_end
    stands = record.create_requested_at is not None or record.terminating
    own_stop = brake.on(record.owner.namespace) if brake else None
    return UnconfirmedEnd(found_at=now, counted=own_stop is None) if stands else None


def too_many(ended: int, live: int) -> bool:
    """Return whether so many ends within WINDOW stop releases; `live`: the slices that are READY beside them."""
    return ended > max(MOST, (live + ended) // 5)


def enough(ended: int) -> int:
    """Return how many READY slices are enough for so many ends not to be too many."""
    return 4 * ended
