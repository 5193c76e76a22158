"""Facts as messages: the parts that fit into one each, and the log lines of those that were published and handled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import structlog

from relay.objects import Workload
from tpu_slices.domain.model.facts import (
    Family,
    Heartbeat,
    Listed,
    Pinning,
    SliceDeclared,
    WaitingLeader,
    WorkloadChanged,
    WorkloadState,
)
from tpu_slices.domain.model.gangs import Gating
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.wire.bounds import KEYS_PER_PART, LEADERS_PER_FACT
from tpu_slices.wire.messages import Message, bytes_of

_log = structlog.get_logger()

LEADERS_BYTES = 250_000
"""The bytes of a message that `tpu_slices.wire.workloads` leaves for leaders; each one of them takes less."""
_ABOUT = ("kind", "owner_kind", "owner", "owner_uid", "slice")
_UNLOGGED = {"Heartbeat"}


def state_of(workload: Workload) -> WorkloadChanged | SliceDeclared:
    """Return what is told of a workload beside its demand; of a TPUNodeGroup that stands, that is its demand."""
    if workload.group is not None and workload.parse_error is None and workload.state is WorkloadState.ACTIVE:
        return SliceDeclared(workload=workload.ref, group=workload.group)
    return WorkloadChanged(
        workload=workload.ref,
        state=workload.state,
        queue=workload.queue,
        template_error=workload.parse_error or "",
        notify=workload.notify,
        unserved=workload.unserved,
    )


def beat_of(
    count: int, digests: Mapping[Family, int], pinning: Pinning | None, gating: Gating | None, mirrored: int | None
) -> Heartbeat:
    """Return a heartbeat of this relay, which can hand hosts on to other namespaces."""
    seen = Heartbeat(count=count, digests=digests, pinning=pinning, gating=gating, mirrored=mirrored)
    return replace(seen, hands_across=True)


def end_of(last: Workload, deleted_at: str | None) -> WorkloadChanged:
    """Return how a workload ended that is gone: by its own end, which may not have been told yet, or it was deleted.

    `deleted_at`: the version at which the API server said so; None: it did not, and the workload is missing.
    """
    state = WorkloadState.MISSING if deleted_at is None else WorkloadState.DELETED
    ref = replace(last.ref, resource_version=deleted_at or last.ref.resource_version)
    return WorkloadChanged(workload=ref, state=last.state if last.state.ended else state, notify=last.notify)


def parts_of(leaders: Iterable[WaitingLeader]) -> Iterator[tuple[WaitingLeader, ...]]:
    """Yield leaders, in their order, in parts that fit into a fact each; no part is empty."""
    part: list[WaitingLeader] = []
    room = LEADERS_BYTES
    for leader in leaders:
        takes = bytes_of(leader)
        if part and (takes > room or len(part) == LEADERS_PER_FACT):
            yield tuple(part)
            part, room = [], LEADERS_BYTES
        part.append(leader)
        room -= takes
    if part:
        yield tuple(part)


def list_of(family: Family, digests: Mapping[str, int], asked_at: datetime, sequence: int) -> tuple[Listed, ...]:
    """Return the list of a family in parts whose ranges cover every key there can be."""
    keys = sorted(digests)
    starts = range(0, max(1, len(keys)), KEYS_PER_PART)
    ranges = [(start, keys[start : start + KEYS_PER_PART]) for start in starts]
    return tuple(
        Listed(
            family=family,
            asked_at=asked_at,
            after=keys[start - 1] if start else None,
            up_to=within[-1] if start + KEYS_PER_PART < len(keys) else None,
            digests={key: digests[key] for key in within},
            part=part,
            parts=len(ranges),
            sequence=sequence,
        )
        for part, (start, within) in enumerate(ranges)
    )


def noted(send: Callable[[Sequence[Message]], None]) -> Callable[[Sequence[Message]], None]:
    """Return a function that sends as `send` does, and logs each message that was accepted, except heartbeats."""

    def send_and_log(messages: Sequence[Message]) -> None:
        send(messages)
        for message in messages:
            if message.attributes["kind"] not in _UNLOGGED:
                _log.info(LogEvent.FACT_PUBLISHED, **about(message.attributes))

    return send_and_log


def about(attributes: Mapping[str, str]) -> Mapping[str, str]:
    """Return those attributes of a message that name what it is about."""
    return {name: attributes[name] for name in _ABOUT if name in attributes}
