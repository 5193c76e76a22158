"""Hands a bootstrap token on to the hosts that it is for. It is stored nowhere: one that is lost is asked for again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.joining import JoinToken
from tpu_slices.domain.model.observations import Outcome, Refused
from tpu_slices.domain.model.slices import ClaimId, ClusterId, slice_id
from tpu_slices.domain.model.texts import shortened
from tpu_slices.domain.reconciling.joining import awaits
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows.orders import order_of
from tpu_slices.flows.retrying import retry_on_conflict
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.errors import Permanent
from tpu_slices.ports.store import Change, Names, Stored


@dataclass(frozen=True, slots=True)
class HandedOn:
    """What became of a token, logged as one line."""

    cluster: ClusterId
    slice_id: ClaimId
    attempt: int
    outcome: Outcome | None
    """None: its hosts do not wait for it any more."""


def hand_on(token: JoinToken, cluster: ClusterId, deps: ReconcileDeps) -> HandedOn:
    """Hand a token on to the hosts of its pool if they still wait for it. Permanent: unknown cluster.

    The slice's record says since when they have it, or why they cannot be given it: then it is asked for again soon.
    """
    return retry_on_conflict(lambda: _hand_on(token, cluster, deps), deps.clock)


def _hand_on(token: JoinToken, cluster: ClusterId, deps: ReconcileDeps) -> HandedOn:
    id_ = slice_id(token.slice_id, token.attempt)
    read = deps.store.together(cluster, Names(settings=True, slices=[id_]))
    if read.settings is None:
        raise Permanent(f'no settings for cluster "{cluster}": write clusters/{cluster}')
    stored, now = read.slices.get(id_), deps.clock.now()
    if stored is None or not awaits(stored.value, token, now, read.settings):
        return HandedOn(cluster, token.slice_id, token.attempt, None)
    outcome = deps.backend.join(order_of(stored.value, read.settings), token)
    _note(stored, outcome, now, read.settings, deps)
    return HandedOn(cluster, token.slice_id, token.attempt, outcome)


def _note(
    stored: Stored[SliceRecord], outcome: Outcome, now: datetime, settings: ClusterSettings, deps: ReconcileDeps
) -> None:
    """Save that the hosts were given a token, or why they could not be, if that is news."""
    record = stored.value
    failure = shortened(outcome.failure.message) if isinstance(outcome, Refused) else ""
    asked = record.join_asked
    if asked is None or (asked.failure == failure and (failure or asked.handed_on_at)):
        return
    again_at = now + settings.limits.requeue_after
    after = replace(
        record,
        join_asked=replace(asked, failure=failure, handed_on_at=None if failure else now),
        next_reconcile_at=min(record.next_reconcile_at or again_at, again_at),
    )
    deps.store.commit(Change(stored, after))
