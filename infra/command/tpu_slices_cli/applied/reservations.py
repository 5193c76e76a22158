"""What is on record of the reservations in which the slices of a plan would be made. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from tpu_slices.domain.capacity.reservations import outlasts, room_for, state_at
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.slices import Owner, RungSpec, SliceSpec, WorkloadJob
from tpu_slices.domain.model.texts import clock
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.domain.records.limiters import CapacityPool
from tpu_slices.domain.records.queues import capacity_pool_of
from tpu_slices.domain.records.reservations import Reservation

PlannedSlice = tuple[WorkloadJob, SliceSpec | Refusal, ClusterSettings]
_Key = tuple[Owner, str, int, CapacityPool, int, timedelta | None]
"""A replicatedJob of a workload, the hosts of a slice of it, a capacity pool, the number of the rung (0: none), and how
long a Job runs."""


def reservations_in(
    slices: Iterable[PlannedSlice], known: Mapping[CapacityPool, Reservation], now: datetime
) -> tuple[Mapping[str, Any], ...]:
    """Return, in JSON, each known reservation that slices of a workload would be made in, with what it has for them."""
    wanted: dict[_Key, int] = {}
    for job, spec, _ in slices:
        if isinstance(spec, Refusal):
            continue
        for number, pool in _pools(spec):
            key = (job.owner, job.replicated_job, spec.hosts, pool, number, spec.expected)
            wanted[key] = wanted.get(key, 0) + 1
    return tuple(_as_json(key, count, known[key[3]], now) for key, count in wanted.items() if key[3] in known)


def lines_of(reservations: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what people read of reservations."""
    for each in reservations:
        whose = f", replicatedJob {each['replicated_job']}" if each["replicated_job"] else ""
        rung = f", rung {each['rung']}" if each["rung"] else ""
        yield f"{each['kind']} {each['name']}{whose}{rung}: {each['message']} Seen at {each['seen']}."


def _pools(spec: SliceSpec) -> Iterator[tuple[int, CapacityPool]]:
    """Yield the pools of the reservations that a slice may be made in, with the numbers of their rungs."""
    rungs = (
        enumerate(spec.rungs, 1) if spec.rungs else [(0, RungSpec(place="", zone=spec.zone, capacity=spec.capacity))]
    )
    for number, rung in rungs:
        if rung.capacity.reservation and not rung.against:
            yield number, capacity_pool_of(replace(spec, zone=rung.zone, capacity=rung.capacity))


def _as_json(key: _Key, slices: int, known: Reservation, now: datetime) -> Mapping[str, Any]:
    owner, replicated_job, hosts, _, rung, expected = key
    seen, late = known.seen, outlasts(known, expected, now)
    return {
        "kind": owner.kind.value,
        "name": owner.name,
        "namespace": owner.namespace,
        "replicated_job": replicated_job,
        "rung": rung or None,
        "reservation": known.place.name,
        "project": known.place.project,
        "zone": known.place.zone,
        "state": state_at(known, now).value,
        "hosts": seen.count,
        "free_hosts": seen.free,
        "needed_hosts": slices * hosts,
        "starts_at": seen.starts_at.isoformat() if seen.starts_at else None,
        "ends_at": seen.ends_at.isoformat() if seen.ends_at else None,
        "seen_at": known.seen_at.isoformat(),
        "seen": clock(known.seen_at, now),
        "message": f"{room_for(known, hosts, slices, now)} {late + '.' if late else ''}".rstrip(),
    }
