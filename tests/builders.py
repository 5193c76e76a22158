"""Realistic examples of domain values; a test overrides what it is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tpu_slices.domain.model.clusters import ClusterSettings, ComputeSettings, Join, PoolSettings
from tpu_slices.domain.model.facts import (
    Family,
    HostsChanged,
    Listed,
    Occupant,
    SlicesWanted,
    TemplateRequest,
    WaitingLeader,
    WorkloadRef,
    WorkloadState,
)
from tpu_slices.domain.model.joining import JoinToken
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import (
    ClaimId,
    ClusterId,
    Owner,
    OwnerKind,
    SliceSpec,
    WorkloadJob,
    WorkloadUid,
    claim_id,
    slice_id,
)
from tpu_slices.domain.planning.specs import SliceRequest, spec_for
from tpu_slices.domain.reconciling.case import Known
from tpu_slices.domain.records.attempts import Attempt
from tpu_slices.domain.records.awaited import PoolOperation, Shortage
from tpu_slices.domain.records.claims import NO_CLAIM, Claim
from tpu_slices.domain.records.heartbeats import Compared, RelayHeard, RelayHeartbeat
from tpu_slices.domain.records.hosts import Asked, Hosts
from tpu_slices.domain.records.limiters import Slot
from tpu_slices.domain.records.queues import capacity_pool_of
from tpu_slices.domain.records.slices import Desire, SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CLUSTER = ClusterId("demo")
MINUTE = timedelta(minutes=1)


def settings(**changes: Any) -> ClusterSettings:
    fields = {
        "cluster": CLUSTER,
        "version": "settings-1",
        "path": "projects/demo-project/locations/us-central2/clusters/demo",
        "zone": "us-central2-b",
    }
    return ClusterSettings(**{**fields, **changes})


def self_managed(compute: ComputeSettings | None = None, **changes: Any) -> ClusterSettings:
    """Return the settings of a self-managed cluster on Compute Engine."""
    made = compute or ComputeSettings(image="projects/images/global/images/family/tpu")
    path = "projects/demo-project/locations/us-central2"
    return settings(**{"path": path, "pools": PoolSettings(compute=made), **changes})


def joining_by_kubeadm(**changes: Any) -> ClusterSettings:
    """Return the settings of a self-managed cluster whose hosts join with a token."""
    compute = ComputeSettings(
        image="projects/images/global/images/family/tpu",
        join=Join.KUBEADM,
        control_plane="10.0.0.2:6443",
        kubernetes="1.36",
    )
    return self_managed(compute, **changes)


def a_token(**changes: Any) -> JoinToken:
    fields: dict[str, Any] = {
        "slice_id": claim_id(a_job()),
        "attempt": 1,
        "token": "abcdef.0123456789abcdef",
        "ca_hashes": (f"sha256:{'5a' * 32}",),
        "expires_at": NOW + 30 * MINUTE,
    }
    return JoinToken(**{**fields, **changes})


def a_request(accelerator: str = "tpu-v6e-slice", topology: str = "4x4", **changes: Any) -> TemplateRequest:
    selector = {
        "cloud.google.com/gke-tpu-accelerator": accelerator,
        "cloud.google.com/gke-tpu-topology": topology,
    }
    fields: dict[str, Any] = {
        "replicated_job": "slice",
        "replicas": 4,
        "accelerator": accelerator,
        "topology": topology,
        "chips_per_pod": 4,
        "first_job": 0,
        "node_selector": tuple(selector.items()),
    }
    return TemplateRequest(**{**fields, **changes})


def a_leader(index: int = 0, **changes: Any) -> WaitingLeader:
    return WaitingLeader(**{"replicated_job": "slice", "job_index": index, **changes})


def a_spec(**changes: Any) -> SliceSpec:
    request = SliceRequest(job=a_job(), request=a_request(), leader=a_leader(), jobset_chips=64)
    spec = spec_for(request, settings())
    assert isinstance(spec, SliceSpec)
    return replace(spec, **changes)


def an_owner(name: str = "llama", **changes: Any) -> Owner:
    fields = {"kind": OwnerKind.JOBSET, "namespace": "research", "name": name, "uid": WorkloadUid(f"uid-{name}")}
    return Owner(**{**fields, **changes})


def _owned(changes: dict[str, Any]) -> dict[str, Any]:
    """Return the changes with an `owner`: with its `namespace`, `name` and `uid`, unless it is itself among them."""
    owner = {key: changes.pop(key) for key in ("namespace", "name", "uid") if key in changes}
    return {"owner": replace(an_owner(), **owner), **changes}


def a_job(**changes: Any) -> WorkloadJob:
    fields: dict[str, Any] = {"cluster": CLUSTER, "replicated_job": "slice", "job_index": 0}
    return WorkloadJob(**{**fields, **_owned(changes)})


def a_jobset_ref(**changes: Any) -> WorkloadRef:
    fields: dict[str, Any] = {
        "generation": 1,
        "resource_version": "100",
    }
    return WorkloadRef(**{**fields, **_owned(changes)})


def leaders_wait(*indexes: int, **changes: Any) -> SlicesWanted:
    fields: dict[str, Any] = {
        "workload": a_jobset_ref(),
        "requests": (a_request(),),
        "waiting": tuple(WaitingLeader(replicated_job="slice", job_index=index) for index in indexes or (0,)),
    }
    return SlicesWanted(**{**fields, **changes})


def an_occupant(jobset: str = "llama", **changes: Any) -> Occupant:
    fields: dict[str, Any] = {
        "generation": 1,
        "replicated_job": "slice",
        "job_index": 0,
        "pod_uid": f"pod-{jobset}-0",
    }
    return Occupant(**{**fields, **_owned({"name": jobset, "uid": WorkloadUid(f"uid-{jobset}"), **changes})})


def hosts_changed(**changes: Any) -> HostsChanged:
    """Return a report of four usable hosts with nobody on them."""
    fields: dict[str, Any] = {
        "slice_id": claim_id(a_job()),
        "attempt": 1,
        "usable": 4,
        "joined": 4,
        "closed": 0,
        "occupants": (),
        "sequence": 1,
        "asked_at": NOW - MINUTE if changes.get("answers") else None,
    }
    return HostsChanged(**{**fields, **changes})


def some_hosts(**changes: Any) -> Hosts:
    """Return four usable hosts that were reported with nobody on them; no question is above the one `asked`."""
    fields: dict[str, Any] = {"usable": 4, "joined": 4, "sequence": 1, "vacant_since": NOW - timedelta(hours=1)}
    if changes.get("occupants"):
        fields["vacant_since"] = None
    if changes.get("asked"):
        fields["highest"] = changes["asked"].number
    return Hosts(**{**fields, **changes})


def asked_to_close(at: datetime = NOW - MINUTE, number: int = 1, **changes: Any) -> Asked:
    return Asked(**{"number": number, "at": at, "close": True, **changes})


def asked_to_open(at: datetime = NOW - MINUTE, number: int = 1, key: str = "") -> Asked:
    return asked_to_close(at, number, close=False, key=key)


def heard(**changes: Any) -> Known:
    """Return what is known while the relay has been heard for long."""
    relay = RelayHeard(last_at=NOW, since=NOW - timedelta(hours=8))
    return Known(**{"relay": relay, **changes})


def a_heartbeat(**changes: Any) -> RelayHeartbeat:
    """Return what is stored of a relay that was just heard and sees one JobSet; nothing was compared yet."""
    return RelayHeartbeat(**{"cluster": CLUSTER, "received_at": NOW, "count": 1, **changes})


def a_list(family: Family, digests: Mapping[str, int], **changes: Any) -> Listed:
    """Return the only part of a list that was asked for now."""
    fields: dict[str, Any] = {"asked_at": NOW, "after": None, "up_to": None, "part": 0, "parts": 1, "sequence": 1}
    return Listed(family=family, digests=digests, **{**fields, **changes})


def compared(family: Family, confirmed_at: datetime | None = None, asked_at: datetime | None = None) -> dict[str, Any]:
    """Return the fields of a heartbeat's document of which one family was compared."""
    parts = () if confirmed_at is None else (confirmed_at,)
    return {"families": {family: Compared(parts=parts, asked_at=asked_at)}}


