"""The slice that each Job of some manifests would get, planned by the code that the functions run. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import Pinning, Reach, TemplateRequest, WaitingLeader
from tpu_slices.domain.model.node_groups import NodeGroup
from tpu_slices.domain.model.slices import Owner, OwnerKind, SliceSpec, WorkloadJob, WorkloadUid, claim_id
from tpu_slices.domain.model.vendors import GKE, Vendor
from tpu_slices.domain.planning.costs import Price, price_of
from tpu_slices.domain.planning.gangs import GangSize
from tpu_slices.domain.planning.node_groups import declared_slice
from tpu_slices.domain.planning.reach import unjudged
from tpu_slices.domain.planning.sharing import slices_of
from tpu_slices.domain.planning.specs import SliceRequest, chips_requested, gangs_of, scatters, spec_for
from tpu_slices.domain.reconciling.refusals import not_together
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.wire.leaders import leader_of_a_group, leader_of_a_job
from tpu_slices.wire.readers import READERS, Reader, reader_of
from tpu_slices.wire.tpu_objects import name_of, provisioned_by_gke, requests_chips
from tpu_slices_cli.applied.caveats import caveats, ends, scattering, unoffered
from tpu_slices_cli.applied.creation import check_creation
from tpu_slices_cli.applied.gangs import as_meant, gangs_in, go_wrong, never_together
from tpu_slices_cli.applied.pods import ByThemselves, by_themselves, changes
from tpu_slices_cli.applied.queues import admitted
from tpu_slices_cli.applied.waits import Workload, hangs
from tpu_slices_cli.applied.world import World, check_form, named, world_of
from tpu_slices_cli.manifests import Invalid, Manifest
from tpu_slices_cli.placeholders import unfilled
from tpu_slices_cli.prices import Total
from tpu_slices_cli.skipping import Skipped, leaderless, skip_other, skip_served, skip_workload, skipped_templates

SettingsFor = Callable[[TemplateRequest | NodeGroup], ClusterSettings]
"""The settings of the cluster; those of the default one depend on what is requested."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A Job, and the slice that it would get or the refusal."""

    job: WorkloadJob
    outcome: SliceSpec | Refusal
    order: PoolOrder
    settings: ClusterSettings
    """Those of its cluster."""
    created: bool
    """True: the workload exists, so its UID and the names that depend on it are final."""
    needs_pins: bool = False
    """Whether it would be refused if nothing pinned its pods, which is not known."""

    @property
    def of_instances(self) -> bool:
        """Whether the slice is a group of instances on Compute Engine, rather than a node pool of GKE."""
        return self.order.settings.compute is not None

    @property
    def price(self) -> Price | None:
        """What it costs; None: it is refused."""
        return price_of(self.outcome, self.settings) if isinstance(self.outcome, SliceSpec) else None

    @property
    def _requests(self) -> Sequence[Mapping[str, Any]]:
        """Return what is requested from Compute Engine, step by step."""
        from tpu_slices.adapters.compute import requests as compute_requests

        return compute_requests.as_rest(self.order)

    def as_json(self) -> dict[str, Any]:
        from tpu_slices.adapters.gke.requests import as_rest  # takes long to load, too

        spec = self.outcome if isinstance(self.outcome, SliceSpec) else None
        refusal = None if isinstance(self.outcome, SliceSpec) else self.outcome
        return {
            "slice_id": self.order.slice_id,
            "kind": self.job.owner.kind.value,
            "name": self.job.owner.name,
            "namespace": self.job.owner.namespace,
            "replicated_job": self.job.replicated_job,
            "job_index": self.job.job_index,
            "jobs": spec and spec.jobs,
            "hosts": spec and spec.hosts,
            "chips": spec and spec.chips,
            "price": self.price and self.price.as_json(),
            "node_pool": as_rest(self.order) if spec and not self.of_instances else None,
            **({"requests": self._requests if spec else None} if self.of_instances else {}),
            "refused": refusal and {"reason": refusal.reason.value, "message": refusal.message},
        }


