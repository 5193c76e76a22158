"""One round trip through every part, for `slices doctor`: each one leaves a mark in `heartbeats`.

    ask -> questions-{cluster} -> relay -> facts-{cluster} -> receive -> requests-{cluster} -> reconcile
    ask -> updates-{cluster}   -> relay -> facts-{cluster} -> receive

The sweep is asked for an inventory check, which lists the cluster's node pools in GKE. Nothing is created or deleted by
any of this.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial

from tpu_slices.domain.model.facts import Echo
from tpu_slices.domain.model.questions import EchoQuestion
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.records.heartbeats import RelayHeartbeat, RoundTrip
from tpu_slices.flows.heartbeats import change_heartbeat
from tpu_slices.flows.retrying import retry_on_conflict
from tpu_slices.ports.deps import IntakeDeps


def ask(cluster: ClusterId, deps: IntakeDeps) -> datetime:
    """Begin a round trip, and make the inventory check due; return its `asked_at`."""

    def due(known: RelayHeartbeat, _: datetime) -> RelayHeartbeat:
        return replace(known, next_inventory_check_at=None)

    asked_at = deps.clock.now()
    retry_on_conflict(partial(change_heartbeat, due, cluster, deps), deps.clock)
    deps.publisher.ask(cluster, [EchoQuestion(asked_at=asked_at)])
    deps.publisher.try_updates(cluster, asked_at)
    return asked_at


def echo_received(echo: Echo, cluster: ClusterId, deps: IntakeDeps) -> None:
    """Record that the relay's answer was received, and send it on, unless the question came by `updates-{cluster}`."""
    if echo.by_updates:
        change_heartbeat(lambda known, _: replace(known, updates_tried_at=echo.asked_at), cluster, deps)
        return

    def received(known: RelayHeartbeat, now: datetime) -> RelayHeartbeat:
        trip = RoundTrip(asked_at=echo.asked_at, answered_at=echo.at, received_at=now)
        return replace(known, round_trip=trip)

    change_heartbeat(received, cluster, deps)
    deps.publisher.request_echo(cluster, echo.asked_at)


def echo_reconciled(asked_at: datetime, cluster: ClusterId, deps: IntakeDeps) -> None:
    """Record that the answer came to reconcile, unless another round trip began since."""

    def reconciled(known: RelayHeartbeat, now: datetime) -> RelayHeartbeat:
        trip = known.round_trip
        if trip is None or trip.asked_at != asked_at:
            return known
        return replace(known, round_trip=replace(trip, reconciled_at=now))

    retry_on_conflict(partial(change_heartbeat, reconciled, cluster, deps), deps.clock)
