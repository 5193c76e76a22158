"""What is looked up at the API server for facts that are due, in threads of its own, before they are published.

| due                                        | looked up                                 | if that fails      |
|--------------------------------------------|-------------------------------------------|--------------------|
| demand of leaders that mount volumes       | whether there are such volume claims, and | it names no        |
|                                            | the zones that they are bound to          | volumes            |
| an answer that nobody is on hosts          | their nodes, the pods on each, and the    | it is no answer    |
|                                            | workloads of these (`users`)              |                    |
| a look at hosts that a leader left         | the pods on each, and their workloads     | it is tried again  |
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from queue import Empty, SimpleQueue
from typing import Any, Protocol

import structlog

from relay.agenda import Subject
from relay.health import Health
from relay.lookups.users import Looks, PodsOn, Users, answers
from tpu_slices.domain.model.facts import Fact, HostsChanged, MountedVolume, SlicesWanted, TemplateRequest
from tpu_slices.domain.planning.host_labels import ZONE
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.wire.bounds import VOLUMES_PER_FACT

_log = structlog.get_logger()

TICK_EVERY = 30.0
"""Seconds."""
ZONES_PER_VOLUME = 20
VOLUMES_AGAIN_AFTER = timedelta(minutes=1)
"""When demand with a volume that does not exist is repeated: nothing tells the relay that it was made."""
PATIENCE = timedelta(seconds=2)
"""The time from when demand came due in which look-ups for it may begin; each of them takes seconds, not minutes."""
KEPT = timedelta(minutes=3)
"""How long a volume's zones are cached."""
QUIET_AFTER_TROUBLE = timedelta(minutes=1)
"""How long nothing is looked up after a failure."""

_ZONE_KEYS = (ZONE, "topology.gke.io/zone")
"""The latter is what kubernetes-sigs/gcp-compute-persistent-disk-csi-driver writes."""


@dataclass(frozen=True, slots=True)
class Mounted:
    """The PersistentVolumeClaims that the waiting leaders of a JobSet mount."""

    volumes: Mapping[str, tuple[str, ...]]
    """By replicatedJob; none of them is empty."""
    since: datetime
    """When the demand came due."""


@dataclass(frozen=True, slots=True)
class Due:
    """The facts on one subject that are due, and what must be looked up before they are published."""

    subject: Subject
    facts: tuple[Fact, ...]
    unknown: Mounted | PodsOn | None = None

    @property
    def answers(self) -> bool:
        return answers(self.facts)


@dataclass(frozen=True, slots=True)
class LookedUp:
    """The facts on one subject, as they can be published; `users`: who is on the hosts that were looked at."""

    subject: Subject
    facts: Sequence[Fact]
    users: Users | None = None

    @property
    def answers(self) -> bool:
        return answers(self.facts)


Done = Callable[[LookedUp], None]


class Lookups:
    """Completes what is due in two threads, each in the order in which it was begun: demand, and what is on hosts."""

    def __init__(self, volumes: VolumeLookups, looks: Looks, health: Health) -> None:
        self._mounted = volumes
        self._looks = looks
        self._health = health
        self._demand: SimpleQueue[tuple[Due, Mounted, Done]] = SimpleQueue()
        self._asked: SimpleQueue[tuple[Due, PodsOn, Done]] = SimpleQueue()

    def begin(self, due: Due, done: Done) -> None:
        """Begin to look up what is unknown; `done` is called once, in one of the two threads."""
        if isinstance(due.unknown, Mounted):
            self._demand.put((due, due.unknown, done))
        elif due.unknown is not None:
            self._asked.put((due, due.unknown, done))

    def run_demand(self) -> None:
        """Look up volumes for as long as the process lives."""
        while True:
            self._health.ticked("volumes")
            self._mounted.forget()
            with suppress(Empty):
                due, mounted, done = self._demand.get(timeout=TICK_EVERY)
                done(LookedUp(due.subject, self._mounted.completed(due.facts, mounted)))

    def run_looks(self) -> None:
        """Look who is on hosts for as long as the process lives."""
        while True:
            self._health.ticked("looks")
            with suppress(Empty):
                due, asked, done = self._asked.get(timeout=TICK_EVERY)
                done(LookedUp(due.subject, *self._looks.looked(due.facts, asked)))


def without_unknown(due: Due) -> Sequence[Fact]:
    """Return facts as they are published if nothing can be looked up: an answer needs a proof, demand does not."""
    return [
        replace(fact, answers=None) if isinstance(fact, HostsChanged) and due.unknown else fact for fact in due.facts
    ]


class Volumes(Protocol):
    """As `relay.cluster.Cluster`: None if there is none of that name."""

    def volume_claim(self, namespace: str, name: str) -> Mapping[str, Any] | None: ...

    def volume(self, name: str) -> Mapping[str, Any] | None: ...


