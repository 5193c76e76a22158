"""What the functions say to the cluster: news become Events, questions are answered from the API server."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Protocol

import structlog

from relay.events import event, summary
from relay.message_log import about
from relay.objects import JobSetName, Leader
from tpu_slices.adapters.subscription import Delivery
from tpu_slices.domain.model.facts import Answer, Fact, Heartbeat, Question, WorkloadRef, WorkloadState
from tpu_slices.domain.model.slices import ClusterId, Owner, WorkloadJob, WorkloadUid
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.ports.publisher import SliceUpdate, WorkloadUpdate
from tpu_slices.wire.jobsets import jobset_ref, jobset_state
from tpu_slices.wire.messages import decode_update

_log = structlog.get_logger()


REMEMBERED = 10_000
"""JobSets of which it is known when they were last reported on."""


class Cluster(Protocol):
    """Single calls to the API server; Temporary and Permanent as `relay.cluster.Cluster`."""

    def jobset(self, name: JobSetName) -> Mapping[str, Any] | None: ...

    def post(self, event: Mapping[str, Any]) -> None: ...

    def renew(self, event: Mapping[str, Any]) -> None: ...


class ClusterView(Protocol):
    """What the relay sees of the cluster."""

    def everything(self) -> Heartbeat | None: ...

    def leader_pod(self, job: WorkloadJob) -> Leader | None: ...


class Inbox:
    """Serves the messages of one cluster's subscription to `slice-updates`."""

    def __init__(
        self, cluster_id: ClusterId, cluster: Cluster, view: ClusterView, post: Callable[[list[Fact]], None]
    ) -> None:
        self._cluster_id = cluster_id
        self._cluster = cluster
        self._view = view
        self._post = post
        self._renewed_at: OrderedDict[WorkloadUid, datetime] = OrderedDict()
        self._lock = threading.Lock()

    def handle(self, delivery: Delivery) -> None:
        """Serve one delivery, and acknowledge it unless it should come back."""
        try:
            self._serve(delivery)
        except Temporary as trouble:
            _log.warning(LogEvent.MESSAGE_REDELIVERED, id=delivery.message_id, error=str(trouble))
            delivery.nack()
        except Permanent as parse_error:
            _log.error(LogEvent.MESSAGE_REJECTED, id=delivery.message_id, error=str(parse_error))
            delivery.ack()
        else:
            delivery.ack()
            _log.info(LogEvent.MESSAGE_HANDLED, id=delivery.message_id, **about(delivery.attributes))

    def _is_news(self, update: WorkloadUpdate) -> bool:
        """Say whether no newer report on the JobSet came before this one: messages come late, and again."""
        with self._lock:
            last = self._renewed_at.get(update.owner.uid)
            if last is not None and update.at < last:
                return False
            self._renewed_at[update.owner.uid] = update.at
            self._renewed_at.move_to_end(update.owner.uid)
            if len(self._renewed_at) > REMEMBERED:
                self._renewed_at.popitem(last=False)
            return True

    def _serve(self, delivery: Delivery) -> None:
        if delivery.attributes.get("cluster") != self._cluster_id:
            return
        match decode_update(delivery.data, delivery.attributes):
            case SliceUpdate() as update:
                self._cluster.post(event(update, self._view.leader_pod(update.job)))
            case WorkloadUpdate() as update if self._is_news(update):
                self._cluster.renew(summary(update))
            case WorkloadUpdate():
                return
            case Question(owner=Owner() as owner):
                self._post([answer(owner, self._cluster)])
            case Question():
                heartbeat = self._view.everything()
                self._post([heartbeat] if heartbeat else [])


def answer(owner: Owner, cluster: Cluster) -> Answer:
    """Say what the API server itself knows of a JobSet: our own picture may be late, and a pool hangs on it."""
    found = cluster.jobset(JobSetName(owner.namespace, owner.name))
    if found is None or found["metadata"]["uid"] != owner.uid:
        gone = WorkloadRef(owner=owner, generation=0, resource_version="")
        return Answer(workload=gone, state=WorkloadState.MISSING)
    try:
        return Answer(workload=jobset_ref(found), state=jobset_state(found))
    except (KeyError, TypeError, ValueError, AttributeError) as unreadable:
        raise Permanent(f"the {owner.kind} {owner.full_name} cannot be understood: {unreadable!r}") from unreadable
