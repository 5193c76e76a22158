"""The slice that each Job of some manifests would get, planned by the code that the functions run. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from tpu_slices.adapters.gke_requests import as_rest
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import TemplateRequest, WaitingLeader
from tpu_slices.domain.model.records import Refusal
from tpu_slices.domain.model.slices import Owner, OwnerKind, SliceSpec, WorkloadJob, WorkloadUid, slice_id
from tpu_slices.domain.planning.specs import SliceRequest, chips_requested, spec_for
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.wire import workloads
from tpu_slices.wire.jobsets import is_leader, is_served
from tpu_slices_cli.caveats import caveats
from tpu_slices_cli.manifests import Manifest

JOBSET_VERSION = "jobset.x-k8s.io/v1alpha2"


@dataclass(frozen=True, slots=True)
class Planned:
    """A Job, and the slice that it would get or the refusal."""

    job: WorkloadJob
    outcome: SliceSpec | Refusal
    order: PoolOrder
    created: bool
    """True: the JobSet exists, so its UID and the names that depend on it are final."""

    def as_json(self) -> dict[str, Any]:
        spec = self.outcome if isinstance(self.outcome, SliceSpec) else None
        refusal = None if isinstance(self.outcome, SliceSpec) else self.outcome
        return {
            "slice_id": self.order.slice_id,
            "jobset": self.job.owner.name,
            "namespace": self.job.owner.namespace,
            "replicated_job": self.job.replicated_job,
            "job_index": self.job.job_index,
            "hosts": spec and spec.hosts,
            "chips": spec and spec.chips,
            "node_pool": spec and as_rest(self.order),
            "refused": refusal and {"reason": refusal.reason.value, "message": refusal.message},
        }


@dataclass(frozen=True, slots=True)
class Plan:
    slices: tuple[Planned, ...]
    skipped: tuple[str, ...]
    """Documents that request no slice, each with the reason."""
    warnings: tuple[str, ...] = ()
    """What may go wrong although there are slices, each with the remedy."""

    @property
    def refused(self) -> bool:
        return any(isinstance(planned.outcome, Refusal) for planned in self.slices)


def plan(manifests: Iterable[Manifest], settings: ClusterSettings, namespace: str) -> Plan:
    """Return the plan for JobSets and leader pods; `namespace` is that of manifests without one.

    NotAManifest: a manifest is invalid.
    """
    slices: list[Planned] = []
    skipped: list[str] = []
    warnings: list[str] = []
    for manifest in manifests:
        try:
            why = _why_skipped(manifest)
            if why is None:
                of = _of_pod if manifest.kind == "Pod" else _of_jobset
                slices += of(manifest, settings, namespace)
                warnings += caveats(manifest.body) if manifest.kind == "JobSet" else ()
            else:
                skipped.append(f"{manifest.where}: {why}")
        except ValueError as error:
            raise manifest.is_not(str(error)) from error
        except (TypeError, AttributeError, KeyError) as error:
            raise manifest.is_not(f"malformed {manifest.kind}: {error}") from error
    warnings += (each.outcome.caveat for each in slices if isinstance(each.outcome, SliceSpec) and each.outcome.caveat)
    return Plan(tuple(slices), tuple(skipped), tuple(dict.fromkeys(warnings)))


def _why_skipped(manifest: Manifest) -> str | None:
    body = manifest.body
    match manifest.kind:
        case "JobSet":
            if body["apiVersion"] != JOBSET_VERSION:
                raise ValueError(f"apiVersion: {body['apiVersion']} is not supported, only {JOBSET_VERSION}")
            if not isinstance(body.get("spec"), Mapping) or not body["spec"].get("replicatedJobs"):
                raise ValueError("spec.replicatedJobs is missing")
            if not is_served(body):
                return f"JobSet {manifest.metadata.get('name')} opted out, or is managed by another controller"
            name = manifest.metadata.get("name")
            return None if workloads.asks_for_tpu(body) else f"JobSet {name} requests no TPU chips"
        case "Pod":
            return (
                None
                if is_leader(body)
                else f"Pod {manifest.metadata.get('name')} is not the leader pod of a JobSet's Job"
            )
        case other:
            return f"{other} is neither a JobSet nor a Pod"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Owner:
    """The JobSet whose slices are planned."""

    settings: ClusterSettings
    namespace: str
    jobset: str
    uid: str | None
    """None: the JobSet is not created yet."""
    chips: int
    """The sum over all slices that the JobSet requests."""

    def asks(self, request: TemplateRequest, leader: WaitingLeader) -> Planned:
        """Return the plan for the Job of this leader."""
        settings = self.settings
        job = WorkloadJob(
            cluster=settings.cluster,
            owner=Owner(
                kind=OwnerKind.JOBSET,
                namespace=self.namespace,
                name=self.jobset,
                uid=WorkloadUid(self.uid or str(uuid5(NAMESPACE_URL, f"{self.namespace}/{self.jobset}"))),
            ),
            replicated_job=leader.replicated_job,
            job_index=leader.job_index,
        )
        outcome = spec_for(SliceRequest(job=job, request=request, leader=leader, jobset_chips=self.chips), settings)
        order = PoolOrder(
            cluster_path=settings.path,
            cluster_gke_id=settings.gke_id,
            slice_id=slice_id(job),
            attempt=1,
            job=job,
            spec=outcome if isinstance(outcome, SliceSpec) else None,
            settings=settings.pools,
        )
        return Planned(job, outcome, order, created=self.uid is not None)


def _of_jobset(manifest: Manifest, settings: ClusterSettings, namespace: str) -> Iterator[Planned]:
    requests = workloads.requests_of(manifest.body)
    metadata = manifest.metadata
    owner = _Owner(
        settings=settings,
        namespace=metadata.get("namespace") or namespace,
        jobset=_text(metadata, "name"),
        uid=metadata.get("uid"),
        chips=chips_requested(requests),
    )
    for request in requests:
        for index in range(request.replicas):
            yield owner.asks(request, WaitingLeader(replicated_job=request.replicated_job, job_index=index))


def _of_pod(manifest: Manifest, settings: ClusterSettings, namespace: str) -> Iterator[Planned]:
    leader = workloads.leader_of(manifest.body)
    request = workloads.request_of_pod(manifest.body, leader.replicated_job)
    labels = manifest.metadata["labels"]
    owner = _Owner(
        settings=settings,
        namespace=manifest.metadata.get("namespace") or namespace,
        jobset=labels[workloads.JOBSET_NAME],
        uid=labels.get(workloads.JOBSET_UID),
        chips=chips_requested([request]),
    )
    yield owner.asks(request, leader)


def _text(metadata: Mapping[str, Any], field: str) -> str:
    value = metadata.get(field)
    if not isinstance(value, str) or not value:
        raise ValueError(f"metadata.{field} is missing")
    return value
