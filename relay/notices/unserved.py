"""Tells the owners of pods that request TPU chips, and get no slice from here, why: with restraint.

| a pod that cannot be scheduled                                      | is told of                                    |
|---------------------------------------------------------------------|-----------------------------------------------|
| is of a JobSet, has opted out, or selects hosts that GKE provisions | never (`unserved_pod.unserved`)               |
| claims chips as devices (DRA), of whatever kind                     | that no slice is made for claims              |
| is of a Job or LeaderWorkerSet that is served                       | in the reports of that workload               |
| is one for which the cluster autoscaler adds nodes                  | not before it had `HELP_WITHIN` to do so      |
| every other                                                         | after `TOLD_AFTER`, by an Event on its owner  |

The Event has what `slices plan` says of the owner; there is one for all its pods, renewed while they wait. The owner of
a ReplicaSet's pods is what controls the ReplicaSet. What cannot be looked up is not told. No fact comes of any of this.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from queue import Empty, Queue
from typing import Any, Protocol

import structlog

from relay.events import not_served
from relay.health import Health
from relay.objects import (
    Aside,
    Bookmarked,
    Delivery,
    Failed,
    Listed,
    Lost,
    Reference,
    Saw,
    Ticked,
    UnservedPod,
)
from relay.translate import controller_of
from tpu_slices.domain.model.slices import Owner, OwnerKind, WorkloadUid
from tpu_slices.domain.model.vendors import GKE, Vendor
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.wire.readers import READERS
from tpu_slices.wire.tpu_objects import Controller, why_none_for

_log = structlog.get_logger()
Json = Mapping[str, Any]
PodEvent = Delivery[Aside, UnservedPod]

TOLD_AFTER = timedelta(minutes=5)
AGAIN_AFTER = timedelta(minutes=30)
"""The API server keeps an Event for an hour after its last change, by default."""
HELP_WITHIN = timedelta(minutes=30)
"""Twice the time that the cluster autoscaler waits for a node, by default (--max-node-provision-time)."""
ROUND_SECONDS = 10.0
MOST_EVENTS = 1_000

_REPLICA_SET = ("apps/v1", "ReplicaSet")
_SERVED = {(kind.api_version, kind.value): kind for kind in (OwnerKind.JOB, OwnerKind.LEADER_WORKER_SET)}


class Cluster(Protocol):
    """Single calls, as in `relay.cluster.Cluster`."""

    def workload(self, owner: Owner) -> Json | None: ...

    def replica_set(self, namespace: str, name: str) -> Json | None: ...

    def scale_ups(self, namespace: str) -> Sequence[Json]: ...

    def renew(self, event: Json) -> None: ...


@dataclass(frozen=True, slots=True)
class Waiting:
    """Pods of one owner that wait, and since when the first of them does."""

    owner: Reference
    pods: frozenset[str]
    since: datetime
    why: str = ""
    """Why they get no slice, whatever their owner is; empty: that says it."""


class UnservedPods:
    """The pods that wait, by UID, and when their owners are looked at. Pure."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[UnservedPod, datetime]] = {}
        self._not_before: dict[Reference, datetime] = {}

    def saw(self, pod: UnservedPod, now: datetime) -> None:
        self._since.setdefault(pod.identity, (pod, now))

    def listed(self, pods: Iterable[UnservedPod], now: datetime) -> None:
        """Record all pods that wait; others do not any more."""
        there = {pod.identity: pod for pod in pods}
        self._since = {uid: each for uid, each in self._since.items() if uid in there}
        for pod in there.values():
            self.saw(pod, now)

    def lost(self, uid: str) -> None:
        self._since.pop(uid, None)

    def defer(self, owner: Reference, until: datetime) -> None:
        self._not_before[owner] = until

    def due(self, now: datetime) -> list[Waiting]:
        """Return whose pods have waited for long; owners without any are forgotten."""
        pods: defaultdict[Reference, dict[str, datetime]] = defaultdict(dict)
        why: dict[Reference, str] = {}
        for uid, (pod, since) in self._since.items():
            pods[pod.owner][uid] = since
            why[pod.owner] = pod.why
        self._not_before = {owner: time for owner, time in self._not_before.items() if owner in pods}
        return [
            Waiting(owner, frozenset(each), min(each.values()), why[owner])
            for owner, each in pods.items()
            if min(each.values()) + TOLD_AFTER <= now and self._not_before.get(owner, now) <= now
        ]


