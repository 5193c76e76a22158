"""Why a slice is not created, whatever capacity is free. Pure."""

from __future__ import annotations

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import EXCLUSIVE, GROUP_EXCLUSIVE
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import OwnerKind, SliceSpec
from tpu_slices.domain.planning.host_labels import NODE_POOL
from tpu_slices.domain.planning.obstacles import Obstacles
from tpu_slices.domain.planning.policy import Held, disallowed, over_budget
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.domain.records.slices import SliceRecord


def refusal_of(
    record: SliceRecord, settings: ClusterSettings, held: Held | None, limited: str | None = None
) -> Refusal | None:
    """Return why a slice must not be created; `held`: the chips that others hold, if the settings limit them.

    `limited`: why nothing is bought beyond what stands, while releases are stopped.

    | refused by                                      | until                                |
    |-------------------------------------------------|--------------------------------------|
    | a cluster that is retired                       | the cluster is resumed               |
    | the request itself                              | the request changes                  |
    | GKE or the scheduler, under these settings      | the request or the settings change   |
    | the policy                                      | the settings change                  |
    | pods that nothing keeps on one slice            | others are made, that something does |
    | a limit of chips                                | others release chips                 |
    | the brake                                       | the same, or an operator confirms    |
    """
    if settings.retired is not None:
        message = f"The cluster is being retired, so no slice is created in it any more: {settings.retired}"
        return Refusal(reason=Reason.CLUSTER_RETIRED, message=message)
    spec = record.spec
    if record.claim.refusal is not None or spec is None:
        return record.claim.refusal
    if record.claim.rejection is not None and record.claim.rejection.settings_version in {"", settings.version}:
        return Refusal(reason=record.claim.rejection.reason, message=record.claim.rejection.message)
    found = Obstacles()
    found.add(disallowed(spec, record.owner.namespace, settings.policy))
    if (refusal := found.refusal()) is not None:
        return refusal
    if spec.scatters:
        return not_together(record.owner.kind, spec)
    over = None if held is None else over_budget(spec, record.owner.namespace, held, settings.policy)
    if over:
        return Refusal(reason=Reason.CHIP_LIMIT_REACHED, message=f"{over}; retried automatically.")
    return Refusal(reason=Reason.PURCHASES_STOPPED, message=limited) if limited else None


def not_together(kind: OwnerKind, spec: SliceSpec) -> Refusal:
    """Return why no slice is created for pods that could come to several."""
    message = (
        "nothing keeps its pods on one slice: neither the admission policy nor the webhook has pinned them. Have the "
        f"operator of the cluster apply one, and {_ANEW[kind]}; or {together(kind, spec)}"
    )
    return Refusal(reason=Reason.PODS_NOT_PINNED, message=message)


_ANEW = {
    OwnerKind.JOBSET: "then create the JobSet again, or suspend and resume it",
    OwnerKind.JOB: "then create the Job again, or suspend and resume it",
    OwnerKind.LEADER_WORKER_SET: "then delete the group's leader pod, with which the others are made anew",
}


def together(kind: OwnerKind, spec: SliceSpec) -> str:
    """Return what keeps the pods of a slice on it, where nothing pins pods."""
    if kind is OwnerKind.JOB:
        return f"create a JobSet instead, with the annotation {EXCLUSIVE}: {NODE_POOL}"
    if spec.jobs > 1:
        return f"create the JobSet with one Job of {spec.jobs} pods, and with the annotation {EXCLUSIVE}: {NODE_POOL}"
    if kind is OwnerKind.LEADER_WORKER_SET:
        return f"create the {kind} with the annotation {GROUP_EXCLUSIVE}: {NODE_POOL} and leaders that request chips"
    return f"create the {kind} with the annotation {EXCLUSIVE}: {NODE_POOL}"
