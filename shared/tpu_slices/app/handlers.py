"""The handlers of receive, reconcile and sweep: each opens a message, runs its flow, logs the result, answers errors.

| error          | recorded                     | effect on the message                            |
|----------------|------------------------------|--------------------------------------------------|
| Permanent      | in `rejected/`, logged       | acknowledged: it can never succeed               |
| Temporary      | logged                       | redelivered, in the end to the dead-letter topic |
| anything else  | logged with its stack trace  | the same: a bug must not pass unnoticed          |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime

import structlog

from tpu_slices.app.secrets import redacted
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.observations import Refused
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import ClusterId, slice_id
from tpu_slices.domain.reconciling.outcomes import cancellation_refused
from tpu_slices.domain.records.rejected import RejectedMessage
from tpu_slices.domain.reporting.reason_texts import PODS_REFUSED, relay_silence
from tpu_slices.flows.heartbeats import RelaySilence
from tpu_slices.flows.joining import HandedOn, hand_on
from tpu_slices.flows.looking import Told
from tpu_slices.flows.outcomes import Reconciled
from tpu_slices.flows.receive import receive
from tpu_slices.flows.reconcile import reconcile_in_turn
from tpu_slices.flows.report import Reported
from tpu_slices.flows.round_trip import echo_reconciled
from tpu_slices.flows.sweep import Swept, forgotten, sweep
from tpu_slices.ports.deps import IntakeDeps, ReconcileDeps
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.wire import reports
from tpu_slices.wire.bounds import ERROR_CHARACTERS
from tpu_slices.wire.envelopes import Incoming, incoming
from tpu_slices.wire.messages import (
    AnyRequest,
    EchoRequest,
    JoinRequest,
    ReconcileRequest,
    about,
    about_owner,
    decode_fact,
    decode_reconcile_request,
)
from tpu_slices.wire.operations import EndedOperation, ended_operation
from tpu_slices.wire.topics import OPERATIONS, PROJECT_TICKS, Topic

log = structlog.stdlib.get_logger()

ID_LOGGED = 100  # characters
MOST_NAMED = 20
"""Pools in one line of the log."""


@dataclass(frozen=True, slots=True)
class Event:
    """The part of a CloudEvent that the handlers read."""

    id: str
    source: str
    data: object


def handle_receive(event: Event, deps: IntakeDeps) -> None:
    """Record a fact of the topic `facts-{cluster}`."""

    def serve(message: Incoming) -> None:
        cluster = Topic.FACTS.cluster(message.topic)
        fact = decode_fact(message.data, message.attributes)
        decided = receive(fact, cluster, deps, message.published_at)
        log.info(LogEvent.FACT_RECEIVED, kind=type(fact).__name__, cluster=cluster, **about(fact))
        _log_decision(decided)

    _answer(event, serve, deps)


def handle_reconcile(event: Event, deps: ReconcileDeps) -> None:
    """Reconcile the slice of a reconcile request, or the one whose operation ended according to an audit log."""

    def serve(message: Incoming) -> None:
        if message.topic == OPERATIONS:
            if (ended := ended_operation(message.data)) is not None:
                _follow(ended, deps)
            return
        match _request(message):
            case ReconcileRequest(cluster, slice_, answer, waiting, has_ended):
                told = Told(ended=has_ended, answer=answer, waiting=waiting, slots=waiting is not None)
                _log_each(reconcile_in_turn(cluster, slice_, deps, told))
            case EchoRequest(cluster, asked_at):
                echo_reconciled(asked_at, cluster, deps)
            case JoinRequest(cluster, token):
                _log_joining(hand_on(token, cluster, deps))

    _answer(event, serve, deps)


def handle_sweep(event: Event, deps: ReconcileDeps) -> None:
    """Sweep the cluster of the topic `ticks-{cluster}`, or look for what is of none; the tick's content is not read.

    What fails in a sweep is logged and counted, and the tick is acknowledged: the next one is a minute away.
    """

    def serve(message: Incoming) -> None:
        if message.topic == PROJECT_TICKS:
            _log_search(forgotten(deps))
        else:
            _log_sweep(sweep(Topic.TICKS.cluster(message.topic), deps), deps.clock.now())

    _answer(event, serve, deps)


def _request(message: Incoming) -> AnyRequest:
    """Return the request of a message; Permanent: it came by the topic of another cluster than it is about."""
    own = Topic.REQUESTS.cluster(message.topic)
    request = decode_reconcile_request(message.data, message.attributes)
    if request.cluster != own:
        raise Permanent(f'cluster: "{request.cluster}" is not that of the topic {message.topic}')
    return request


def _follow(ended: EndedOperation, deps: ReconcileDeps) -> None:
    for settings in _clusters_of(ended, deps):
        created = ended.operation if ended.created else None
        told = Told(settings, ended=True, created=created, slots=True)
        _log_each(reconcile_in_turn(settings.cluster, slice_id(ended.slice_id, ended.attempt), deps, told))


def _clusters_of(ended: EndedOperation, deps: ReconcileDeps) -> Iterable[ClusterSettings]:
    """Return the settings of each cluster that an operation may be of: only one of them has a record of the slice."""
    if ended.cluster_path is not None:
        return deps.store.settings_at(ended.cluster_path)
    known = (_settings(cluster, deps) for cluster in deps.store.clusters())
    return [settings for settings in known if settings is not None and ended.may_be_of(settings)]


def _settings(cluster: ClusterId, deps: ReconcileDeps) -> ClusterSettings | None:
    """Return the settings of one cluster of many; None: they cannot be read, of which its sweep tells."""
    with suppress(Permanent):
        return deps.store.settings(cluster)
    return None


def _log_search(found: Mapping[ClusterId, int]) -> None:
    log.info(LogEvent.CLUSTERS_SEARCHED, forgotten=len(found))
    for cluster, slices in found.items():
        log.error(LogEvent.SETTINGS_MISSING, cluster=cluster, slices=slices)


def _log_sweep(swept: Swept, now: datetime) -> None:
    cluster = swept.cluster
    if not swept.is_known:
        log.warning(LogEvent.SWEEP_SKIPPED, cluster=cluster)
    log.info(
        LogEvent.SWEEP_COMPLETED,
        cluster=cluster,
        requested=swept.requested,
        asked=swept.asked,
        adopted=swept.recovered,
        failed=len(swept.failures),
    )
    if (count := swept.count) is not None:
        named = {"paid_slice": count.paid_slice} if count.paid_slice else {}
        log.info(LogEvent.CLUSTER_COUNTED, cluster=cluster, **count.numbers, **named)
    if (found := swept.checked) is not None:
        counts = {"orphans": found.orphans, "ownerless": found.ownerless}
        log.info(LogEvent.INVENTORY_CHECKED, cluster=cluster, complete=found.complete, **counts)
        if found.unproven:
            log.error(LogEvent.POOLS_UNPROVEN, cluster=cluster, pools=list(found.unproven[:MOST_NAMED]))
        if found.left_out:
            log.error(LogEvent.ORPHANS_DEFERRED, cluster=cluster, left_out=found.left_out)
    for reported in swept.reported:
        _log_report(reported)
    if swept.silence is not None:
        _log_silence(swept.silence, now)
    if swept.refuses:
        log.error(LogEvent.PODS_REFUSED, cluster=cluster, message=PODS_REFUSED)
    for failure in swept.failures:
        bug = failure.error if failure.is_bug else None
        log.error(LogEvent.SWEEP_FAILED, cluster=failure.cluster, error=str(failure), exc_info=bug)


def _log_each(done: Iterable[Reconciled]) -> None:
    for each in done:
        _log_decision(each)


def _log_decision(done: Reconciled | None) -> None:
    if done is None:
        return
    if done.reported is not None:
        _log_report(done.reported)
    record, decision = done.after, done.decision
    log.info(
        LogEvent.SLICE_DECIDED,
        cluster=record.cluster,
        slice=record.name,
        **about_owner(record.owner),
        reason=decision.reason,
        message=decision.message,
        phase=record.phase,
        phase_before=done.before.phase,
        attempt=record.attempt,
        operation=record.current.operation,
        actions=[f"{type(action).__name__} {action.attempt}" for action in decision.actions],
        **({} if done.ready_after is None else {"ready_seconds": done.ready_after.total_seconds()}),
    )
    if decision.reason is Reason.RELEASES_STOPPED is not done.before.reason:
        about_it = {"cluster": record.cluster, "namespace": record.owner.namespace, "slice": record.name}
        log.error(LogEvent.RELEASES_STOPPED, **about_it, message=decision.message)
    if cancellation_refused(done.before, record):
        place = {"cluster": record.cluster, "slice": record.name}
        log.warning(LogEvent.CANCELLATION_REFUSED, **place, attempt=record.attempt, error=record.current.cancel_refused)
    before, now = done.before.current.returning, record.current.returning
    if now is not None and now.late and not (before is not None and before.late):
        log.error(
            LogEvent.HOSTS_LATE, cluster=record.cluster, slice=record.name, cause=now.cause, message=record.message
        )


def _log_joining(done: HandedOn) -> None:
    about = {"cluster": done.cluster, "slice": done.slice_id, "attempt": done.attempt}
    match done.outcome:
        case None:
            log.info(LogEvent.JOIN_DROPPED, **about)
        case Refused(failure):
            log.warning(LogEvent.JOIN_REFUSED, **about, error=failure.message)
        case _:
            log.info(LogEvent.JOIN_HANDED_ON, **about)


def _log_silence(silence: RelaySilence, now: datetime) -> None:
    about = {"cluster": silence.cluster, "since": silence.since.isoformat()}
    if silence.over:
        log.info(LogEvent.RELAY_HEARD, **about)
    else:
        log.error(LogEvent.RELAY_SILENT, **about, message=relay_silence(silence.since, now))


def _log_report(reported: Reported) -> None:
    workload, report = reported.workload, reported.report
    log.info(
        LogEvent.WORKLOAD_REPORTED,
        cluster=workload.cluster,
        **about_owner(workload.owner),
        **reports.document(report),
    )


def _answer(event: Event, serve: Callable[[Incoming], None], deps: IntakeDeps) -> None:
    message: Incoming | None = None
    with (
        structlog.contextvars.bound_contextvars(event_id=event.id[:ID_LOGGED]),
        _rejecting(event, deps, lambda: message),
    ):
        message = incoming(event.source, event.data)
        waited = deps.clock.now() - message.published_at
        with structlog.contextvars.bound_contextvars(waited_seconds=waited.total_seconds()):
            serve(message)


@contextmanager
def _rejecting(event: Event, deps: IntakeDeps, message: Callable[[], Incoming | None]) -> Iterator[None]:
    try:
        yield
    except Permanent as permanent:
        opened = message()
        data = opened.data.decode(errors="replace") if opened else repr(event.data)
        deps.store.reject(
            RejectedMessage(
                message_id=event.id,
                source=event.source,
                rejected_at=deps.clock.now(),
                error=redacted(str(permanent)),
                data=redacted(data),
            )
        )
        log.error(LogEvent.MESSAGE_REJECTED, error=redacted(str(permanent))[:ERROR_CHARACTERS])  # noqa: TRY400 - not a bug
    except Temporary as temporary:
        log.warning(LogEvent.MESSAGE_REDELIVERED, error=str(temporary))
        raise
    except Exception:
        log.exception(LogEvent.MESSAGE_FAILED)
        raise