class OwnersTold:
    """Owns the pods in the thread of `run`; `now` runs evenly, and shows the time of day."""

    def __init__(self, cluster: Cluster, now: Callable[[], datetime], health: Health, vendor: Vendor = GKE) -> None:
        self._cluster = cluster
        self._now = now
        self._health = health
        self._vendor = vendor
        self._events: Queue[PodEvent] = Queue(MOST_EVENTS)
        self._pods = UnservedPods()
        self._current = False
        self._stopping = threading.Event()

    def put(self, event: PodEvent) -> None:
        """Put what the watch delivers on the queue; wait while it is full."""
        self._events.put(event)

    def run(self) -> None:
        """Handle what the watch delivers until `stop` is called; look every `ROUND_SECONDS` whom to tell."""
        looked = self._now()
        while not self._stopping.is_set():
            self.take(ROUND_SECONDS)
            if (self._now() - looked).total_seconds() >= ROUND_SECONDS:
                looked = self._now()
                self.look()

    def stop(self) -> None:
        self._stopping.set()

    def take(self, at_most: float = 0.0) -> None:
        """Handle the events that wait, the first of them for at most so many seconds."""
        self._health.ticked("owners")
        try:
            self._take(self._events.get(timeout=at_most) if at_most else self._events.get_nowait())
            for _ in range(self._events.qsize()):
                self._take(self._events.get_nowait())
        except Empty:
            return

    def look(self) -> None:
        """Post an Event for whoever is due; nobody while the watch is interrupted, as pods may have nodes by now."""
        for waiting in self._pods.due(self._now()) if self._current else ():
            self._health.ticked("owners")
            self._pods.defer(waiting.owner, self._now() + self._tell(waiting))

    def _take(self, event: PodEvent) -> None:
        self._health.ticked(event.kind)
        now = self._now()
        if not isinstance(event, Ticked):
            self._current = not isinstance(event, Failed)
        match event:
            case Listed(seen=listed):
                self._pods.listed((each for each in listed if isinstance(each, UnservedPod)), now)
            case Saw(seen=UnservedPod() as pod):
                self._pods.saw(pod, now)
            case Lost(identity=uid):
                self._pods.lost(uid)
            case Saw() | Bookmarked() | Ticked() | Failed():  # a pod that cannot be parsed stays what it was
                return

    def _tell(self, waiting: Waiting) -> timedelta:
        """Return when to look at an owner again, after it was told, unless it is served or helped."""
        try:
            owner, why = self._why(waiting)
            if not why or is_helped(waiting.pods, self._cluster.scale_ups(owner.namespace), self._now()):
                return TOLD_AFTER
            self._cluster.renew(not_served(owner, why, self._now(), waiting.since))
        except (Temporary, Permanent) as trouble:
            _log.debug(LogEvent.OWNER_UNKNOWN, owner=text_of(waiting.owner), error=str(trouble))
            return TOLD_AFTER
        _log.info(LogEvent.OWNER_TOLD, owner=text_of(owner), message=why)
        return AGAIN_AFTER

    def _why(self, waiting: Waiting) -> tuple[Reference, str]:
        """Return who is told, and why its pods get no slice; empty if they may get one, or if it is gone."""
        owner = waiting.owner
        if (owner.api_version, owner.kind) == _REPLICA_SET:
            replicas = self._cluster.replica_set(owner.namespace, owner.name)
            owner = (replicas and controller_of(replicas["metadata"])) or owner
        kind = _SERVED.get((owner.api_version, owner.kind))
        if kind is None:
            group, slash, _ = owner.api_version.partition("/")
            controller = Controller(group if slash else "", owner.kind, owner.name, indexed=False)
            return owner, waiting.why or why_none_for(controller, self._vendor)
        asked = Owner(kind=kind, namespace=owner.namespace, name=owner.name, uid=WorkloadUid(owner.uid))
        workload = self._cluster.workload(asked)
        if workload is None:
            return owner, ""
        return replace(owner, uid=workload["metadata"]["uid"]), waiting.why or why_not(kind, workload)


def why_not(kind: OwnerKind, workload: Json) -> str:
    """Return why a workload gets no slices; empty if it may get some, wants none, or cannot be parsed."""
    reader = READERS[kind]
    try:
        return reader.not_ours(workload) if reader.is_served(workload) else ""
    except ValueError:
        return ""


def is_helped(pods: frozenset[str], scale_ups: Iterable[Json], now: datetime) -> bool:
    """Return whether the cluster autoscaler said lately that it adds nodes for one of these pods, by UID."""
    times = (_last(event) for event in scale_ups if event["involvedObject"].get("uid") in pods)
    return any(now - time < HELP_WITHIN for time in times)


def _last(event: Json) -> datetime:
    series = event.get("series") or {}
    said = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return datetime.fromisoformat(next(filter(None, said), event["metadata"]["creationTimestamp"]))


def text_of(owner: Reference) -> str:
    return f"{owner.kind} {owner.namespace}/{owner.name}"
