"""Tells the owners of pods that request TPU chips, and get no slice from here, why: with restraint.

| a pod that is not scheduled                                         | is told of                                    |
|---------------------------------------------------------------------|-----------------------------------------------|
| has opted out, or selects hosts that GKE provisions                 | never (`unserved_pod.unserved`)               |
| claims chips as devices (DRA), of whatever kind                     | that no slice is made for claims              |
| is kept by a PodGroup from being tried, for a minute                | what it waits for (`relay.pod_groups`)        |
| is held by the scheduling gate of gangs for a minute, and can be of | that; and the gate is taken off               |
| none                                                                |                                               |
| else is of a workload that is served                                | in the reports of that workload               |
| is one for which the cluster autoscaler adds nodes                  | not before it had `HELP_WITHIN` to do so      |
| every other                                                         | after `TOLD_AFTER`, by an Event on its owner  |

The Event has what `slices plan` says of the owner; there is one for all its pods, renewed while they wait. The owner of
a ReplicaSet's pods is what controls the ReplicaSet. What cannot be looked up is not told. No fact comes of any of this.

Pods of JobSets are many, and are left out of the watch of pods without nodes. Their leaders are watched for facts, and
say as much: all pods of a Job are made of one template. Each round looks at those; the API server is asked for nothing.
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

from relay.events import unserved
from relay.health import Health
from relay.notices.unserved_pod import UnservedPod, unserved_leader
from relay.objects import (
    Aside,
    Bookmarked,
    Delivery,
    Failed,
    Leader,
    Listed,
    Lost,
    Reference,
    Saw,
    Ticked,
)
from relay.translate import controller_of
from tpu_slices.domain.model.gangs import GANG
from tpu_slices.domain.model.reasons import OwnerReason
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
UNTRIED_FOR = timedelta(minutes=1)
"""How long a pod of a PodGroup has to be untried until that is told: nobody makes nodes for it meanwhile."""
AGAIN_AFTER = timedelta(minutes=30)
"""The API server keeps an Event for an hour after its last change, by default."""
HELD_FOR = timedelta(minutes=1)
"""How long the gate of gangs holds a pod that no gang will ever let go."""
HELP_WITHIN = timedelta(minutes=30)
"""Twice the time that the cluster autoscaler waits for a node, by default (--max-node-provision-time)."""
ROUND_SECONDS = 10.0
MOST_EVENTS = 1_000

_REPLICA_SET = ("apps/v1", "ReplicaSet")
_SERVED = {
    (kind.api_version, kind.value): kind
    for kind in set(OwnerKind) - {OwnerKind.TPU_NODE_GROUP, OwnerKind.POD, OwnerKind.SPARE}
}
"""The kinds of which an object itself says whether it is served: a pod has said so when its owner is told."""
_WHAT = {OwnerReason.NOT_SERVED: "gets no slice", OwnerReason.AWAITING_POD_GROUP: "waits"}
_PATIENCE = {OwnerReason.AWAITING_POD_GROUP: UNTRIED_FOR, OwnerReason.NOT_IN_GANG: HELD_FOR}
"""How long pods have to wait until their owner is told, by the reason; `TOLD_AFTER` else."""
NO_GANG = f"its pods are of no gang, as no slices are made for them: the scheduling gate {GANG} is taken off such pods"
_Told = tuple[Reference, OwnerReason]


class Cluster(Protocol):
    """Single calls, as in `relay.cluster.Cluster`."""

    def workload(self, owner: Owner) -> Json | None: ...

    def replica_set(self, namespace: str, name: str) -> Json | None: ...

    def scale_ups(self, namespace: str) -> Sequence[Json]: ...

    def renew(self, event: Json) -> None: ...

    def open_pod(self, namespace: str, name: str, uid: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Waiting:
    """Pods of one owner that wait, and since when the first of them does."""

    owner: Reference
    reason: OwnerReason
    pods: frozenset[str]
    since: datetime
    why: frozenset[tuple[str, str]]
    """The replicatedJobs that they are of, empty if of none, each with why; that is empty if the owner says it."""
    held: frozenset[tuple[str, str]] = frozenset()
    """The names and UIDs of those that the scheduling gate of gangs holds."""


class UnservedPods:
    """The pods that wait, by UID, and when their owners are looked at. Pure."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[UnservedPod, datetime]] = {}
        self._not_before: dict[_Told, datetime] = {}

    def saw(self, pod: UnservedPod, now: datetime) -> None:
        _, since = self._since.get(pod.identity, (pod, now))
        self._since[pod.identity] = pod, since

    def listed(self, pods: Iterable[UnservedPod], now: datetime) -> None:
        """Record all pods that wait; others do not any more."""
        there = {pod.identity: pod for pod in pods}
        self._since = {uid: each for uid, each in self._since.items() if uid in there}
        for pod in there.values():
            self.saw(pod, now)

    def lost(self, uid: str) -> None:
        self._since.pop(uid, None)

    def defer(self, waiting: Waiting, until: datetime) -> None:
        self._not_before[waiting.owner, waiting.reason] = until

    def due(self, now: datetime) -> list[Waiting]:
        """Return whose pods have waited for long; owners without any are forgotten."""
        found: defaultdict[_Told, list[tuple[UnservedPod, datetime]]] = defaultdict(list)
        for pod, since in self._since.values():
            found[pod.owner, pod.unserved.reason if pod.unserved else OwnerReason.NOT_SERVED].append((pod, since))
        self._not_before = {told: time for told, time in self._not_before.items() if told in found}
        waiting = (_waiting(*told, pods) for told, pods in found.items() if self._not_before.get(told, now) <= now)
        return [each for each in waiting if each.since + _PATIENCE.get(each.reason, TOLD_AFTER) <= now]


