"""The document of a slice, field by field: what operators see in the console, and what queries use."""

from __future__ import annotations

from tests.builders import MINUTE, NOW, a_record, a_shortage, a_spec, an_occupant, some_hosts, unclaimed
from tests.domain.cases import SIBLING
from tpu_slices.domain.model.clusters import PoolSettings
from tpu_slices.domain.model.hosts import HostKey, Upcoming
from tpu_slices.domain.model.observations import Creating, Witness
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import Network, Taint
from tpu_slices.domain.records.attempts import Seen
from tpu_slices.domain.records.awaited import PoolOperation, SlotAwaited
from tpu_slices.domain.records.claims import NO_CLAIM, Rejection
from tpu_slices.domain.records.hosts import Asked, Departure, digest_of
from tpu_slices.domain.records.mirror import mirror_digest
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.wire.documents import decode, encode, native

OWNER = {"kind": "JobSet", "namespace": "research", "name": "llama", "uid": "uid-llama"}
GUEST = {**OWNER, "name": "guest", "uid": "uid-guest"}
SIBLING_POD = {
    "owner": OWNER,
    "generation": 1,
    "replicated_job": "slice",
    "job_index": 1,
    "pod_uid": "pod-llama-1",
}
SHORTAGE = {
    "at": NOW,
    "reason": "Stockout",
    "what": "such hosts",
    "again_at": None,
    "hosts": 1,
    "behind": "",
    "times": 1,
    "until": None,
    "message": "",
}
BILLED = {"capacity": "ON_DEMAND", "zone": "us-central2-b"}
SPEC = {
    "accelerator": "tpu-v6e-slice",
    "topology": "4x4",
    "machine_type": "ct6e-standard-4t",
    "hosts": 4,
    "chips_per_host": 4,
    "placement": "COMPACT",
    "boot_disk": "hyperdisk-balanced",
    "zone": "us-central2-b",
    "capacity": {"kind": "ON_DEMAND", "reservation": None, "max_run_duration": None},
    "node_labels": {"team": "research"},
    "copied_labels": [],
    "taints": [{"key": "cloud.google.com/gke-spot", "value": "true"}],
    "service_account": None,
    "networks": [{"network": "vpc-2", "subnetwork": "subnet-2"}],
    "exclusive_nodes": False,
    "scatters": False,
    "workload_policy": None,
    "instance": None,
    "key": "uid-llama.j0",
    "jobs": 1,
    "jobset_chips": 64,
    "caveat": "",
    "fingerprint": "v1-abcdefghijklm",
    "expected": None,
    "crosses": False,
    "takes": False,
    "ladder": "",
    "rungs": [],
    "rung": 0,
}
AN_ATTEMPT = {
    "ordered": SPEC,
    "ours_since": None,
    "made_by": None,
    "operation": None,
    "slot": None,
    "spared_until": None,
    "hosts_awaited_since": None,
    "returning": None,
    "unreadable_since": None,
    "relabelling": None,
    "gone": False,
    "empty": False,
    "seen": None,
    "delete_requested_at": None,
    "retry_at": None,
    "not_cancellable": False,
    "cancel_refused": "",
    "refused": "",
    "hindered": None,
    "warm": None,
}
A_SLICE = {
    "schema": 1,
    "id": "tpu-llama-slice-0-oahqlz77blgqd-2",
    "pool": "tpu-llama-slice-0-oahqlz77blgqd-2",
    "job_name": "llama-slice-0",
    "first_job": None,
    "claimed_by": "tpu-llama-slice-0-oahqlz77blgqd",
    "claim": {
        "refusal": None,
        "rejection": {
            "reason": "ImpossibleShape",
            "message": "No.",
            "settings_version": "settings-1",
            "generation": None,
        },
        "rebuild_allowed": False,
        "demand_confirmed_at": NOW,
        "awaited_since": NOW - 2 * MINUTE,
        "waits_since": NOW - 2 * MINUTE,
        "unawaited_since": None,
        "setbacks": {"Stockout": 3},
        "earlier": ["tpu-llama-slice-0-oahqlz77blgqd-1"],
        "failures": 0,
        "retry_at": None,
        "blocked_settings_version": None,
        "stocked": [],
        "tried": 2,
    },
    "cluster": "demo",
    "owner": OWNER,
    "replicated_job": "slice",
    "job_index": 0,
    "spec": SPEC,
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
        "upgrades": "EXCLUDED",
        "gvnic": True,
        "secure_boot": True,
        "integrity_monitoring": True,
        "network_tags": [],
        "additional_networks": [],
        "workload_policy": "tpu-provisioner-{topology}",
        "accelerator_network_profile": None,
        "host_maintenance_interval": None,
        "resource_labels": {"cost-centre": "research"},
        "compute": None,
    },
    "desire": "PRESENT",
    "desire_message": "",
    "phase": "PROVISIONING",
    "reason": "HostsJoining",
    "message": "3 of 4 hosts are ready.",
    "since": NOW,
    "changed_at": NOW,
    "hosts_usable": "3 of 4",
    "hosts_digest": 0,
    "slot_queue": None,
    "slot_pool": None,
    "due_queue": "research",
    "reserved_pool": None,
    "hosts_reserved": 0,
    "paid_since": None,
    "wants": None,
    "offers": None,
    "offers_to_any": None,
    "wants_of_any": None,
    "goes_at": None,
    "hears": "demo uid-llama",
    "tells": "demo uid-llama PROVISIONING HostsJoining ",
    "join_asked": None,
    "let_go": "",
    "fits": False,
    "legacy_pool": None,
    "chips_bought": 16,
    "chips_held": 16,
    "chips_idle": 0,
    "usages": [
        {"since": NOW - 5 * MINUTE, "until": NOW, "use": "USEFUL", "chips": 16, "billed_as": BILLED},
        {"since": NOW, "until": None, "use": "STARTING", "chips": 16, "billed_as": BILLED},
    ],
    "slot_awaited": {"operation": "DELETE", "attempt": 2, "since": NOW, "shortage": SHORTAGE, "number": 3},
    "current": {
        **AN_ATTEMPT,
        "number": 2,
        "create_requested_at": NOW - MINUTE,
        "operation": "operation-1-abc",
        "seen": {
            "pool": {"kind": "Creating", "operation_runs": True},
            "since": NOW - MINUTE,
            "by": "REQUEST",
        },
        "hosts": {
            "usable": 3,
            "joined": 4,
            "closed": 0,
            "maintained": 0,
            "announced": {"begins": NOW + MINUTE, "stopping": 1},
            "sound": 0,
            "keys": [{"key": "uid-llama-0.j0", "hosts": 4}],
            "pods": [],
            "occupants": [SIBLING_POD],
            "departures": [
                {
                    "user": {
                        "owner": GUEST,
                        "generation": 1,
                        "replicated_job": "slice",
                        "job_index": 0,
                        "pod_uid": "pod-guest-0",
                    },
                    "at": NOW - MINUTE,
                    "sequence": 6,
                }
            ],
            "vacant_since": None,
            "sequence": 7,
            "asked": {"number": 3, "at": NOW, "close": True, "key": ""},
            "highest": 3,
            "answered": 2,
            "ends_by": None,
        },
    },
    "created_at": NOW - 5 * MINUTE,
    "next_reconcile_at": NOW + MINUTE,
    "look_at": NOW + MINUTE,
    "unconfirmed_end": None,
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
    "held_by": "",
    "held_since": None,
    "release_requested": False,
    "release_forced": False,
    "note": "",
}


