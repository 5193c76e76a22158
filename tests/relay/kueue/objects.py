"""Kueue's objects as the API server returns them, for tests to vary, and calls with a memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from relay.kueue.objects import AdmissionCheck, Queued, queued
from relay.kueue.rules import Finding
from tpu_slices.domain.model.gangs import ADMISSION_CHECKS

Json = dict[str, Any]
THEN = "2026-11-01T12:00:00Z"
OURS = frozenset({"tpu-slices"})
JOBSET = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "llama", "uid": "u-1", "controller": True}


def check(state: str = "Pending", name: str = "tpu-slices", message: str = "", **more: Any) -> Json:
    return {"name": name, "state": state, "message": message, "lastTransitionTime": THEN, **more}


def admission_check(name: str = "tpu-slices", controller: str = ADMISSION_CHECKS, **parts: Any) -> Json:
    metadata = {"name": name, "uid": f"check-{name}", "resourceVersion": "5"}
    spec = {"controllerName": controller, **parts.pop("spec", {})}
    return {"metadata": metadata, "spec": spec, **parts}


def flavor(name: str = "v5e", **spec: Any) -> Json:
    return {"metadata": {"name": name, "uid": f"flavor-{name}", "resourceVersion": "6"}, "spec": spec}


def workload(*checks: Json, version: int = 50, owner: Json | None = None, **parts: Any) -> Json:
    """Return a Workload with quota; `conditions` (types and their statuses) and `spec` vary it."""
    conditions = {"QuotaReserved": "True", **parts.pop("conditions", {})}
    said = [{"type": type_, "status": status, "lastTransitionTime": THEN} for type_, status in conditions.items()]
    assigned = [{"name": "workers", "flavors": {"google.com/tpu": "v5e"}}]
    status: Json = {"conditions": said, "admissionChecks": [*(checks or (check(),))]}
    if conditions["QuotaReserved"] == "True":
        status["admission"] = {"clusterQueue": "research", "podSetAssignments": assigned}
    metadata = {
        "namespace": "research",
        "name": parts.pop("name", "jobset-llama-1a2b3"),
        "uid": parts.pop("uid", "w-1"),
        "resourceVersion": str(version),
        "ownerReferences": [JOBSET if owner is None else owner],
        **parts.pop("metadata", {}),
    }
    return {"metadata": metadata, "spec": {"active": True, **parts.pop("spec", {})}, "status": status}


def read(*checks: Json, **parts: Any) -> Queued:
    found = queued(workload(*checks, **parts))
    assert found is not None
    return found


@dataclass
class FakeCalls:
    """Keeps what was written, and fails as it is told."""

    written: list[tuple[str, Finding]] = field(default_factory=list)
    announced: list[tuple[str, bool]] = field(default_factory=list)
    fails: dict[str, Exception] = field(default_factory=dict)
    late: bool = False
    """Whether each Workload is another by now."""
    asking: bool = True

    def apply(self, to: Queued, ours: frozenset[str], finding: Finding, now: datetime) -> bool:
        del ours, now
        if to.uid in self.fails:
            raise self.fails[to.uid]
        if not self.late:
            self.written.append((to.uid, finding))
        return not self.late

    def announce(self, check: AdmissionCheck, *, active: bool, message: str, now: datetime) -> None:
        del message, now
        self.announced.append((check.name, active))

    def asks_us(self, queued: Queued) -> bool:
        del queued
        return self.asking