def _waiting(owner: Reference, reason: OwnerReason, pods: Sequence[tuple[UnservedPod, datetime]]) -> Waiting:
    why = {(pod.replicated_job, pod.unserved.why if pod.unserved else "") for pod, _ in pods}
    uids, since = frozenset(pod.identity for pod, _ in pods), min(since for _, since in pods)
    held = frozenset((pod.held, pod.identity) for pod, _ in pods if pod.held)
    return Waiting(owner, reason, uids, since, frozenset(why), held)


class OwnersTold:
    """Owns the pods in the thread of `run`; `now` runs evenly, and shows the time of day.

    `leaders`: returns those that say themselves why they are unserved, None while that is not known; may fail with
    Temporary.
    """

    def __init__(
        self,
        cluster: Cluster,
        now: Callable[[], datetime],
        health: Health,
        leaders: Callable[[], Iterable[Leader] | None],
        vendor: Vendor = GKE,
    ) -> None:
        self._cluster = cluster
        self._now = now
        self._health = health
        self._leaders = leaders
        self._vendor = vendor
        self._events: Queue[PodEvent] = Queue(MOST_EVENTS)
        self._pods = UnservedPods()
        self._led = UnservedPods()
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
        for pods in (*([self._pods] if self._current else ()), *([self._led] if self._look_at_leaders() else ())):
            for waiting in pods.due(self._now()):
                self._health.ticked("owners")
                pods.defer(waiting, self._now() + self._tell(waiting))

    def _look_at_leaders(self) -> bool:
        """Return whether it is known which leaders are unserved."""
        try:
            leaders = self._leaders()
        except Temporary:
            return False
        if leaders is not None:
            self._led.listed(filter(None, map(unserved_leader, leaders)), self._now())
        return leaders is not None

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
        if waiting.reason is OwnerReason.NOT_IN_GANG:
            return self._let_go(waiting)
        try:
            owner, message = self._message(waiting)
            if not message or is_helped(waiting.pods, self._cluster.scale_ups(owner.namespace), self._now()):
                return TOLD_AFTER
            self._cluster.renew(unserved(owner, waiting.reason, message, self._now(), waiting.since))
        except (Temporary, Permanent) as trouble:
            _log.debug(LogEvent.OWNER_UNKNOWN, owner=text_of(waiting.owner), error=str(trouble))
            return TOLD_AFTER
        _log.info(LogEvent.OWNER_TOLD, owner=text_of(owner), message=message)
        return AGAIN_AFTER

    def _let_go(self, waiting: Waiting) -> timedelta:
        """Remove the gate from pods that no gang will ever let go, and tell their owner."""
        try:
            owner = self._owner_of(waiting.owner)
            for name, uid in sorted(waiting.held):
                self._cluster.open_pod(owner.namespace, name, uid)
            self._cluster.renew(unserved(owner, waiting.reason, NO_GANG, self._now(), waiting.since))
        except (Temporary, Permanent) as trouble:
            _log.debug(LogEvent.OWNER_UNKNOWN, owner=text_of(waiting.owner), error=str(trouble))
        else:
            _log.info(LogEvent.OWNER_TOLD, owner=text_of(owner), message=NO_GANG)
        return HELD_FOR

    def _message(self, waiting: Waiting) -> tuple[Reference, str]:
        """Return who is told, and what; empty if its pods may get a slice, or if it is gone or not served here."""
        owner = self._owner_of(waiting.owner)
        kind = _SERVED.get((owner.api_version, owner.kind))
        if kind is None:
            group, slash, _ = owner.api_version.partition("/")
            controller = Controller(group if slash else "", owner.kind, owner.name, indexed=False)
            return owner, message_of(owner, waiting, why_none_for(controller, self._vendor))
        asked = Owner(kind=kind, namespace=owner.namespace, name=owner.name, uid=WorkloadUid(owner.uid))
        workload = self._cluster.workload(asked)
        if workload is None or not is_served(kind, workload):
            return owner, ""
        owner = replace(owner, uid=workload["metadata"]["uid"])
        return owner, message_of(owner, waiting, why_not(kind, workload))

    def _owner_of(self, owner: Reference) -> Reference:
        if (owner.api_version, owner.kind) != _REPLICA_SET:
            return owner
        replicas = self._cluster.replica_set(owner.namespace, owner.name)
        return (replicas and controller_of(replicas["metadata"])) or owner


def message_of(owner: Reference, waiting: Waiting, by_owner: str) -> str:
    """Return what is told of each replicatedJob, or of all; `by_owner`: why, of pods that do not say it themselves."""
    why = ((job, text or by_owner) for job, text in sorted(waiting.why))
    itself, what = f"{owner.kind} {owner.name}", _WHAT[waiting.reason]
    told = ((f"replicatedJob {job} of {itself}" if job else itself, text) for job, text in why if text)
    return "; ".join(f"{whose} {what}: {text}" for whose, text in told)


def is_served(kind: OwnerKind, workload: Json) -> bool:
    """Return whether a workload wants slices from here; not if that cannot be parsed."""
    try:
        return READERS[kind].is_served(workload)
    except ValueError:
        return False


def why_not(kind: OwnerKind, workload: Json) -> str:
    """Return why a workload that wants slices gets none; empty if it may get some, or cannot be parsed."""
    try:
        return READERS[kind].not_ours(workload)
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