def a_slice() -> SliceRecord:
    hosts = some_hosts(
        usable=3,
        sequence=7,
        announced=Upcoming(begins=NOW + MINUTE, stopping=1),
        keys=(HostKey("uid-llama-0.j0", 4),),
        occupants=(SIBLING,),
        departures=(Departure(user=an_occupant("guest"), at=NOW - MINUTE, sequence=6),),
        asked=Asked(number=3, at=NOW, close=True),
        answered=2,
    )
    spec = a_spec(
        node_labels=(("team", "research"),),
        taints=(Taint("cloud.google.com/gke-spot", "true"),),
        networks=(Network("vpc-2", "subnet-2"),),
        fingerprint="v1-abcdefghijklm",
    )
    record = a_record(
        pinned_settings=PoolSettings(resource_labels={"cost-centre": "research"}),
        attempt=2,
        operation="operation-1-abc",
        seen=Seen(pool=Creating(), since=NOW - MINUTE, by=Witness.REQUEST),
        created_at=NOW - 5 * MINUTE,
        awaited_since=NOW - 2 * MINUTE,
        setbacks={Reason.STOCKOUT: 3},
        create_requested_at=NOW - MINUTE,
        next_reconcile_at=NOW + MINUTE,
        look_at=NOW + MINUTE,
        hosts=hosts,
        earlier=(1,),
        rejection=Rejection(reason=Reason.IMPOSSIBLE_SHAPE, message="No.", settings_version="settings-1"),
        slot_awaited=SlotAwaited(operation=PoolOperation.DELETE, attempt=2, since=NOW, shortage=a_shortage(), number=3),
        spec=spec,
        ordered=spec,
    )
    queued = record.transitioned(NOW - 5 * MINUTE, Reason.OPERATION_LIMIT, "Waiting for an operation to end.")
    return queued.transitioned(NOW, Reason.HOSTS_JOINING, "3 of 4 hosts are ready.")


def test_the_document_of_a_slice() -> None:
    """As the console shows it, there sorted by name."""
    record = a_slice()

    summed = {"hosts_digest": record.hosts_digest, "mirror_digest": mirror_digest(record)}
    assert encode(record) == {**A_SLICE, **summed}
    assert record.hosts_digest != 0
    assert decode(SliceRecord, encode(record)) == record


def test_the_document_of_a_slice_that_no_claim_has_names_its_pool_by_the_claim_that_it_was_made_for() -> None:
    record = unclaimed(a_slice(), fits=True)
    document = encode(record)
    own = {
        "id": "tpu-llama-slice-0-oahqlz77blgqd-2",
        "desire": "ABSENT",
        "desire_message": "its creation failed",
        "let_go": "its creation failed",
        "fits": True,
        "offers": "demo research v1-abcdefghijklm",
        "hears": None,
        "tells": None,
        "claimed_by": None,
        "claim": native(NO_CLAIM),
        "usages": native(record.usages),
    }

    summed = {"hosts_digest": a_slice().hosts_digest, "mirror_digest": mirror_digest(record)}
    assert document == {**A_SLICE, **own, **summed}
    assert document["pool"] == document["id"]
    assert decode(SliceRecord, document) == record


def test_the_largest_digests_of_hosts_fit_into_the_sum_of_a_cluster() -> None:
    """Firestore adds whole numbers up to 2^63."""
    assert digest_of(a_record().maker, 1, some_hosts()) < 2**48
    assert 10_000 * 2**48 < 2**63