def a_jobset(**changes: Any) -> WorkloadRecord:
    fields: dict[str, Any] = {
        "cluster": CLUSTER,
        "state": WorkloadState.ACTIVE,
        "generation": 1,
        "resource_version": "100",
        "demand": {claim_id(a_job()): NOW},
        "state_since": NOW,
        "last_seen_at": NOW,
    }
    return WorkloadRecord(**{**fields, **_owned(changes)})


_CURRENT = frozenset(
    {
        *(
            "create_requested_at",
            "ordered",
            "ours_since",
            "seen",
            "operation",
            "made_by",
            "slot",
            "hosts",
            "spared_until",
        ),
        *("hosts_awaited_since", "returning", "unreadable_since", "relabelling", "empty", "delete_requested_at"),
        *("not_cancellable", "cancel_refused", "refused", "hindered", "warm"),
    }
)
"""The fields of a slice's current attempt, by which tests change it."""
_CLAIM = frozenset(field.name for field in fields(Claim))


def an_attempt(number: int = 1, chips: int | None = None, **changes: Any) -> Attempt:
    """Return an attempt; with chips, one that was ordered an hour ago."""
    made = Attempt(number=number)
    if chips is not None:
        spec = a_spec(hosts=chips // a_spec().chips_per_host)
        made = replace(made, ordered=spec, create_requested_at=NOW - timedelta(hours=1))
    return replace(made, **changes)


def with_fields(record: SliceRecord, **changes: Any) -> SliceRecord:
    """Return a slice with these fields, among them those of its claim and of its current attempt.

    Its number is `attempt`; since when its deletion is tried again `delete_again_at`.
    """
    current = {name: changes.pop(name) for name in list(changes) if name in _CURRENT}
    claim = {name: changes.pop(name) for name in list(changes) if name in _CLAIM}
    if "earlier" in claim:
        claim["earlier"] = tuple(slice_id(record.last_claim, number) for number in claim["earlier"])
    named = {"attempt": "number", "delete_again_at": "retry_at"}
    current |= {field: changes.pop(name) for name, field in named.items() if name in changes}
    changed = replace(record, **changes).with_claim(**claim).with_current(**current)
    return changed if "usages" in changes else replace(changed, usages=()).used(changed.created_at)


def had(record: SliceRecord) -> tuple[int, ...]:
    """Return the numbers of the slices that a claim had before."""
    return tuple(int(each.rpartition("-")[2]) for each in record.claim.earlier)


def a_record(**changes: Any) -> SliceRecord:
    """Return a slice that is in demand, and nothing done about it yet; its fields as in `with_fields`."""
    made = SliceRecord.of(changes.pop("job", a_job()), NOW, a_spec())
    tried = max(changes.get("attempt", 1), changes.get("tried", 1), *changes.get("earlier", ()), 1)
    return with_fields(made, **{"demand_confirmed_at": NOW, **changes, "tried": tried})


def unclaimed(record: SliceRecord, **changes: Any) -> SliceRecord:
    """Return a slice like this one that no claim has; its fields as in `with_fields`."""
    why = "its creation failed"
    gone = {"desire": Desire.ABSENT, "desire_message": why, "let_go": why, "claim": NO_CLAIM, "claimed_by": None}
    return with_fields(record, **{**gone, **changes})


def a_slot(number: int = 0, **changes: Any) -> Slot:
    fields: dict[str, Any] = {
        "cluster": CLUSTER,
        "number": number,
        "slice_id": ClaimId(f"tpu-other-{number}-aaaaaaaaaaaaa"),
        "namespace": "research",
        "operation": PoolOperation.CREATE,
        "attempt": 1,
        "capacity_pool": capacity_pool_of(a_spec()),
        "taken_at": NOW,
        "hosts": 4,
    }
    return Slot(**{**fields, **changes})


def a_shortage(at: datetime = NOW, **changes: Any) -> Shortage:
    return Shortage(**{"at": at, "reason": Reason.STOCKOUT, **changes})
