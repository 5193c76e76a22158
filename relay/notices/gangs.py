"""Tells of pods that gangs should hold and do not, and of those held by mistake: by an Event on each workload.

| a pod                                                                    | its workload is told             |
|--------------------------------------------------------------------------|----------------------------------|
| leads a claim of a gang, was just made, and has no gate                  | `GangNotHeld`: what to add       |
| had the gate, and is of no gang                                          | `NotInGang`: why it was let go   |

There is one Event of each for a workload, renewed every `AGAIN_AFTER` at most; of a workload whose UID no pod says, it
is on the pod. No fact comes of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from queue import Empty, Full, Queue
from typing import Any, Protocol

import structlog

from relay.events import unserved
from relay.objects import JobPod, Reference
from tpu_slices.domain.model.gangs import GANG
from tpu_slices.domain.model.reasons import OwnerReason
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent

_log = structlog.get_logger()

AGAIN_AFTER = timedelta(minutes=30)
MOST = 1_000
"""Of notices that wait; others are left out, as the first of a workload says what all would."""
LOOK_EVERY = 1.0

NOT_HELD = (
    "its pods start as slices come, and not together: nothing holds them until all slices of the gang stand. Have the "
    "operator of the cluster apply infra/kubernetes/admission.yaml, or add to the pod template "
    f"spec.schedulingGates: [{{name: {GANG}}}]"
)


@dataclass(frozen=True, slots=True)
class Notice:
    """What is told about a pod."""

    reason: OwnerReason
    pod: JobPod
    message: str


class Cluster(Protocol):
    """Single calls, as in `relay.cluster.Cluster`."""

    def renew(self, event: Mapping[str, Any]) -> None: ...


class GangsTold:
    """Tells in a thread of its own; `tell` may be called by any other, and never waits."""

    def __init__(self, cluster: Cluster, now: Callable[[], datetime]) -> None:
        self._cluster, self._now = cluster, now
        self._notices: Queue[Notice] = Queue(MOST)
        self._told: dict[tuple[Reference, OwnerReason], datetime] = {}
        self._stopping = threading.Event()

    def tell(self, notice: Notice) -> None:
        try:
            self._notices.put_nowait(notice)
        except Full:
            return

    def run(self) -> None:
        """Write what is to be told until `stop` is called."""
        while not self._stopping.wait(LOOK_EVERY):
            self.look()

    def stop(self) -> None:
        self._stopping.set()

    def look(self) -> None:
        """Write what waits to be told."""
        now = self._now()
        self._told = {about: at for about, at in self._told.items() if now - at < AGAIN_AFTER}
        while True:
            try:
                self._tell(self._notices.get_nowait(), now)
            except Empty:
                return

    def _tell(self, notice: Notice, now: datetime) -> None:
        owner = owner_of(notice.pod)
        if (owner, notice.reason) in self._told:
            return
        self._told[owner, notice.reason] = now
        event, about = unserved(owner, notice.reason, notice.message, now, now), f"{owner.namespace}/{owner.name}"
        try:
            self._cluster.renew(event)
        except (Temporary, Permanent) as trouble:
            _log.debug(LogEvent.GANG_TELL_FAILED, owner=about, error=str(trouble))
            del self._told[owner, notice.reason]
        else:
            _log.info(LogEvent.GANG_TOLD, owner=about, reason=notice.reason, message=notice.message)


def owner_of(pod: JobPod) -> Reference:
    """Return the workload of a pod, or the pod itself if that does not say which of this name it is."""
    name, kind = pod.workload, pod.workload.kind
    if pod.workload_uid is None:
        return Reference("v1", "Pod", name.namespace, pod.pod, pod.pod_uid)
    return Reference(kind.api_version, kind.value, name.namespace, name.name, pod.workload_uid)
