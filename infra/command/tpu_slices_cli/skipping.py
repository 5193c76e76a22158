"""Which documents, and which replicatedJobs of a JobSet, get no slice although nothing is wrong with them. Pure.

| reason          | what                                                                               |
|-----------------|------------------------------------------------------------------------------------|
| RequestsNoTpu   | it requests no `google.com/tpu`                                                    |
| OptedOut        | a workload, all its templates, some of them, or a pod has `disable-autoprovisioning` |
| ManagedElsewhere| a JobSet's `spec.managedBy` names another controller                               |
| Ended           | a JobSet has completed, failed, or is being deleted                                |
| NoReplicas      | a replicatedJob has `replicas: 0`                                                  |
| NotServed       | another kind: `tpu_slices.wire.tpu_objects` has them all                           |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.domain.model.vendors import Vendor
from tpu_slices.wire import pods
from tpu_slices.wire.device_claims import Find, claimed_chips, nothing_known, why_not_by_claims
from tpu_slices.wire.jobs import why_nobody_leads
from tpu_slices.wire.leaders import leader_of_a_group, leader_of_a_job
from tpu_slices.wire.readers import OUT, Reader, elsewhere
from tpu_slices.wire.tpu_objects import controller_of, of_tpu_nodes, requests_chips, why_not_served
from tpu_slices.wire.workloads import CHIPS, Json, opted_out
from tpu_slices_cli.applied.pods import ByThemselves
from tpu_slices_cli.applied.world import named
from tpu_slices_cli.manifests import Manifest


class SkipReason(StrEnum):
    """Why a document, or a part of one, gets no slice."""

    REQUESTS_NO_TPU = "RequestsNoTpu"
    OPTED_OUT = "OptedOut"
    MANAGED_ELSEWHERE = "ManagedElsewhere"
    ENDED = "Ended"
    NO_REPLICAS = "NoReplicas"
    NOT_SERVED = "NotServed"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A document, or a part of one, that gets no slice."""

    manifest: Manifest
    reason: SkipReason
    message: str
    """What is skipped, why, and what to do."""

    def as_json(self) -> dict[str, Any]:
        metadata = self.manifest.metadata
        return {
            "where": self.manifest.where,
            "kind": self.manifest.kind,
            **{key: None if metadata.get(key) is None else str(metadata[key]) for key in ("namespace", "name")},
            "reason": self.reason.value,
            "message": self.message,
        }


Why = tuple[SkipReason, str]
"""The reason, and a text with what is skipped, why, and what to do."""


def skip_workload(obj: Json, reader: Reader, find: Find = nothing_known) -> Why | None:
    """Return why a workload gets no slices as a whole; ValueError: a template is malformed."""
    what = named(obj)
    if requests_chips(obj) or reader.kind.declares:
        if opted_out(obj) and not reader.kind.declares:
            return SkipReason.OPTED_OUT, f"{what} {OUT}"
        if obj["spec"].get("managedBy") and not reader.is_served(obj):
            return SkipReason.MANAGED_ELSEWHERE, f"{what}: {elsewhere(obj['spec']['managedBy'])}"
        state = reader.state(obj)
        if state not in {WorkloadState.ACTIVE, WorkloadState.SUSPENDED}:
            return SkipReason.ENDED, f"{what} is {state.lower()}, and needs no slices any more"
    if not reader.asks_for_tpu(obj):
        return _without_chips(obj, find)
    why = reader.not_ours(obj)
    return (SkipReason.NOT_SERVED, f"{what} gets no slice: {why}") if why else None


