"""TPUNodeGroups as the API server returns them, and an API server in memory that takes what the relay writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.builders import NOW, an_owner, with_fields
from tests.domain.reporting.test_node_groups import a_group, a_group_record, hosts
from tests.node_groups import two_hosts
from tpu_slices.domain.model.node_groups import FINALIZER
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import ClaimId, Owner, OwnerKind, WorkloadUid
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.reporting.node_groups import status_of
from tpu_slices.ports.errors import Temporary
from tpu_slices.ports.publisher import NodeGroupUpdate
from tpu_slices_simulator.objects import patched

Json = dict[str, Any]

OWNER = an_owner("my-group", kind=OwnerKind.TPU_NODE_GROUP, namespace="default", uid=WorkloadUid("u-7"))
SLICE = a_group_record().maker


def group(version: int = 7, *, held: bool = True, deleted: bool = False, **parts: Any) -> Json:
    """Return a TPUNodeGroup; `metadata`, `spec` and `status` override its fields."""
    written = two_hosts("my-group")
    metadata = {**written["metadata"], "uid": "u-7", "generation": 1, "resourceVersion": str(version)}
    if held:
        metadata["finalizers"] = [FINALIZER]
    if deleted:
        metadata |= {"deletionTimestamp": "2026-11-24T12:00:00Z", "generation": 2}
    return {
        **written,
        "metadata": {**metadata, **parts.get("metadata", {})},
        "spec": {**written["spec"], **parts.get("spec", {})},
        "status": parts.get("status", {}),
    }


def update(record: SliceRecord, at: datetime = NOW, **own: Any) -> NodeGroupUpdate:
    """Return what the functions say of a group whose slice has this record."""
    status = status_of(record, a_group(**{"owner": OWNER, **own}))
    return NodeGroupUpdate(owner=OWNER, slice_id=SLICE, status=status, at=at)


def at_ready() -> SliceRecord:
    return with_fields(a_group_record().transitioned(NOW, Reason.READY, "All 2 hosts are ready."), hosts=hosts(2))


@dataclass
class FakeGroups:
    """One group, Node objects and Events; every call raises `error` if it is set."""

    stored: Json | None = field(default_factory=group)
    nodes: list[str] = field(default_factory=list)
    events: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    written: int = 0
    keeps_nodes: bool = False
    lack_chips: bool = False
    error: Exception | None = None

    def workload(self, owner: Owner) -> Json | None:
        self._fail()
        return self.stored if owner.full_name == OWNER.full_name else None

    def post(self, event: Mapping[str, Any]) -> None:
        self._fail()
        self.events.setdefault(event["metadata"]["name"], event)

    def patch_group(self, owner: Owner, patch: Mapping[str, Any]) -> None:
        self._write(owner, patch)
        assert self.stored is not None
        if "deletionTimestamp" in self.stored["metadata"] and not self.stored["metadata"]["finalizers"]:
            self.stored = None

    def patch_group_status(self, owner: Owner, patch: Mapping[str, Any]) -> None:
        self._write(owner, patch)

    def nodes_of_slice(self, slice_id: ClaimId) -> Mapping[str, int]:
        return {name: int(name.split("-")[-2]) for name in self.nodes if name.startswith(slice_id)}

    def delete_node(self, node: str) -> None:
        self._fail()
        if self.keeps_nodes:
            raise Temporary("the API server refused: 403 Forbidden")
        self.nodes.remove(node)

    @property
    def reasons(self) -> list[str]:
        return [event["reason"] for event in self.events.values()]

    @property
    def conditions(self) -> dict[str, Json]:
        assert self.stored is not None
        return {each["type"]: each for each in self.stored["status"].get("conditions", ())}

    def _write(self, owner: Owner, patch: Mapping[str, Any]) -> None:
        self._fail()
        assert self.stored is not None
        assert owner.full_name == OWNER.full_name
        assert patch["metadata"]["resourceVersion"] == self.stored["metadata"]["resourceVersion"]
        self.written += 1
        version = str(int(self.stored["metadata"]["resourceVersion"]) + 1)
        self.stored = patched(patched(self.stored, patch), {"metadata": {"resourceVersion": version}})

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


@dataclass
class FakePods:
    """Pods by node; those in `kept` are not evicted."""

    pods: dict[str, list[Json]] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    error: Exception | None = None

    def pods_on(self, node: str) -> Sequence[Json]:
        if self.error is not None:
            raise self.error
        return list(self.pods.get(node, ()))

    def evict(self, namespace: str, pod: str) -> None:
        self.asked.append(f"{namespace}/{pod}")
        if pod not in self.kept:
            for found in self.pods.values():
                found[:] = [each for each in found if each["metadata"]["name"] != pod]
