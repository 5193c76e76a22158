"""Reads whose pod a v1 Pod is and how it is, from Kubernetes' JSON. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from relay.objects import WorkloadName
from relay.pod_status import status_of
from tpu_slices.domain.model.gangs import GANG
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.wire.gangs import gates_of
from tpu_slices.wire.leaders import LeaderOf

Json = Mapping[str, Any]


def fields_of_pod(obj: Json, member: LeaderOf) -> dict[str, Any]:
    """Return the fields of a JobPod; `member`: what the v1 Pod is one of."""
    metadata = obj["metadata"]
    return {
        "pod": metadata["name"],
        "pod_uid": metadata["uid"],
        "workload": WorkloadName(metadata["namespace"], member.name, member.kind),
        "workload_uid": WorkloadUid(member.uid) if member.uid else None,
        "job": member.job,
        "node": None if has_ended(obj) else obj["spec"].get("nodeName"),
        "status": status_of(obj),
        "created": created_at(obj),
        "gated": GANG in gates_of(obj),
    }


def created_at(obj: Json) -> datetime | None:
    """Return when an object was created; None: that is not said."""
    said = obj["metadata"].get("creationTimestamp")
    return datetime.fromisoformat(said) if said else None


def has_ended(pod: Json) -> bool:
    """Return whether all containers of a v1 Pod have ended for good."""
    return pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}