def skipped_templates(jobset: Json, reader: Reader, find: Find = nothing_known) -> Iterator[Why]:
    """Yield which parts of a workload with chips get no slices, and why: replicatedJobs, or all of another kind."""
    if reader.kind is not OwnerKind.JOBSET:
        if not reader.is_served(jobset):
            yield SkipReason.OPTED_OUT, f"{named(jobset)}: its pod template {OUT}"
        return
    with_chips = [job for job in jobset["spec"]["replicatedJobs"] if requests_chips(job["template"])]
    yield from _claiming_templates(jobset, find)
    out = [job for job in with_chips if opted_out(job["template"]["spec"]["template"])]
    if out:
        names = ", ".join(str(job["name"]) for job in out)
        whose = "every replicatedJob with TPU" if len(out) == len(with_chips) else "replicatedJob"
        yield SkipReason.OPTED_OUT, f"{named(jobset)}: {whose} ({names}) {OUT}"
    for job in with_chips:
        if job in out:
            continue
        if why := leaderless(jobset).get(job["name"]):
            yield SkipReason.NOT_SERVED, f"{named(jobset)}: replicatedJob {job['name']} gets no slice: {why}"
        elif job.get("replicas", 1) == 0:
            yield SkipReason.NO_REPLICAS, f"{named(jobset)}: replicatedJob {job['name']} has 0 replicas"


def _claiming_templates(jobset: Json, find: Find) -> Iterator[Why]:
    for job in jobset["spec"]["replicatedJobs"]:
        claims = claimed_chips(job["template"], find)
        if claims and not opted_out(job["template"]["spec"]["template"]):
            why = why_not_by_claims(claims)
            yield SkipReason.NOT_SERVED, f"{named(jobset)}: replicatedJob {job['name']} gets no slice: {why}"


def leaderless(jobset: Json) -> Mapping[str, str]:
    """Return the replicatedJobs of a JobSet without a pod that leads, each with why, as a clause with the remedy."""
    jobs: Iterable[Json] = jobset["spec"].get("replicatedJobs") or ()
    return {str(job["name"]): why for job in jobs if (why := why_nobody_leads(jobset, job))}


def skip_other(obj: Json, vendor: Vendor, find: Find = nothing_known) -> Why | None:
    """Return why an object that is no workload of ours gets no slice; None: it is a leader pod."""
    if obj["kind"] == "Pod" and (leader_of_a_job(obj) or leader_of_a_group(obj)) and requests_chips(obj):
        return (SkipReason.OPTED_OUT, f"{named(obj)} {OUT}") if opted_out(obj) else None
    why = why_not_served(obj, vendor)
    return (SkipReason.NOT_SERVED, why) if why else _without_chips(obj, find)


def skip_served(obj: Json, served: ByThemselves) -> Why | None:
    """Return why pods get no slice each although the cluster serves such; ValueError: a template is malformed."""
    what = named(obj)
    if opted_out(served.pod):
        return SkipReason.OPTED_OUT, f"{what} {OUT}"
    if not served.replicas:
        return SkipReason.NO_REPLICAS, f"{what} has 0 replicas"
    if (by := controller_of(obj)).kind != obj["kind"] and obj["kind"] != "Pod":
        return SkipReason.NOT_SERVED, f"{what} belongs to {by.kind} {by.name}, whose pods get the slices: plan that one"
    unpinned = pods.UNPINNED if "uid" in obj["metadata"] and obj["kind"] == "Pod" and not pods.key_of(obj) else ""
    why = pods.not_ours(served.pod) or unpinned
    return (SkipReason.NOT_SERVED, f"{what} gets no slice: {why}") if why else None


def _without_chips(obj: Json, find: Find) -> Why:
    if claims := claimed_chips(obj, find):
        return SkipReason.NOT_SERVED, f"{named(obj)} gets no slice: {why_not_by_claims(claims)}"
    before = of_tpu_nodes(obj)
    if before is None:
        return SkipReason.REQUESTS_NO_TPU, f"{named(obj)} requests no TPU chips"
    return SkipReason.NOT_SERVED, (
        f"{named(obj)} gets no slice: it requests {before}, which was for TPU Nodes and which no host offers: request "
        f"{CHIPS}, and select an accelerator and a topology"
    )
