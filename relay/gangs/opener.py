"""Removes the scheduling gate of gangs from pods: of each workload those that may start, as its owner said last."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import chain, islice, zip_longest
from typing import Protocol

import structlog

from relay.agenda import rising_pause
from relay.health import Health
from relay.objects import JobPod, WorkloadName
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent

_log = structlog.get_logger()

AT_ONCE = 8
RETRY_AFTER = timedelta(seconds=10)
"""How long a patch that was accepted may have no effect: the watch shows whether it was applied."""
LOOK_EVERY = 1.0
NEVER = datetime.min.replace(tzinfo=UTC)


class Pods(Protocol):
    """As `relay.cluster.Cluster`: raises Temporary or Permanent if the API server refuses."""

    def open_pod(self, namespace: str, name: str, uid: str) -> None: ...


class Opener:
    """Opens `AT_ONCE` pods at a time, of each workload in turn; where that failed, one at a time after a pause."""

    def __init__(self, pods: Pods, now: Callable[[], datetime], health: Health, look_every: float = LOOK_EVERY) -> None:
        self._pods, self._now, self._health, self._look_every = pods, now, health, look_every
        self._wanted: dict[WorkloadName, Sequence[JobPod]] = {}
        self._tried: dict[str, datetime] = {}
        self._failures: dict[WorkloadName, tuple[int, datetime]] = {}
        self._changed = threading.Condition()
        self._stopping = False

    def want(self, name: WorkloadName, pods: Sequence[JobPod]) -> None:
        """Have these pods of a workload opened, and no others that are not opened yet. May be called by any thread."""
        with self._changed:
            if pods:
                self._wanted[name] = pods
                self._changed.notify_all()
            elif self._wanted.pop(name, None) is not None:
                self._failures.pop(name, None)

    def run(self) -> None:
        """Open pods until `stop` is called."""
        with ThreadPoolExecutor(AT_ONCE) as threads:
            while not self._stopping:
                self._health.ticked("gates")
                self.look(threads)

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def look(self, threads: ThreadPoolExecutor) -> None:
        """Open the first pods that are due; wait for some, if there are none."""
        with self._changed:
            if not (due := self._due()):
                self._changed.wait(self._look_every)
                due = self._due()
        for each, trouble in zip(due, threads.map(self._open, due), strict=True):
            self._record(each, trouble)

    def _due(self) -> list[JobPod]:
        """Return the pods whose turn it is, and record that they are tried."""
        now = self._now()
        wanted = {each.pod_uid for pods in self._wanted.values() for each in pods}
        self._tried = {uid: at for uid, at in self._tried.items() if uid in wanted}
        of_each = (self._due_of(name, pods, now) for name, pods in self._wanted.items())
        in_turn = chain.from_iterable(zip_longest(*of_each))
        due = [*islice((each for each in in_turn if each is not None), AT_ONCE)]
        self._tried |= {each.pod_uid: now for each in due}
        return due

    def _due_of(self, name: WorkloadName, pods: Sequence[JobPod], now: datetime) -> Iterable[JobPod]:
        failures, paused_until = self._failures.get(name, (0, now))
        if now < paused_until:
            return ()
        due = (each for each in pods if now - self._last_try(each) >= RETRY_AFTER)
        return sorted(due, key=self._last_try)[:1] if failures else islice(due, AT_ONCE)

    def _last_try(self, pod: JobPod) -> datetime:
        return self._tried.get(pod.pod_uid, NEVER)

    def _open(self, pod: JobPod) -> str:
        """Open a pod; return why it could not be opened, empty if it was."""
        try:
            self._pods.open_pod(pod.workload.namespace, pod.pod, pod.pod_uid)
        except (Temporary, Permanent) as trouble:
            return str(trouble)
        return ""

    def _record(self, pod: JobPod, trouble: str) -> None:
        name, now = pod.workload, self._now()
        with self._changed:
            if not trouble:
                self._failures.pop(name, None)
                return
            self._tried[pod.pod_uid] = now - RETRY_AFTER
            failures, paused_until = self._failures.get(name, (0, now))
            if now >= paused_until:  # else it failed beside another one
                self._failures[name] = (failures + 1, now + timedelta(seconds=rising_pause(1.0, failures)))
        if not failures:
            owner = f"{name.namespace}/{name.name}"
            _log.warning(LogEvent.GANG_OPEN_FAILED, owner=owner, pod=pod.pod, error=trouble)
