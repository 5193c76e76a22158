"""What is looked up at the API server for facts that are due, in threads of its own, before they are published.

| due                                        | looked up                                 | if that fails      |
|--------------------------------------------|-------------------------------------------|--------------------|
| demand of leaders that mount volume claims | whether there are such claims, and the    | it names no claims |
|                                            | zones that their volumes are bound to     |                    |
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
from tpu_slices.domain.model.facts import BoundClaim, Fact, HostsChanged, SlicesWanted, TemplateRequest
from tpu_slices.domain.planning.host_labels import ZONE
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.wire.bounds import CLAIMS_PER_FACT

_log = structlog.get_logger()

TICK_EVERY = 30.0
"""Seconds."""
ZONES_PER_CLAIM = 20
CLAIMS_AGAIN_AFTER = timedelta(minutes=1)
"""When demand with a claim that does not exist is repeated: nothing tells the relay that it was made."""
PATIENCE = timedelta(seconds=2)
"""The time from when demand came due in which look-ups for it may begin; each of them takes seconds, not minutes."""
KEPT = timedelta(minutes=3)
"""How long a claim's zones are cached."""
QUIET_AFTER_TROUBLE = timedelta(minutes=1)
"""How long nothing is looked up after a failure."""

_ZONE_KEYS = (ZONE, "topology.gke.io/zone")
"""The latter is what kubernetes-sigs/gcp-compute-persistent-disk-csi-driver writes."""


@dataclass(frozen=True, slots=True)
class Mounted:
    """The claims that the waiting leaders of a JobSet mount."""

    claims: Mapping[str, tuple[str, ...]]
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

    def __init__(self, claims: Claims, looks: Looks, health: Health) -> None:
        self._claims = claims
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
        """Look up claims for as long as the process lives."""
        while True:
            self._health.ticked("claims")
            self._claims.forget()
            with suppress(Empty):
                due, mounted, done = self._demand.get(timeout=TICK_EVERY)
                done(LookedUp(due.subject, self._claims.completed(due.facts, mounted)))

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

    def claim(self, namespace: str, name: str) -> Mapping[str, Any] | None: ...

    def volume(self, name: str) -> Mapping[str, Any] | None: ...


class Claims:
    """Adds to facts what claims are bound to. What cannot be looked up in time is left out."""

    def __init__(self, volumes: Volumes, now: Callable[[], datetime]) -> None:
        self._volumes = volumes
        self._now = now
        self._known: dict[tuple[str, str], tuple[BoundClaim | None, datetime]] = {}
        self._quiet_until: datetime | None = None

    def forget(self) -> None:
        """Drop from the cache what is too old."""
        now = self._now()
        self._known = {key: known for key, known in self._known.items() if now - known[1] < KEPT}

    def completed(self, facts: Sequence[Fact], mounted: Mounted) -> list[Fact]:
        """Return the demand of one JobSet; each request names its claims that are missing, or that bind it to zones."""
        self.forget()
        demand = [fact for fact in facts if isinstance(fact, SlicesWanted)]
        bound = self._bound(demand[0].workload.owner.namespace, mounted) if demand else {}
        return [replace(fact, requests=_with_claims(fact.requests, bound)) if bound else fact for fact in demand]

    def _bound(self, namespace: str, mounted: Mounted) -> Mapping[str, Sequence[BoundClaim]]:
        """Return the bound claims by replicatedJob, the first ones only: look-ups take time, messages have a limit."""
        each = ((replicated_job, name) for replicated_job, names in sorted(mounted.claims.items()) for name in names)
        bound: defaultdict[str, list[BoundClaim]] = defaultdict(list)
        for replicated_job, name in itertools.islice(each, CLAIMS_PER_FACT):
            if (claim := self._claim(namespace, name, mounted.since + PATIENCE)) is not None:
                bound[replicated_job].append(claim)
        return bound

    def _claim(self, namespace: str, name: str, deadline: datetime) -> BoundClaim | None:
        """Return a claim that is bound to zones, or that does not exist; None for any other, and if it is not known."""
        known = self._known.get((namespace, name))
        if known is not None:
            return known[0]
        now = self._now()
        if now >= deadline or (self._quiet_until is not None and now < self._quiet_until):
            return None
        try:
            claim = self._look_up(namespace, name)
        except (Temporary, Permanent) as trouble:
            _log.warning(LogEvent.VOLUME_CLAIM_UNKNOWN, namespace=namespace, claim=name, error=str(trouble))
            self._quiet_until = now + QUIET_AFTER_TROUBLE
            return None
        if claim is None or claim.zones:  # one that does not exist may be made at any time
            self._known[namespace, name] = (claim, now)
        return claim

    def _look_up(self, namespace: str, name: str) -> BoundClaim | None:
        found = self._volumes.claim(namespace, name)
        if found is None:
            return BoundClaim(name=name, zones=())
        volume = volume_of(found)
        zones = zones_of(self._volumes.volume(volume)) if volume else ()
        return BoundClaim(name=name, zones=zones) if zones else None


def lacks_claims(facts: Sequence[Fact]) -> bool:
    """Return whether facts are demand whose leaders mount a claim that does not exist."""
    requests = (request for fact in facts if isinstance(fact, SlicesWanted) for request in fact.requests)
    return any(not claim.zones for request in requests for claim in request.claims)


def _with_claims(
    requests: Sequence[TemplateRequest], bound: Mapping[str, Sequence[BoundClaim]]
) -> tuple[TemplateRequest, ...]:
    return tuple(replace(request, claims=tuple(bound.get(request.replicated_job, ()))) for request in requests)


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
    return tuple(sorted(set().union(*(term for term in terms if term)))[:ZONES_PER_CLAIM])


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