@dataclass(frozen=True, slots=True)
class Plan:
    slices: tuple[Planned, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    invalid: tuple[Invalid, ...] = ()
    warnings: tuple[str, ...] = ()
    """What may go wrong although there are slices, each with the remedy."""
    gangs: tuple[Mapping[str, Any], ...] = ()
    """The gangs, in JSON."""

    @property
    def specs(self) -> tuple[SliceSpec, ...]:
        """The slices that are not refused."""
        return tuple(each.outcome for each in self.slices if isinstance(each.outcome, SliceSpec))

    @property
    def refused(self) -> int:
        return len(self.slices) - len(self.specs)

    @property
    def total(self) -> Total:
        return Total(tuple(each.price for each in self.slices if each.price))

    @property
    def catalogue(self) -> dict[str, list[str]]:
        """What of the cluster's settings is added to the catalogue or replaces it: machine types, and prices."""
        settings = {id(each.settings): each.settings for each in self.slices}.values()
        rows = [(section, dict(row)) for each in settings for section, rows in each.catalogue.sections for row in rows]
        names = {"machines": ("machine_type",), "prices": ("accelerator", "region", "kind")}
        return {
            section: [" ".join(row[field] for field in fields) for part, row in rows if part == section]
            for section, fields in names.items()
        }

    def as_json(self) -> dict[str, Any]:
        return {
            "slices": [each.as_json() for each in self.slices],
            "skipped": [each.as_json() for each in self.skipped],
            "invalid": [{"where": each.where, "message": each.message} for each in self.invalid],
            "warnings": [*self.warnings],
            "gangs": [*self.gangs],
            "catalogue": self.catalogue,
            "price": self.total.as_json(),
        }


def plan(
    documents: Iterable[Manifest | Invalid],
    settings_for: SettingsFor,
    namespace: str,
    vendor: Vendor = GKE,
    pinning: Pinning | None = None,
) -> Plan:
    """Return the plan for all documents; `namespace` is that of manifests without one."""
    read = tuple(documents)
    world = world_of((each.body for each in read if isinstance(each, Manifest)), namespace)
    where = _Where(settings_for, world, vendor, pinning)
    plans = [_plan_of(document, where) for document in read]
    return Plan(
        slices=tuple(each for part in plans for each in part.slices),
        skipped=tuple(each for part in plans for each in part.skipped),
        invalid=tuple(each for part in plans for each in part.invalid),
        warnings=tuple(each for part in plans for each in part.warnings),
        gangs=tuple(each for part in plans for each in part.gangs),
    )


@dataclass(frozen=True, slots=True)
class _Where:
    """What documents are planned for."""

    settings_for: SettingsFor
    world: World
    """The objects of all documents."""
    vendor: Vendor
    pinning: Pinning | None
    """By what pods are pinned; None: it is not known."""

    def chips(self, request: TemplateRequest) -> int:
        """Return the chips of all slices that a template requests."""
        return chips_requested([request], self.settings_for(request).accelerators)

    def leader(self, leader: WaitingLeader, request: TemplateRequest) -> WaitingLeader:
        """Return a leader that is not created yet as it will be."""
        return unjudged(leader, request) if self.pinning is Pinning.NOTHING else replace(leader, reach=Reach.OWN)


def _plan_of(document: Manifest | Invalid, where: _Where) -> Plan:
    if isinstance(document, Invalid):
        return Plan(invalid=(document,))
    try:
        return _checked(document, where)
    except ValueError as error:
        return Plan(invalid=(Invalid(document.where, str(error)),))
    except (TypeError, AttributeError, KeyError) as error:
        return Plan(invalid=(Invalid(document.where, f"malformed {document.kind}: {error}"),))


def _checked(manifest: Manifest, where: _Where) -> Plan:
    """Return the plan for one document; raise an error if it is malformed."""
    body = manifest.body
    reader = reader_of(body)
    if reader is not None:
        check_form(body)
        started = admitted(body, reader.kind, where.world)
        manifest, body = replace(manifest, body=started.body), started.body
        open_ = (*_left_open(body, declares=reader.kind.declares), *started.warnings)
        why = skip_workload(body, reader, where.world.claims_of(body))
        if why is not None:
            return Plan(skipped=(Skipped(manifest, *why),))
        check_creation(body, reader.kind, _text(manifest.metadata, "name", name_of(manifest.metadata)))
        whole = (_of_group if reader.kind.declares else _of_workload)(manifest, reader, where)
        return replace(whole, warnings=(*whole.warnings, *open_))
    if (pods := _served(body, where)) is not None:
        return _of_pods(manifest, pods, where)
    why = skip_other(body, where.vendor, where.world.claims_of(body))
    if why is not None:
        return Plan(skipped=(Skipped(manifest, *why),))
    open_ = _left_open(body)
    slices = tuple(_of_pod(manifest, where))
    return Plan(slices, warnings=(*_warnings_of(slices), *open_))


def _served(body: Mapping[str, Any], where: _Where) -> ByThemselves | None:
    """Return the pods of an object if the cluster makes a slice for each; raise ValueError for a field of them."""
    served = by_themselves(body) if requests_chips(body) else None
    if served is None or (where.vendor is GKE and provisioned_by_gke(body)):
        return None
    return served if served.made_by in where.settings_for(served.request).serve else None


def _of_pods(manifest: Manifest, served: ByThemselves, where: _Where) -> Plan:
    body, metadata = manifest.body, manifest.metadata
    open_ = _left_open(body)
    if (why := skip_served(body, served)) is not None:
        return Plan(skipped=(Skipped(manifest, *why),))
    namespace = _text(metadata, "namespace", where.world.namespace)
    uid = metadata.get("uid") if body["kind"] == "Pod" else None
    key = str(uuid5(NAMESPACE_URL, named(body)))
    request = served.request if uid else replace(served.request, pod_key=key)
    leader = where.leader(WaitingLeader(replicated_job="", job_index=0), request)
    slices = tuple(
        _Owner(where, OwnerKind.POD, namespace, name, uid, where.chips(request)).asks(request, leader)
        for name in served.names(_text(metadata, "name", name_of(metadata)))
    )
    return Plan(slices, warnings=(*_warnings_of(slices), *changes(body, served, where.world), *open_))


def _warnings_of(slices: Sequence[Planned]) -> tuple[str, ...]:
    of_specs = (_caveat(each.job, each.outcome) for each in slices if isinstance(each.outcome, SliceSpec))
    planned = [(each.job, each.outcome) for each in slices]
    unpinned = [(each.job, each.outcome) for each in slices if each.needs_pins]
    scatter = scattering((job, outcome) for job, outcome in unpinned if isinstance(outcome, SliceSpec))
    elsewhere = (unoffered(each.job, each.outcome, each.settings) for each in slices)
    return (*dict.fromkeys(filter(None, (*of_specs, *elsewhere))), *ends(planned), *scatter)


def _caveat(job: WorkloadJob, spec: SliceSpec) -> str:
    """Return the caveat of a spec, which names its replicatedJob if there is one, with its workload."""
    return spec.caveat and f"{job.owner.kind} {job.owner.name}{',' if job.replicated_job else ':'} {spec.caveat}"


def _left_open(body: Mapping[str, Any], *, declares: bool = False) -> tuple[str, ...]:
    """Return the warning of placeholders that no slice depends on; raise ValueError for others, unless it exists."""
    if body["metadata"].get("uid") or (not declares and not requests_chips(body)):
        return ()
    found = unfilled(body, decides=declares)
    if found.deciding:
        raise ValueError(found.refusal)
    return (f"{named(body)}: {found.warning}",) if found.others else ()


@dataclass(frozen=True, slots=True)
class _Owner:
    """The workload whose slices are planned."""

    where: _Where
    kind: OwnerKind
    namespace: str
    name: str
    uid: str | None
    """None: it is not created yet."""
    chips: int = 0
    """The sum over all slices that its templates request."""
    gangs: Mapping[str, GangSize] = field(default_factory=dict)

    @property
    def owner(self) -> Owner:
        uid = WorkloadUid(self.uid or str(uuid5(NAMESPACE_URL, f"{self.namespace}/{self.name}")))
        return Owner(kind=self.kind, namespace=self.namespace, name=self.name, uid=uid)

    def asks(self, request: TemplateRequest, leader: WaitingLeader) -> Planned:
        """Return the plan for the Job of this leader."""
        settings = self.where.settings_for(request)
        job = WorkloadJob(
            cluster=settings.cluster,
            owner=self.owner,
            replicated_job=leader.replicated_job,
            job_index=leader.job_index,
        )
        asked = SliceRequest(job=job, request=request, leader=leader, jobset_chips=self.chips)
        outcome = spec_for(asked, settings)
        if isinstance(outcome, SliceSpec) and outcome.scatters:
            outcome = not_together(self.kind, outcome)
        if isinstance(outcome, SliceSpec) and (gang := self.gangs.get(request.gang)):
            outcome = never_together(gang, self.namespace, settings.policy) or outcome
        planned = self._planned(job, outcome, settings)
        if self.where.pinning is not None or isinstance(outcome, Refusal):
            return planned
        unpinned = replace(asked, leader=unjudged(leader, request))
        return replace(planned, needs_pins=scatters(unpinned, outcome.hosts))

    def declares(self, group: NodeGroup) -> Planned:
        """Return the plan for a TPUNodeGroup."""
        settings = self.where.settings_for(group)
        job = WorkloadJob.declared(settings.cluster, self.owner)
        return self._planned(job, declared_slice(group, job, settings), settings)

    def _planned(self, job: WorkloadJob, outcome: SliceSpec | Refusal, settings: ClusterSettings) -> Planned:
        order = PoolOrder(
            cluster_path=settings.path,
            cluster_gke_id=settings.gke_id,
            slice_id=claim_id(job),
            attempt=1,
            job=job,
            spec=outcome if isinstance(outcome, SliceSpec) else None,
            settings=settings.pools,
        )
        return Planned(job, outcome, order, settings, created=self.uid is not None)


def _of_workload(manifest: Manifest, reader: Reader, where: _Where) -> Plan:
    body, kind = manifest.body, reader.kind
    skipped = tuple(Skipped(manifest, *each) for each in skipped_templates(body, reader, where.world.claims_of(body)))
    requests = reader.requests(body) if reader.is_served(body) else ()
    if not requests:
        return Plan(skipped=skipped)
    settings = where.settings_for(requests[0])
    if where.pinning is not Pinning.NOTHING and (meant := as_meant(body, kind, requests, settings)) is not body:
        body, requests = meant, reader.requests(meant)
    slices = tuple(_slices(manifest, reader, where, requests))
    made = {each.job.replicated_job: each.outcome for each in slices if isinstance(each.outcome, SliceSpec)}
    gangs = [each for each in gangs_in(body, kind, requests, settings, where.pinning) if each.has_any(made)]
    more = [*hangs(Workload(body, kind, made), where.world), *go_wrong(gangs, where.world)] if made else []
    of_jobset = caveats(body) if made and kind is OwnerKind.JOBSET else ()
    refused = Counter(each.job.replicated_job for each in slices if isinstance(each.outcome, Refusal))
    told = tuple(each.as_json(refused, where.world.namespace_of(body)) for each in gangs)
    return Plan(slices, skipped, warnings=(*_warnings_of(slices), *of_jobset, *more), gangs=told)


def _slices(
    manifest: Manifest, reader: Reader, where: _Where, requests: Sequence[TemplateRequest]
) -> Iterator[Planned]:
    chips = sum(where.chips(request) for request in requests)
    gangs = gangs_of(requests, where.settings_for(requests[0]).accelerators)
    owner = replace(_owner(manifest, reader, where), chips=chips, gangs=gangs)
    for request in requests:
        if request.replicated_job in leaderless(manifest.body):
            continue
        for index in range(slices_of(request)):
            leader = WaitingLeader(replicated_job=request.replicated_job, job_index=index)
            yield owner.asks(request, where.leader(leader, request))


def _owner(manifest: Manifest, reader: Reader, where: _Where) -> _Owner:
    metadata = manifest.metadata
    return _Owner(
        where=where,
        kind=reader.kind,
        namespace=_text(metadata, "namespace", where.world.namespace),
        name=_text(metadata, "name", name_of(metadata)),
        uid=metadata.get("uid"),
    )


def _of_group(manifest: Manifest, reader: Reader, where: _Where) -> Plan:
    group = reader.declared(manifest.body)
    assert group is not None
    declared = (_owner(manifest, reader, where).declares(group),)
    return Plan(declared, warnings=_warnings_of(declared))


def _of_pod(manifest: Manifest, where: _Where) -> Iterator[Planned]:
    leads = leader_of_a_job(manifest.body) or leader_of_a_group(manifest.body)
    if leads is None:
        return
    request = READERS[leads.kind].request_of_pod(manifest.body)
    owner = _Owner(
        where=where,
        kind=leads.kind,
        namespace=_text(manifest.metadata, "namespace", where.world.namespace),
        name=leads.name,
        uid=leads.uid,
        chips=where.chips(request),
    )
    yield owner.asks(request, leads.asks if "uid" in manifest.metadata else where.leader(leads.asks, request))


def _text(metadata: Mapping[str, Any], field: str, otherwise: str) -> str:
    value = metadata.get(field) or otherwise
    if not isinstance(value, str) or not value:
        raise ValueError(f"metadata.{field} is {'not a string' if value else 'missing'}")
    return value
