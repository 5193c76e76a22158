"""Quota that Kueue reserves for a suspended workload: its slices are made before it is resumed. Pure.

Kueue merges into each pod template what the flavors of its pod set have, when it resumes the workload. Nothing is made
for a template that will be another one: so its slices are asked for with the same merged in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from relay.kueue.objects import CheckState, Flavor, Queued
from relay.objects import WORKLOADS, Kind, Workload
from tpu_slices.domain.model.facts import TemplateRequest, Toleration, WorkloadState
from tpu_slices.domain.model.slices import OwnerKind, Pairs, WorkloadUid
from tpu_slices.domain.planning.host_labels import ACCELERATOR, TOPOLOGY
from tpu_slices.ports.errors import Temporary
from tpu_slices.wire.gangs import ALL

ANSWERED = {("JobSet", "jobset.x-k8s.io"): OwnerKind.JOBSET, ("Job", "batch"): OwnerKind.JOB}
"""The kinds whose slices can be made before their pods exist, by kind and group."""
MAIN = "main"
"""What Kueue calls the pod set of a workload that has one template."""
_LATER = f"{ALL} after "
"""How a gang is named that comes to be once another is complete: its slices are not made before."""
_ASKED = (CheckState.PENDING, CheckState.READY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What is merged into a template."""

    labels: Pairs = ()
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Quota that is reserved for a workload, and what its pods get by it."""

    added: Mapping[str, Added]
    """By pod set: the replicatedJob of a JobSet, MAIN of a Job."""


def kind_of(queued: Queued) -> OwnerKind | None:
    """Return the kind of what a Workload stands for, if its slices can be made before its pods exist."""
    owner = queued.owner
    return ANSWERED.get((owner.kind, owner.api_version.partition("/")[0])) if owner is not None else None


def reservation_of(queued: Queued, ours: Iterable[str], flavors: Mapping[str, Flavor]) -> Reservation | None:
    """Return the quota by which slices may be made; None: there is none, or it is not known what pods get by it."""
    states = [each.state for each in queued.checks if each.name in ours]
    if not queued.holds_quota or not states or any(state not in _ASKED for state in states):
        return None
    if any(name not in flavors for names in queued.flavors.values() for name in names):
        return None
    return Reservation(
        added={name: _added(flavors[each] for each in sorted(names)) for name, names in queued.flavors.items()}
    )


def reserved(workload: Workload, by: Reservation | None) -> Workload:
    """Return a suspended workload for which quota is reserved as what it will be; any other as it is.

    All its claims wait together, as a gang does: it is resumed once the slices of all stand.
    """
    if by is None or not may_be_reserved(workload):
        return workload
    requests = tuple(_merged(each, by.added.get(each.replicated_job or MAIN, Added())) for each in workload.requests)
    return replace(workload, state=WorkloadState.ACTIVE, requests=requests, reserved=True)


def may_be_reserved(workload: Workload) -> bool:
    """Return whether a workload is suspended, and slices may be made for it."""
    asks = workload.served and workload.parse_error is None and not workload.unserved and bool(workload.requests)
    return asks and workload.state is WorkloadState.SUSPENDED


class Reservations:
    """By workload: the quota that is reserved for it, and, while it is suspended, its object as the watch shows it.

    While no reservations are known, suspended workloads that Kueue may have quota for are withheld: what was made for
    one that has quota would be let go, as it would seem to be suspended.
    """

    def __init__(self) -> None:
        self._by: Mapping[WorkloadUid, Reservation] | None = {}
        self._suspended: dict[WorkloadUid, Workload] = {}

    def forget(self) -> None:
        """Record that no reservations are known yet."""
        self._by = None

    @property
    def known(self) -> bool:
        return self._by is not None

    def has(self, uid: WorkloadUid) -> bool:
        """Return whether a workload asks by its quota; raise Temporary while that is not known."""
        if self._by is None:
            raise Temporary("it is not known yet for which workloads Kueue has quota")
        suspended = self._suspended.get(uid)
        return suspended is not None and reserved(suspended, self._by.get(uid)).reserved

    def withheld(self, kind: Kind) -> frozenset[str]:
        """Return the UIDs of the workloads of a kind that are withheld."""
        kept = () if self.known else self._suspended.values()
        return frozenset(each.identity for each in kept if each.ref.owner.kind is WORKLOADS.get(kind))

    def seen(self, workload: Workload) -> Workload | None:
        """Return a workload that was added or modified as it is taken for; None: it is withheld."""
        uid = workload.ref.owner.uid
        if workload.state is not WorkloadState.SUSPENDED or workload.ref.owner.kind not in ANSWERED.values():
            self._suspended.pop(uid, None)
            return workload
        self._suspended[uid] = workload
        return reserved(workload, self._by.get(uid)) if self._by is not None else None

    def lost(self, identity: str) -> None:
        self._suspended.pop(WorkloadUid(identity), None)

    def replaced(self, by: Mapping[WorkloadUid, Reservation]) -> list[Workload]:
        """Record all reservations that there are; return the suspended workloads of which something else was known."""
        before, self._by = self._by, by
        if before is None:
            return [*self._suspended.values()]
        changed = {uid for uid in by.keys() | before.keys() if by.get(uid) != before.get(uid)}
        return [self._suspended[uid] for uid in sorted(changed) if uid in self._suspended]


def _added(flavors: Iterable[Flavor]) -> Added:
    labels: dict[str, str] = {}
    tolerations: dict[Toleration, None] = {}
    for each in flavors:
        labels |= dict(each.labels)
        tolerations |= dict.fromkeys(each.tolerations)
    return Added(labels=tuple(sorted(labels.items())), tolerations=tuple(tolerations))


def _merged(request: TemplateRequest, added: Added) -> TemplateRequest:
    labels = dict(added.labels)
    selector = {**dict(request.node_selector), **labels}
    more = tuple(each for each in added.tolerations if each not in request.tolerations)
    return replace(
        request,
        gang=request.gang if request.gang.startswith(_LATER) else ALL,
        node_selector=tuple(sorted(selector.items())),
        accelerator=labels.get(ACCELERATOR, request.accelerator),
        topology=labels.get(TOPOLOGY, request.topology),
        tolerations=(*request.tolerations, *more),
    )
