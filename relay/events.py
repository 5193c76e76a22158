"""Updates of slices and workloads as Kubernetes Events. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any

from relay.objects import Leader, Reference
from tpu_slices.domain.model.reasons import UNUSED, OwnerReason, Phase, Reason, ReportReason, WorkloadReason
from tpu_slices.domain.model.slices import Owner
from tpu_slices.domain.model.texts import lasting, shortened
from tpu_slices.ports.publisher import NodeGroupUpdate, SliceUpdate, WorkloadUpdate
from tpu_slices.wire import reports

COMPONENT = "tpu-slice-provisioner"
MOST_CHARACTERS = 1024
"""The longest message of an Event (k8s.io/kubernetes pkg/apis/core/validation/events.go)."""

MOST_OF_A_NAME = 200
"""Characters kept of a workload's name: with its UID and a suffix they stay within the 253 of an object's name."""
REPORT_ANNOTATION = "tpu-provisioner.cloud.google.com/report"

_AS_TPU_PROVISIONER: Mapping[Reason, str] = MappingProxyType(
    {
        Reason.CREATION_STARTED: "NodePoolCreationStarted",
        Reason.READY: "NodePoolCreationSucceeded",
        Reason.CREATION_FAILED: "NodePoolCreationFailed",
        Reason.STOCKOUT: "NodePoolCreationFailed",
        Reason.QUOTA_EXCEEDED: "NodePoolCreationFailed",
        Reason.RESOURCES_EXHAUSTED: "NodePoolCreationFailed",
        Reason.RESERVATION_UNAVAILABLE: "NodePoolCreationFailed",
        Reason.RESERVATION_AWAITED: "NodePoolCreationFailed",
        Reason.IP_SPACE_EXHAUSTED: "NodePoolCreationFailed",
        Reason.DELETION_STARTED: "NodePoolDeletionStarted",
        Reason.RELEASED: "NodePoolDeletionSucceeded",
        Reason.DELETION_REFUSED: "NodePoolDeletionFailed",
    }
)
"""Reasons for which TPU Provisioner has a name, so that existing alerts still match; others keep their own."""

_UNSERVED: Mapping[OwnerReason, str] = MappingProxyType(
    {
        OwnerReason.NOT_SERVED: "not-served",
        OwnerReason.AWAITING_POD_GROUP: "pod-group",
        OwnerReason.GANG_NOT_HELD: "gang-not-held",
        OwnerReason.NOT_IN_GANG: "not-in-gang",
    }
)
"""How the names of these Events end."""

_WARNINGS = frozenset(
    {
        Reason.HOSTS_LOST,
        Reason.GKE_UPGRADES,
        Reason.GKE_REPAIRS,
        Reason.UNDER_MAINTENANCE,
        Reason.PREEMPTED,
        Reason.POOL_BROKEN,
        Reason.POOL_UNREADABLE,
        *UNUSED,
        Reason.RESERVATION_ENDS,
        Reason.DELETION_REFUSED,
    }
)
"""Reasons whose Event is a Warning in every phase."""


_TROUBLE = frozenset(
    {
        ReportReason.WAITING,
        ReportReason.BLOCKED,
        ReportReason.NOT_RUNNING,
        ReportReason.IDLE,
        ReportReason.GANG_CANNOT_FIT,
        ReportReason.GANG_LET_GO,
        ReportReason.GANG_YIELDED,
        ReportReason.GANG_HELD,
        ReportReason.GANG_REPAIRING,
    }
)


def reason_of(reason: Reason) -> str:
    return _AS_TPU_PROVISIONER.get(reason, reason.value)


def type_of(phase: Phase, reason: Reason) -> str:
    trouble = phase in {Phase.WAITING, Phase.REFUSED, Phase.BLOCKED} or reason in _WARNINGS
    return "Warning" if trouble else "Normal"


def event(update: SliceUpdate, leader: Leader | None) -> Mapping[str, Any]:
    """Return the v1 Event on the leader pod, or on the workload if no such pod is known.

    Its name is made of the slice and the number of the transition: an update that is delivered twice is one Event.
    """
    transition = update.transition
    at = _text(transition.at)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{update.slice_id}.{update.transition_number}", "namespace": update.job.owner.namespace},
        "involvedObject": _about(update, leader),
        "type": type_of(transition.phase, transition.reason),
        "reason": reason_of(transition.reason),
        "message": f"Slice {update.slice_id}: {transition.message}"[:MOST_CHARACTERS],
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": update.pool,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }


def summary(update: WorkloadUpdate) -> Mapping[str, Any]:
    """Return the v1 Event that reports on a workload's slices: one per reason, updated under the same name.

    An annotation has the same report as JSON, for programs.
    """
    report = update.report
    return {
        **_of_a_report(update, report.reason, report.message),
        "type": "Warning" if report.reason in _TROUBLE else "Normal",
        "firstTimestamp": _text(update.since or report.since),
        "lastTimestamp": _text(update.at),
        "count": update.count,
    }


def over(update: WorkloadUpdate) -> Mapping[str, Any] | None:
    """Return the Event of the report before, which was for another reason, as it reads from now on.

    It says until when that was so, and for how long. None: there was none.
    """
    ended = update.ended
    if ended is None or ended.until is None or ended.reason is update.report.reason:
        return None
    lasted = lasting(ended.until - ended.since)
    return {
        **_of_a_report(update, ended.reason, f"Until {ended.until:%H:%M:%S} UTC, for {lasted}: {ended.message}"),
        "type": "Normal",
        "firstTimestamp": _text(ended.since),
        "lastTimestamp": _text(ended.until),
    }


def _of_a_report(update: WorkloadUpdate, reason: ReportReason, message: str) -> Mapping[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{update.owner.name[:MOST_OF_A_NAME]}.{update.owner.uid}.{reason.lower()}",
            "namespace": update.owner.namespace,
            "annotations": {REPORT_ANNOTATION: reports.text(update.report) if reason is update.report.reason else None},
        },
        "involvedObject": _reference(update.owner),
        "reason": reason.value,
        "message": shortened(message, MOST_CHARACTERS),
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": update.owner.uid,
    }


def unserved(owner: Reference, reason: OwnerReason, message: str, at: datetime, since: datetime) -> Mapping[str, Any]:
    """Return the v1 Event that says why an object's pods get no slice: one per object and reason, as `summary`."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{owner.name[:MOST_OF_A_NAME]}.{owner.uid}.{_UNSERVED[reason]}",
            "namespace": owner.namespace,
        },
        "involvedObject": {
            "apiVersion": owner.api_version,
            "kind": owner.kind,
            "namespace": owner.namespace,
            "name": owner.name,
            "uid": owner.uid,
        },
        "type": "Warning",
        "reason": reason.value,
        "message": shortened(message, MOST_CHARACTERS),
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": owner.uid,
        "firstTimestamp": _text(since),
        "lastTimestamp": _text(at),
        "count": 1,
    }


