"""What the functions send to the cluster: updates become Events, questions are answered."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import structlog

from relay.answers import Asked, Workloads, answers
from relay.events import event, over, summary
from relay.joining.tokens import Bootstrap, Tokens
from relay.messages import about
from relay.node_groups.writer import Groups, NodeGroupWriter
from relay.objects import Leader
from tpu_slices.adapters.subscription import Delivery
from tpu_slices.domain.model.facts import Fact
from tpu_slices.domain.model.node_groups import NodesGone
from tpu_slices.domain.model.slices import ClaimId, ClusterId, WorkloadJob, WorkloadUid
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.ports.publisher import (
    AnyMirror,
    MirrorChanged,
    MirrorConfirmed,
    MirrorListed,
    NodeGroupUpdate,
    SliceUpdate,
    WorkloadUpdate,
)
from tpu_slices.wire.messages import decode_update

_log = structlog.get_logger()


REMEMBERED = 10_000
"""The most workloads for which it is kept which report came last, and the most messages that were handled."""


class Cluster(Workloads, Groups, Bootstrap, Protocol):
    """Single calls to the API server; they raise Temporary and Permanent as `relay.cluster.Cluster` does."""

    def post(self, event: Mapping[str, Any]) -> None: ...

    def renew(self, event: Mapping[str, Any]) -> None: ...


class ClusterView(Asked, Protocol):
    def leader_pod(self, job: WorkloadJob) -> Leader | None: ...

    def lacks_chips(self, slice_id: ClaimId) -> bool: ...


@dataclass(slots=True)
class _Told:
    """What was written of a workload's reports: the number and time of the last, and until when the one before was."""

    count: int
    at: datetime
    ended: datetime | None


class Inbox:
    """Handles the messages of one cluster's topics `updates-{cluster}` and `questions-{cluster}`."""

    def __init__(
        self,
        cluster_id: ClusterId,
        cluster: Cluster,
        view: ClusterView,
        post: Callable[[list[Fact]], None],
        now: Callable[[], datetime],
    ) -> None:
        self._cluster_id = cluster_id
        self._cluster = cluster
        self._view = view
        self._post = post
        self._now = now
        self._tokens = Tokens(cluster, now)
        self._groups = NodeGroupWriter(cluster, view.lacks_chips)
        self.forgets_nodes = False
        """Whether Node objects of pools that are gone are deleted: in a self-managed cluster."""
        self.mirror: Callable[[AnyMirror], None] = lambda _: None
        """Takes what the mirror is to show."""
        self._last_reports: OrderedDict[WorkloadUid, _Told] = OrderedDict()
        self._handled: OrderedDict[tuple[str, str], None] = OrderedDict()
        """The messages that were handled last, by kind and id: an id is unique within a topic, a kind comes by one.

        Only an EchoQuestion comes by two, with an attribute that tells them apart.
        """
        self._lock = threading.Lock()

    def handle(self, delivery: Delivery) -> None:
        """Handle one delivery; acknowledge it unless Pub/Sub should deliver it again.

        One that was handled already comes again if it waited here for longer than it was leased: the more of these
        there are, the longer the others wait, and are delivered again. So it costs nothing.
        """
        attributes = delivery.attributes
        message = (f"{attributes.get('kind', '')} {attributes.get('by', '')}", delivery.message_id)
        if self._was_handled(message):
            delivery.ack()
            return
        try:
            self._serve(delivery)
        except Temporary as trouble:
            _log.warning(LogEvent.MESSAGE_REDELIVERED, id=delivery.message_id, error=str(trouble))
            delivery.nack()
        except Permanent as error:
            _log.error(LogEvent.MESSAGE_REJECTED, id=delivery.message_id, error=str(error))
            delivery.ack()
        else:
            delivery.ack()
            self._remember(message)
            _log.info(LogEvent.MESSAGE_HANDLED, id=delivery.message_id, **about(delivery.attributes))

    def _was_handled(self, message: tuple[str, str]) -> bool:
        with self._lock:
            return message in self._handled

    def _remember(self, message: tuple[str, str]) -> None:
        with self._lock:
            self._handled[message] = None
            if len(self._handled) > REMEMBERED:
                self._handled.popitem(last=False)

    def _report(self, update: WorkloadUpdate) -> None:
        """Write a report, and that the one of the reason before is over, unless that was written or a newer one is."""
        told = self._told(update)
        if told is None:
            return
        ended = update.ended.until if update.ended is not None else None
        if ended is not None and ended != told.ended and (event_ := over(update)) is not None:
            self._cluster.renew(event_)
        told.ended = ended
        self._cluster.renew(summary(update))

    def _told(self, update: WorkloadUpdate) -> _Told | None:
        """Return what was told of a workload, with this report as the last; None: a newer one came first.

        Messages may be late or repeated.
        """
        with self._lock:
            told = self._last_reports.get(update.owner.uid)
            if told is not None and update.came_late(told.count, told.at):
                return None
            ended = told.ended if told is not None else None
            self._last_reports[update.owner.uid] = told = _Told(update.count, update.at, ended)
            self._last_reports.move_to_end(update.owner.uid)
            if len(self._last_reports) > REMEMBERED:
                self._last_reports.popitem(last=False)
            return told

    def _serve(self, delivery: Delivery) -> None:
        if (cluster := delivery.attributes.get("cluster")) != self._cluster_id:
            raise Permanent(f'cluster: "{cluster}" is not that of the subscription, {self._cluster_id}')
        match decode_update(delivery.data, delivery.attributes):
            case NodeGroupUpdate() as update:
                self._groups.write(update)
            case SliceUpdate() as update if update.job.owner.kind.declares:
                return  # the status of its object tells
            case SliceUpdate() as update:
                self._cluster.post(event(update, self._view.leader_pod(update.job)))
            case WorkloadUpdate() as update:
                self._report(update)
            case MirrorChanged() | MirrorListed() | MirrorConfirmed() as told:
                self.mirror(told)
            case NodesGone() as gone:
                if self.forgets_nodes:
                    self._groups.forget_nodes(gone)
            case question:
                self._post([*answers(question, self._view, self._cluster, self._tokens, self._now())])
