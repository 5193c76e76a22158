from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.builders import MINUTE, NOW, a_job, a_jobset, a_record, a_spec, an_occupant, some_hosts
from tests.wire.values import values_of
from tpu_slices.domain.model.clusters import PoolSettings
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.records import SliceRecord
from tpu_slices.domain.model.slices import LAST_ATTEMPT, Network, Taint
from tpu_slices.domain.model.workloads import WorkloadRecord
from tpu_slices.domain.reconciling.inventory import RelayHeartbeat
from tpu_slices.domain.reconciling.limiter import Budget, ConcurrencyLimiter, Slot
from tpu_slices.domain.reporting.reports import report
from tpu_slices.domain.reporting.waits import QueueState
from tpu_slices.ports.errors import Permanent
from tpu_slices.ports.store import Record
from tpu_slices.wire.documents import SCHEMA, decode, encode, key_of

KINDS = (WorkloadRecord, SliceRecord, Slot, ConcurrencyLimiter, Budget, RelayHeartbeat)
NATIVE = (str, int, bool, datetime, dict, list, type(None))


def parts_of(value: Any) -> list[Any]:
    """Return every value in a document, at any depth."""
    match value:
        case dict():
            return [value, *value, *(part for member in value.values() for part in parts_of(member))]
        case list():
            return [value, *(part for member in value for part in parts_of(member))]
        case _:
            return [value]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@hypothesis_settings(max_examples=25)
@given(data=st.data())
def test_every_record_is_decoded_unchanged(kind: type[Record], data: st.DataObject) -> None:
    record = data.draw(values_of(kind))

    assert decode(kind, encode(record)) == record


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_a_document_holds_only_what_firestore_can_hold(kind: type[Record], data: st.DataObject) -> None:
    parts = parts_of(encode(data.draw(values_of(kind))))

    assert {type(part) for part in parts} <= set(NATIVE)
    assert not [part for part in parts if isinstance(part, list) and any(isinstance(member, list) for member in part)]


A_SLICE = {
    "schema": 1,
    "id": "tpu-llama-slice-0-oahqlz77blgqd",
    "pool": "tpu-llama-slice-0-oahqlz77blgqd-1",
    "job_name": "llama-slice-0",
    "cluster": "demo",
    "owner": {"kind": "JobSet", "namespace": "research", "name": "llama", "uid": "uid-llama"},
    "replicated_job": "slice",
    "job_index": 0,
    "spec": {
        "accelerator": "tpu-v5-lite-podslice",
        "topology": "4x4",
        "machine_type": "ct5lp-hightpu-4t",
        "hosts": 4,
        "chips_per_host": 4,
        "placement": "COMPACT",
        "boot_disk": "pd-balanced",
        "zone": "us-central2-b",
        "capacity": {"kind": "ON_DEMAND", "reservation": None},
        "node_labels": {"team": "research"},
        "copied_labels": [],
        "taints": [{"key": "cloud.google.com/gke-spot", "value": "true"}],
        "service_account": None,
        "networks": [{"network": "vpc-2", "subnetwork": "subnet-2"}],
        "exclusive_nodes": False,
        "jobset_chips": 64,
        "fingerprint": "v1-abcdefghijklm",
    },
    "refusal": None,
    "rejection": None,
    "rebuild_allowed": False,
    "pinned_settings": {
        "service_account": None,
        "boot_disk_gb": 100,
        "boot_disk_type": None,
        "boot_disk_kms_key": None,
        "confidential_storage": False,
        "secondary_boot_disk": None,
        "image_streaming": False,
        "max_pods_per_node": 15,
        "auto_upgrade": True,
        "secure_boot": True,
        "integrity_monitoring": True,
        "network_tags": [],
        "additional_networks": [],
        "workload_policy": "tpu-provisioner-{topology}",
        "resource_labels": {"cost-centre": "research"},
    },
    "desire": "PRESENT",
    "desire_message": "",
    "demand_confirmed_at": NOW,
    "phase": "PROVISIONING",
    "reason": "HostsJoining",
    "message": "3 of 4 hosts are ready.",
    "since": NOW,
    "hosts_usable": "3 of 4",
    "hosts": {
        "usable": 3,
        "joined": 4,
        "closed": 0,
        "occupants": [
            {
                "owner": {"kind": "JobSet", "namespace": "research", "name": "llama", "uid": "uid-llama"},
                "generation": 1,
                "replicated_job": "slice",
                "job_index": 0,
                "pod_uid": "pod-llama-0",
            }
        ],
        "departures": [],
        "vacant_since": None,
        "sequence": 1,
        "answered": None,
    },
    "spared_until": None,
    "runs_on": None,
    "attempt": 1,
    "attempts": 1,
    "legacy_pool": None,
    "chips_held": 16,
    "create_requested_at": NOW - MINUTE,
    "slot": None,
    "slot_awaited": None,
    "operation": "operation-1-abc",
    "terminating": [],
    "failures": 0,
    "retry_at": None,
    "blocked_settings_version": None,
    "created_at": NOW - 5 * MINUTE,
    "next_reconcile_at": NOW + MINUTE,
    "expire_at": None,
    "transitions": [
        {
            "at": NOW - 5 * MINUTE,
            "phase": "QUEUED",
            "reason": "OperationLimit",
            "message": "Waiting for an operation to end.",
        },
        {"at": NOW, "phase": "PROVISIONING", "reason": "HostsJoining", "message": "3 of 4 hosts are ready."},
    ],
    "transition_count": 2,
    "announced_count": 0,
    "hold": False,
    "release_requested": False,
    "release_forced": False,
    "note": "",
}


