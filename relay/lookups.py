"""What is looked up at the API server for facts that are due, in threads of its own, before they are published.

| due                                        | looked up                                 | if that fails      |
|--------------------------------------------|-------------------------------------------|--------------------|
| demand of leaders that mount volume claims | whether there are such claims, and the    | it names no claims |
|                                            | zones that their volumes are bound to     |                    |
| an answer that nobody is on hosts          | their nodes and leader pods, listed anew, | it is no answer    |
|                                            | and the workloads of pods that do not     |                    |
|                                            | count                                     |                    |

A watch whose connection stalls says nothing for minutes before it counts as failed, while others go on. What is deleted
on an answer must not depend on that: a node or a pod that its watch has not shown takes the answer from the fact, and
so does a workload by which a pod counts that did not by what its watch has shown. The functions ask again.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeVar

import structlog

from relay.agenda import Subject
from relay.cluster_cache import occupant_of
from relay.health import Health
from relay.objects import Leader, Pool, Workload, WorkloadName
from tpu_slices.domain.model.facts import BoundClaim, Fact, HostsChanged, SlicesWanted, TemplateRequest
from tpu_slices.domain.planning.host_labels import ZONE
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.wire.bounds import CLAIMS_PER_FACT

_log = structlog.get_logger()
K = TypeVar("K")
V = TypeVar("V")

LISTS_AT_ONCE = 8
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
class Vacancy:
    """An answer that nobody is on hosts, and the nodes and pods that it was made of."""

    pool: Pool
    nodes: Collection[str]
    """The nodes of the pool that the watch has shown; none: the pool is said to have no hosts."""
    shown: Collection[str]
    """The UIDs of leader pods that the watch has shown on these nodes, whether or not they count as occupants."""
    passed_over: tuple[Leader, ...]
    """Those of them that do not count, by what the watches of workloads have shown."""


@dataclass(frozen=True, slots=True)
class Due:
    """The facts on one subject that are due, and what must be looked up before they are published."""

    subject: Subject
    facts: tuple[Fact, ...]
    unknown: Mounted | Vacancy | None = None


@dataclass(frozen=True, slots=True)
class LookedUp:
    """The facts on one subject, as they can be published."""

    subject: Subject
    facts: Sequence[Fact]


Done = Callable[[LookedUp], None]


class Lookups:
    """Completes what is due in two threads, each in the order in which it was begun: demand, and answers."""

    def __init__(self, claims: Claims, vacancies: Vacancies, health: Health) -> None:
        self._claims = claims
        self._vacancies = vacancies
        self._health = health
        self._demand: SimpleQueue[tuple[Due, Mounted, Done]] = SimpleQueue()
        self._answers: SimpleQueue[tuple[Due, Vacancy, Done]] = SimpleQueue()

    def begin(self, due: Due, done: Done) -> None:
        """Begin to look up what is unknown; `done` is called once, in one of the two threads."""
        if isinstance(due.unknown, Mounted):
            self._demand.put((due, due.unknown, done))
        elif due.unknown is not None:
            self._answers.put((due, due.unknown, done))

    def run_demand(self) -> None:
        """Look up claims for as long as the process lives."""
        while True:
            self._health.ticked("claims")
            self._claims.forget()
            with suppress(Empty):
                due, mounted, done = self._demand.get(timeout=TICK_EVERY)
                done(LookedUp(due.subject, self._claims.completed(due.facts, mounted)))

    def run_answers(self) -> None:
        """Check answers for as long as the process lives."""
        while True:
            self._health.ticked("vacancies")
            with suppress(Empty):
                due, vacancy, done = self._answers.get(timeout=TICK_EVERY)
                done(LookedUp(due.subject, self._vacancies.checked(due.facts, vacancy)))


def without_unknown(due: Due) -> Sequence[Fact]:
    """Return facts as they are published if nothing can be looked up: an answer needs a proof, demand does not."""
    return [
        replace(fact, answers=None) if isinstance(fact, HostsChanged) and due.unknown else fact for fact in due.facts
    ]


class Lists(Protocol):
    """What `relay.cluster.Cluster` reads; each raises Temporary or Permanent."""

    def nodes_of(self, pool: Pool) -> Collection[str]: ...

    def leaders_on(self, node: str) -> Mapping[str, str]: ...

    def workload_named(self, name: WorkloadName) -> Workload | None: ...


class Each(Protocol):
    """Asks about each of several things."""

    def __call__(self, ask: Callable[[K], V], things: Sequence[K], /) -> list[V]: ...


def at_once(ask: Callable[[K], V], things: Sequence[K]) -> list[V]:
    """Return what is answered about each of these things, asked in threads; raise what one of them raises."""
    with ThreadPoolExecutor(LISTS_AT_ONCE) as threads:
        asked = [threads.submit(ask, each) for each in things]
        try:
            return [each.result() for each in asked]
        except (Temporary, Permanent):
            threads.shutdown(cancel_futures=True)
            raise


def in_turn(ask: Callable[[K], V], things: Sequence[K]) -> list[V]:
    """Return what is answered about each of these things, of what answers without delay."""
    return [ask(each) for each in things]


class Vacancies:
    """Checks answers that nobody is on the hosts."""

    def __init__(self, lists: Lists, each: Each = at_once) -> None:
        self._lists, self._each = lists, each

    def checked(self, facts: Sequence[Fact], vacancy: Vacancy) -> list[Fact]:
        """Return facts on one pool; without the answer if that is not sure."""
        doubt = self._doubt(vacancy)
        return [self._unanswered(fact, doubt) if doubt and isinstance(fact, HostsChanged) else fact for fact in facts]

    def _unanswered(self, fact: HostsChanged, doubt: str) -> HostsChanged:
        if fact.answers is not None:
            _log.warning(LogEvent.VACANCY_UNCERTAIN, slice=fact.slice_id, attempt=fact.attempt, error=doubt)
        return replace(fact, answers=None)

    def _doubt(self, vacancy: Vacancy) -> str:
        try:
            unseen = sorted(set(self._lists.nodes_of(vacancy.pool)) - set(vacancy.nodes))
            if unseen:
                return f"the watch has not shown that node {unseen[0]} is one of the hosts"
            lists = self._each(self._lists.leaders_on, sorted(vacancy.nodes))
            counts = self._counts_after_all(vacancy.passed_over)
        except (Temporary, Permanent) as trouble:
            return str(trouble)
        unknown = [pod for leaders in lists for uid, pod in leaders.items() if uid not in vacancy.shown]
        return f"the watch has not shown that pod {unknown[0]} is on one of the hosts" if unknown else counts

    def _counts_after_all(self, leaders: Sequence[Leader]) -> str:
        names = sorted({leader.workload for leader in leaders})
        workloads = dict(zip(names, self._each(self._lists.workload_named, names), strict=True))
        for leader in leaders:
            workload = workloads[leader.workload]
            if workload is not None and occupant_of(leader, workload) is not None:
                return f"the watch has not shown the {workload.ref.owner.kind} of pod {leader.pod} as it is"
        return ""


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
