"""Behind the three doors: a message is opened, its flow run, one line logged, and every error answered.

| error          | recorded                | answer to Pub/Sub                  |
|----------------|-------------------------|------------------------------------|
| Permanent      | in `rejected/`, logged  | acknowledged: it can never succeed |
| Temporary      | logged                  | comes back, later a dead letter    |
| anything else  | logged with its trace   | comes back: a bug must be loud     |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from tpu_slices.domain.model.slices import ClusterId, SliceId
from tpu_slices.flows.receive import receive
from tpu_slices.flows.reconcile import Reconciled, reconcile
from tpu_slices.flows.report import Reported
from tpu_slices.flows.sweep import sweep
from tpu_slices.ports.deps import Desk, Ports
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.store import Rejection
from tpu_slices.wire import reports
from tpu_slices.wire.envelopes import Incoming, cluster_of, incoming
from tpu_slices.wire.messages import decode_fact, decode_nudge
from tpu_slices.wire.operations import ended_operation

log = structlog.stdlib.get_logger()

OPERATIONS_TOPIC = "cloud-operations"
ABOUT = ("jobset", "jobset_uid", "slice")
BODY_KEPT = 2000  # characters of a rejected message


@dataclass(frozen=True, slots=True)
class Event:
    """A CloudEvent, as much of it as the doors read."""

    id: str
    source: str
    data: object


def receive_door(event: Event, desk: Desk) -> None:
    """Take in a fact of the topic `facts-{cluster}`."""

    def serve(message: Incoming) -> None:
        cluster = cluster_of(message.topic)
        fact = decode_fact(message.data, message.attributes)
        receive(fact, cluster, desk)
        about = {key: message.attributes[key] for key in ABOUT if key in message.attributes}
        log.info("fact.received", kind=type(fact).__name__, cluster=cluster, **about)

    _answer(event, serve, desk)


def reconcile_door(event: Event, ports: Ports) -> None:
    """Look at the slices of a nudge, or at the one whose operation Cloud Logging says has ended."""

    def serve(message: Incoming) -> None:
        for cluster, slice_ in _named_slices(message, ports):
            done = reconcile(cluster, slice_, ports)
            if done is not None:
                _log_decision(done)

    _answer(event, serve, ports)


def sweep_door(event: Event, ports: Ports) -> None:
    """Sweep, whatever the tick says."""

    def serve(_: Incoming) -> None:
        swept = sweep(ports)
        log.info("sweep.done", nudged=swept.nudged, asked=swept.asked, adopted=swept.adopted)
        for reported in swept.reported:
            _log_report(reported)
        if swept.left_out:
            log.error("sweep.too_many_orphans", left_out=swept.left_out)
        for failure in swept.failures:
            log.error("sweep.failed", why=failure)

    _answer(event, serve, ports)


def _named_slices(message: Incoming, ports: Ports) -> Iterator[tuple[ClusterId, SliceId]]:
    if message.topic != OPERATIONS_TOPIC:
        nudge = decode_nudge(message.data, message.attributes)
        yield nudge.cluster, nudge.slice_id
        return
    ended = ended_operation(message.data)
    if ended is None:
        return
    for cluster in ports.store.clusters():
        settings = ports.store.settings(cluster)
        if settings is not None and settings.path == ended.cluster_path:
            yield cluster, ended.slice_id


def _log_decision(done: Reconciled) -> None:
    record, decision = done.after, done.decision
    log.info(
        "slice.decided",
        cluster=record.job.cluster,
        slice=record.id,
        jobset=f"{record.job.namespace}/{record.job.jobset}",
        jobset_uid=record.job.uid,
        reason=decision.reason,
        sentence=decision.sentence,
        phase=record.phase,
        phase_before=done.before.phase,
        attempt=record.attempt,
        operation=record.operation,
        actions=[f"{type(action).__name__} {action.attempt}" for action in decision.actions],
    )


def _log_report(reported: Reported) -> None:
    jobset, report = reported.jobset, reported.report
    log.info(
        "jobset.reported",
        cluster=jobset.cluster,
        jobset=f"{jobset.namespace}/{jobset.name}",
        jobset_uid=jobset.uid,
        **reports.document(report),
    )


def _answer(event: Event, serve: Callable[[Incoming], None], desk: Desk) -> None:
    message: Incoming | None = None
    with structlog.contextvars.bound_contextvars(event_id=event.id), _rejecting(event, desk, lambda: message):
        message = incoming(event.source, event.data)
        serve(message)


@contextmanager
def _rejecting(event: Event, desk: Desk, message: Callable[[], Incoming | None]) -> Iterator[None]:
    try:
        yield
    except Permanent as never:
        opened = message()
        body = opened.data.decode(errors="replace") if opened else repr(event.data)
        desk.store.reject(
            Rejection(message=event.id, source=event.source, at=desk.clock.now(), why=str(never), body=body[:BODY_KEPT])
        )
        log.error("message.rejected", why=str(never))  # noqa: TRY400 - a sentence for people, not a trace
    except Temporary as again:
        log.warning("message.comes_back", why=str(again))
        raise
    except Exception:
        log.exception("message.failed")
        raise
