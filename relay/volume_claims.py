"""PersistentVolumeClaims of leaders that wait, and the zones from which their volumes can be reached."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Protocol

import structlog

from tpu_slices.domain.model.facts import BoundClaim, Fact, SlicesWanted
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.domain.planning.host_labels import ZONE
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.wire.bounds import CLAIMS_PER_FACT

_log = structlog.get_logger()

ZONES_PER_CLAIM = 20
PATIENCE = timedelta(seconds=2)
"""The time in which look-ups for one batch of facts may begin; each of them takes seconds, not minutes."""
KEPT = timedelta(minutes=3)
"""How long a claim's zones are cached."""
QUIET_AFTER_TROUBLE = timedelta(minutes=1)
"""How long nothing is looked up after a failure."""

_ZONE_KEYS = (ZONE, "topology.gke.io/zone")
"""The latter is what kubernetes-sigs/gcp-compute-persistent-disk-csi-driver writes."""

Mounted = Mapping[WorkloadUid, Mapping[str, tuple[str, ...]]]
"""JobSet → replicatedJob → the claims that its waiting leaders mount."""


class Volumes(Protocol):
    """As `relay.cluster.Cluster`: None if there is none of that name."""

    def claim(self, namespace: str, name: str) -> Mapping[str, Any] | None: ...

    def volume(self, name: str) -> Mapping[str, Any] | None: ...


class Claims:
    """Adds to facts what claims are bound to. What cannot be looked up in time is left out."""

    def __init__(self, volumes: Volumes, now: Callable[[], datetime]) -> None:
        self._volumes = volumes
        self._now = now
        self._known: dict[tuple[str, str], tuple[tuple[str, ...], datetime]] = {}
        self._quiet_until: datetime | None = None

    def complete(self, facts: Sequence[Fact], mounted: Mounted) -> list[Fact]:
        """Return the facts; each request of a SlicesWanted names its claims whose volumes only some zones reach."""
        now = self._now()
        self._known = {key: known for key, known in self._known.items() if now - known[1] < KEPT}
        return [
            self._completed(fact, mounted.get(fact.workload.owner.uid, {}), now + PATIENCE)
            if isinstance(fact, SlicesWanted)
            else fact
            for fact in facts
        ]

    def _completed(
        self, fact: SlicesWanted, mounted: Mapping[str, tuple[str, ...]], deadline: datetime
    ) -> SlicesWanted:
        """Return a fact with its bound claims; only the first ones, as look-ups take time and a message has a limit."""
        each = ((replicated_job, name) for replicated_job, names in sorted(mounted.items()) for name in names)
        bound: defaultdict[str, list[BoundClaim]] = defaultdict(list)
        for replicated_job, name in itertools.islice(each, CLAIMS_PER_FACT):
            if zones := self._zones(fact.workload.owner.namespace, name, deadline):
                bound[replicated_job].append(BoundClaim(name=name, zones=zones))
        requests = (replace(request, claims=tuple(bound[request.replicated_job])) for request in fact.requests)
        return replace(fact, requests=tuple(requests)) if bound else fact

    def _zones(self, namespace: str, name: str, deadline: datetime) -> tuple[str, ...]:
        """Return the zones of a claim's volume; none if it is not bound, not limited to zones, or not known."""
        known = self._known.get((namespace, name))
        if known is not None:
            return known[0]
        now = self._now()
        if now >= deadline or (self._quiet_until is not None and now < self._quiet_until):
            return ()
        try:
            zones = self._look_up(namespace, name)
        except (Temporary, Permanent) as trouble:
            _log.warning(LogEvent.VOLUME_CLAIM_UNKNOWN, namespace=namespace, claim=name, error=str(trouble))
            self._quiet_until = now + QUIET_AFTER_TROUBLE
            return ()
        self._known[namespace, name] = (zones, now)
        return zones

    def _look_up(self, namespace: str, name: str) -> tuple[str, ...]:
        volume = volume_of(self._volumes.claim(namespace, name))
        return zones_of(self._volumes.volume(volume)) if volume else ()


def volume_of(claim: Mapping[str, Any] | None) -> str | None:
    """Return the volume that a v1 PersistentVolumeClaim is bound to."""
    if claim is None or (claim.get("status") or {}).get("phase") != "Bound":
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
