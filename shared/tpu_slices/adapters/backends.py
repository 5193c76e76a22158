"""The backend of each cluster: GKE, or Compute Engine where it is self-managed; and what reads reservations."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.joining import JoinToken
from tpu_slices.domain.model.observations import LegacyPool, Observation, OperationSeen, Outcome, PoolSeen
from tpu_slices.domain.records.reservations import ReservationPlace, ReservationSeen, ReservationState
from tpu_slices.ports.backend import Backend, PoolOrder
from tpu_slices.ports.reservations import ReservationReader


class Backends:
    """Both backends as one.

    That of Compute Engine is made once a self-managed cluster is met: its client takes long to load.
    """

    def __init__(self, gke: Callable[[], Backend], compute: Callable[[], Backend]) -> None:
        self._make_gke = gke
        self._make_compute = compute

    def look(self, order: PoolOrder) -> Observation:
        return self._of(order).look(order)

    def create(self, order: PoolOrder) -> Outcome:
        return self._of(order).create(order)

    def delete(self, order: PoolOrder) -> Outcome:
        return self._of(order).delete(order)

    def delete_remains(self, order: PoolOrder) -> Outcome:
        return self._of(order).delete_remains(order)

    def cancel(self, order: PoolOrder) -> Outcome:
        return self._of(order).cancel(order)

    def relabel(self, order: PoolOrder) -> Outcome:
        return self._of(order).relabel(order)

    def join(self, order: PoolOrder, token: JoinToken | None) -> Outcome:
        return self._of(order).join(order, token)

    def inventory(self, cluster: ClusterSettings) -> tuple[PoolSeen, ...]:
        return self._in(cluster).inventory(cluster)

    def legacy_pools(self, cluster: ClusterSettings) -> tuple[LegacyPool, ...]:
        return self._in(cluster).legacy_pools(cluster)

    def pool_operations(self, cluster: ClusterSettings) -> frozenset[OperationSeen]:
        return self._in(cluster).pool_operations(cluster)

    def _of(self, order: PoolOrder) -> Backend:
        return self._gke if order.settings.compute is None else self._compute

    def _in(self, cluster: ClusterSettings) -> Backend:
        return self._compute if cluster.self_managed else self._gke

    @cached_property
    def _gke(self) -> Backend:
        return self._make_gke()

    @cached_property
    def _compute(self) -> Backend:
        return self._make_compute()


class LazyReservations:
    """What reads reservations, made once one is met; nothing can be read where there is no Compute Engine."""

    def __init__(self, make: Callable[[], ReservationReader | None]) -> None:
        self._make = make

    def read(self, place: ReservationPlace) -> ReservationSeen:
        if self._reader is None:
            return ReservationSeen(state=ReservationState.UNREADABLE, detail="there is no Compute Engine here")
        return self._reader.read(place)

    @cached_property
    def _reader(self) -> ReservationReader | None:
        return self._make()