def held_back(owner: Owner, message: str, at: datetime, since: datetime) -> Mapping[str, Any]:
    """Return the v1 Event that says why a workload waits that changes too often: one per workload, as `unserved`."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{owner.name[:MOST_OF_A_NAME]}.{owner.uid}.held-back", "namespace": owner.namespace},
        "involvedObject": _reference(owner),
        "type": "Warning",
        "reason": WorkloadReason.HELD_BACK.value,
        "message": shortened(message, MOST_CHARACTERS),
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": owner.uid,
        "firstTimestamp": _text(since),
        "lastTimestamp": _text(at),
        "count": 1,
    }


@dataclass(frozen=True, slots=True)
class Told:
    """What an Event on a TPUNodeGroup tells."""

    type: str
    reason: str
    message: str


def of_a_node_group(update: NodeGroupUpdate, told: Told) -> Mapping[str, Any]:
    """Return the v1 Event on a TPUNodeGroup; what one update tells is one Event, however often that is delivered."""
    owner, at = update.owner, _text(update.at)
    name = f"{owner.name}.{owner.uid}.{told.reason.lower()}.{update.at:%Y%m%d%H%M%S%f}"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": owner.namespace},
        "involvedObject": _reference(owner),
        "type": told.type,
        "reason": told.reason,
        "message": shortened(told.message, MOST_CHARACTERS),
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": update.slice_id,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }


def _reference(owner: Owner) -> Mapping[str, str]:
    about = {"namespace": owner.namespace, "name": owner.name, "uid": owner.uid}
    return {"apiVersion": owner.kind.api_version, "kind": owner.kind, **about}


def _text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _about(update: SliceUpdate, leader: Leader | None) -> Mapping[str, str]:
    if leader is None:
        return _reference(update.job.owner)
    kind = {"apiVersion": "v1", "kind": "Pod"}
    return {**kind, "namespace": leader.workload.namespace, "name": leader.pod, "uid": leader.pod_uid}
