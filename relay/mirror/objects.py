"""The objects of the mirror, as the API server gets them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple

from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import ClusterId, Owner
from tpu_slices.domain.model.texts import DIGEST_BITS
from tpu_slices.domain.records.mirror import Mirrored, MirrorKind, SliceShown, WorkloadShown
from tpu_slices.domain.records.workloads import Report, Wait

GROUP, VERSION = "tpu-provisioner.cloud.google.com", "v1alpha1"
PLURALS: Mapping[MirrorKind, str] = MappingProxyType(
    {MirrorKind.SLICE: "tpuslices", MirrorKind.WORKLOAD: "tpuworkloads"}
)
MIRRORS = "tpumirrors"
NAME = "tpu-slice-provisioner"
"""Of the only TPUMirror of a cluster, by which people know how old their knowledge is."""
DIGEST, UID = f"{GROUP}/digest", f"{GROUP}/workload-uid"
OBSERVED = f"{GROUP}/observed-at"
AHEAD = timedelta(minutes=10)
"""How far another clock may be ahead of the relay's."""

Json = Mapping[str, Any]


class Kept(NamedTuple):
    """What is known of an object that is there."""

    digest: int
    at: datetime
    """When what it shows was told."""
    uid: str


def object_of(told: Mirrored, at: datetime) -> Json:
    """Return an object as it is to be, with the time as of which it is known."""
    shown: Json = {}
    if told.slice is not None:
        shown = _slice(told.slice, told.price)
    elif told.workload is not None:
        shown = _workload(told.workload)
    owners = {"ownerReferences": [_reference(told.workload.owner)]} if told.workload is not None else {}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": told.kind.value,
        "metadata": {
            "name": told.name,
            "namespace": told.namespace,
            "annotations": {DIGEST: str(told.digest), UID: told.uid, OBSERVED: at.isoformat()},
            **owners,
        },
        "status": {**shown, "observedAt": text(at)},
    }


def kept(metadata: Json, now: datetime) -> Kept | None:
    """Return what is known of an object by its metadata; None: it is none of ours, or somebody edited that.

    Whoever may write objects in a namespace may write anything there. All digests are added up in the heartbeat, which
    is none with a number that no digest is; and an object of a time to come would be newer than all that is told.
    """
    annotations = metadata.get("annotations") or {}
    try:
        at, digest = datetime.fromisoformat(annotations[OBSERVED]), int(annotations[DIGEST])
        ours = at.tzinfo is not None and at - now <= AHEAD and 0 <= digest < 1 << DIGEST_BITS
        return Kept(digest, at, annotations[UID]) if ours else None
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def confirmation(cluster: ClusterId, at: datetime) -> Json:
    """Return the TPUMirror once all objects are known to have been right at that time."""
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "TPUMirror",
        "metadata": {"name": NAME},
        "status": {"cluster": cluster, "confirmedAt": text(at)},
    }


def text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _slice(shown: SliceShown, price: str) -> Json:
    return {
        "workload": _about(shown.owner),
        "job": shown.job,
        "claimed": shown.claimed,
        "phase": shown.phase.value,
        "reason": shown.reason.value,
        "message": shown.message,
        "since": text(shown.since),
        "createdAt": text(shown.created_at),
        "hosts": shown.hosts,
        "inUse": shown.in_use,
        "chips": shown.chips,
        "accelerator": shown.accelerator,
        "topology": shown.topology,
        "zone": shown.zone,
        "capacity": shown.capacity,
        "place": shown.place,
        "nodePool": shown.pool,
        "held": shown.held,
        "usdPerHour": price,
        "retryAt": text(shown.retry_at) if shown.retry_at is not None else "",
        "conditions": [_condition("Ready", shown, holds=shown.phase is Phase.READY)],
    }


def _workload(shown: WorkloadShown) -> Json:
    report = shown.report
    return {
        "workload": _about(shown.owner),
        "state": shown.state.value,
        "reason": report.reason.value,
        "message": report.message,
        "since": text(report.since),
        "slices": f"{report.ready}/{report.requested}",
        "waits": [_wait(wait) for wait in report.waits],
        "conditions": [_condition("SlicesReady", report, holds=report.reason.serves)],
    }


def _condition(type_: str, said: SliceShown | Report, *, holds: bool) -> Json:
    return {
        "type": type_,
        "status": "True" if holds else "False",
        "reason": said.reason.value,
        "message": said.message,
        "lastTransitionTime": text(said.since),
    }


def _wait(wait: Wait) -> Json:
    return {
        "phase": wait.phase.value,
        "reason": wait.reason.value,
        "jobs": list(wait.jobs),
        "count": wait.count,
        "message": wait.message,
        "since": text(wait.since),
        "retryAt": text(wait.retry_at) if wait.retry_at is not None else "",
        "remedy": wait.remedy,
    }


def _about(owner: Owner) -> Json:
    return {"kind": owner.kind.value, "name": owner.name, "uid": owner.uid}


def _reference(owner: Owner) -> Json:
    """Return what lets an object end with its workload: the garbage collector deletes it."""
    return {"apiVersion": owner.kind.api_version, "kind": owner.kind.value, "name": owner.name, "uid": owner.uid}