def test_the_document_of_a_slice() -> None:
    """As the console shows it, there sorted by name."""
    record = replace(
        a_record(
            pinned_settings=PoolSettings(resource_labels={"cost-centre": "research"}),
            operation="operation-1-abc",
            created_at=NOW - 5 * MINUTE,
            create_requested_at=NOW - MINUTE,
            next_reconcile_at=NOW + MINUTE,
        ),
        spec=a_spec(
            node_labels=(("team", "research"),),
            taints=(Taint("cloud.google.com/gke-spot", "true"),),
            networks=(Network("vpc-2", "subnet-2"),),
            fingerprint="v1-abcdefghijklm",
        ),
        transitions=(),
        hosts=some_hosts(usable=3, occupants=(an_occupant(),)),
    )
    record = record.transitioned(NOW - 5 * MINUTE, Reason.OPERATION_LIMIT, "Waiting for an operation to end.")
    record = record.transitioned(NOW, Reason.HOSTS_JOINING, "3 of 4 hosts are ready.")

    assert encode(record) == {**A_SLICE, "hosts_digest": record.hosts_digest}


def test_every_documents_key_has_its_cluster_and_id() -> None:
    assert str(key_of(a_jobset())) == "workloads/demo.uid-llama"
    assert str(key_of(a_record())) == "slices/demo.tpu-llama-slice-0-oahqlz77blgqd"
    assert str(key_of(ConcurrencyLimiter(cluster=a_job().cluster, changed_at=NOW, shortages={}))) == "limiters/demo"
    assert str(key_of(RelayHeartbeat(cluster=a_job().cluster, received_at=NOW))) == "heartbeats/demo"


def test_a_slice_whose_attempts_are_used_up_can_still_be_written() -> None:
    record = a_record(attempt=LAST_ATTEMPT + 1)

    assert encode(record)["pool"] is None
    assert decode(SliceRecord, encode(record)) == record


def test_an_older_document_without_the_later_fields_has_their_defaults() -> None:
    document = encode(a_record())
    for later in ("rebuild_allowed", "terminating", "announced_count"):
        del document[later]

    assert decode(SliceRecord, document) == a_record()


def test_unknown_fields_are_ignored() -> None:
    document = encode(a_record())
    document["colour"] = "blue"
    document["spec"]["rack"] = 7

    assert decode(SliceRecord, document) == a_record()


@pytest.mark.parametrize("schema", [SCHEMA + 1, 0, None, "1", True])
def test_a_document_of_another_schema_is_an_error(schema: object) -> None:
    with pytest.raises(Permanent, match=r"schema: .* deploy the newer provisioner"):
        decode(SliceRecord, {**encode(a_record()), "schema": schema})


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ({"phase": "REDY"}, "phase: "),
        ({"spec": {**encode(a_record())["spec"], "topology": "4by4"}}, '"4by4" is not a topology'),
        ({"spec": {**encode(a_record())["spec"], "node_labels": "none"}}, "spec.node_labels: "),
        ({"spec": "none"}, "spec: "),
        ({"transitions": [{"at": NOW}]}, r"transitions\.0\.phase: "),
        ({"hold": "perhaps"}, "hold: "),
    ],
)
def test_a_mistake_in_the_console_is_named_by_its_field(mistake: dict[str, Any], message: str) -> None:
    with pytest.raises(Permanent, match=f"SliceRecord: .*{message}"):
        decode(SliceRecord, {**encode(a_record()), **mistake})


def test_an_unreadable_report_is_left_out_and_the_jobset_is_read_all_the_same() -> None:
    made = report(a_jobset(), [a_record()], QueueState(), NOW)
    document = encode(a_jobset(report=made, queue="team-a"))
    edited = {**document, "report": {**document["report"], "reason": "SlicesDreaming"}}
    read = decode(WorkloadRecord, edited)
    assert (read.report, read.queue) == (None, "team-a")
    assert decode(WorkloadRecord, document).report == made