class VolumeLookups:
    """Adds to facts what volumes are bound to. What cannot be looked up in time is left out."""

    def __init__(self, volumes: Volumes, now: Callable[[], datetime]) -> None:
        self._volumes = volumes
        self._now = now
        self._known: dict[tuple[str, str], tuple[MountedVolume | None, datetime]] = {}
        self._quiet_until: datetime | None = None

    def forget(self) -> None:
        """Drop from the cache what is too old."""
        now = self._now()
        self._known = {key: known for key, known in self._known.items() if now - known[1] < KEPT}

    def completed(self, facts: Sequence[Fact], mounted: Mounted) -> list[Fact]:
        """Return the demand of one JobSet; each request names the volumes that are missing, or bind it to zones."""
        self.forget()
        demand = [fact for fact in facts if isinstance(fact, SlicesWanted)]
        bound = self._bound(demand[0].workload.owner.namespace, mounted) if demand else {}
        return [replace(fact, requests=_with_volumes(fact.requests, bound)) if bound else fact for fact in demand]

    def _bound(self, namespace: str, mounted: Mounted) -> Mapping[str, Sequence[MountedVolume]]:
        """Return the bound volumes by replicatedJob, the first ones only: look-ups take time, messages have a limit."""
        each = ((replicated_job, name) for replicated_job, names in sorted(mounted.volumes.items()) for name in names)
        bound: defaultdict[str, list[MountedVolume]] = defaultdict(list)
        for replicated_job, name in itertools.islice(each, VOLUMES_PER_FACT):
            if (volume := self._volume(namespace, name, mounted.since + PATIENCE)) is not None:
                bound[replicated_job].append(volume)
        return bound

    def _volume(self, namespace: str, name: str, deadline: datetime) -> MountedVolume | None:
        """Return a volume that is bound to zones, or does not exist; None for any other, and if it is not known."""
        known = self._known.get((namespace, name))
        if known is not None:
            return known[0]
        now = self._now()
        if now >= deadline or (self._quiet_until is not None and now < self._quiet_until):
            return None
        try:
            volume = self._look_up(namespace, name)
        except (Temporary, Permanent) as trouble:
            _log.warning(LogEvent.VOLUME_CLAIM_UNKNOWN, namespace=namespace, claim=name, error=str(trouble))
            self._quiet_until = now + QUIET_AFTER_TROUBLE
            return None
        if volume is None or volume.zones:  # one that does not exist may be made at any time
            self._known[namespace, name] = (volume, now)
        return volume

    def _look_up(self, namespace: str, name: str) -> MountedVolume | None:
        found = self._volumes.volume_claim(namespace, name)
        if found is None:
            return MountedVolume(name=name, zones=())
        volume = volume_of(found)
        zones = zones_of(self._volumes.volume(volume)) if volume else ()
        return MountedVolume(name=name, zones=zones) if zones else None


def lacks_volumes(facts: Sequence[Fact]) -> bool:
    """Return whether facts are demand whose leaders mount a volume that does not exist."""
    requests = (request for fact in facts if isinstance(fact, SlicesWanted) for request in fact.requests)
    return any(not volume.zones for request in requests for volume in request.volumes)


def _with_volumes(
    requests: Sequence[TemplateRequest], bound: Mapping[str, Sequence[MountedVolume]]
) -> tuple[TemplateRequest, ...]:
    return tuple(replace(request, volumes=tuple(bound.get(request.replicated_job, ()))) for request in requests)


def volume_of(claim: Mapping[str, Any]) -> str | None:
    """Return the volume that a v1 PersistentVolumeClaim is bound to."""
    if (claim.get("status") or {}).get("phase") != "Bound":
        return None
    return claim["spec"].get("volumeName") or None


def zones_of(volume: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the zones that a v1 PersistentVolume can be reached from; none: it does not depend on the zone.

    Its node affinity matches if one of its terms does: one without a zone matches in every zone.
    """
    required = (((volume or {}).get("spec") or {}).get("nodeAffinity") or {}).get("required") or {}
    terms = [_zones_of_term(term) for term in required.get("nodeSelectorTerms") or ()]
    if not terms or None in terms:
        return ()
    return tuple(sorted(set().union(*(term for term in terms if term)))[:ZONES_PER_VOLUME])


def _zones_of_term(term: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the zones in which a term can match; None if it does not name zones."""
    named: Iterator[Iterable[str]] = (
        each.get("values") or ()
        for each in term.get("matchExpressions") or ()
        if each["key"] in _ZONE_KEYS and each["operator"] == "In"
    )
    zones: frozenset[str] | None = None
    for values in named:
        zones = frozenset(values) if zones is None else zones & frozenset(values)
    return zones
