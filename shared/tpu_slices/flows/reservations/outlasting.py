"""Tells a Job, before its slice is bought, that the reservation ends before the Job is done."""

from __future__ import annotations

from tpu_slices.domain.capacity.reservations import outlasts
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.records.limiters import ConcurrencyLimiter
from tpu_slices.domain.records.queues import capacity_pool_of
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.transitions import Transition
from tpu_slices.flows import slots
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.publisher import SliceUpdate

_NUMBER = 9_999
"""Where the Events of an end have the minutes before it."""


def tell_if_it_outlasts(
    record: SliceRecord, limiter: ConcurrencyLimiter | None, settings: ClusterSettings, deps: ReconcileDeps
) -> None:
    """Announce it to a Job whose workload says how long it runs, if the end of its reservation is known.

    The limiter is read only then. Whoever tells it twice tells it under the same name.
    """
    spec, now = record.spec, deps.clock.now()
    if spec is None or spec.expected is None or not spec.capacity.reservation:
        return
    limiter = limiter or slots.limiter_of(deps.store.limiter(settings.cluster), settings, now)
    known = limiter.reservations.get(capacity_pool_of(spec))
    told = outlasts(known, spec.expected, now) if known is not None else ""
    if known is None or known.seen.ends_at is None or not told:
        return
    said = Transition(at=now, phase=record.phase, reason=Reason.RESERVATION_ENDS, message=f"{told}.")
    number = int(known.seen.ends_at.timestamp()) // 60 * 10_000 + _NUMBER
    update = SliceUpdate(
        job=record.job, slice_id=record.last_claim, pool=record.pool, transition_number=number, transition=said
    )
    deps.publisher.announce(settings.cluster, [update])
