from datetime import UTC, datetime

import pytest

from relay import translate
from relay.events import MOST_CHARACTERS, event, reason_of, type_of
from tests.relay.objects import pod
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import ClaimId, ClusterId, Owner, OwnerKind, PoolName, WorkloadJob, WorkloadUid
from tpu_slices.domain.records.transitions import Transition
from tpu_slices.ports.publisher import SliceUpdate


def update(*, transition_number: int = 2, message: str = "All 4 hosts are usable.") -> SliceUpdate:
    job = WorkloadJob(
        cluster=ClusterId("demo"),
        owner=Owner(kind=OwnerKind.JOBSET, namespace="research", name="llama", uid=WorkloadUid("u-1")),
        replicated_job="workers",
        job_index=0,
    )
    at = datetime(2026, 11, 1, 12, 0, 5, 123_456, tzinfo=UTC)
    transition = Transition(at=at, phase=Phase.READY, reason=Reason.READY, message=message)
    pool = PoolName("tpu-llama-0-aaaaaaaaaaaaa-1")
    return SliceUpdate(
        job=job,
        slice_id=ClaimId("tpu-llama-0-aaaaaaaaaaaaa"),
        pool=pool,
        transition_number=transition_number,
        transition=transition,
    )


def test_an_event_is_on_the_leader_pod() -> None:
    made = event(update(), translate.leader(pod(0)))
    assert made["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "research",
        "name": "llama-workers-0-0-x2x4z",
        "uid": "pod-0",
    }
    assert (made["type"], made["reason"]) == ("Normal", "NodePoolCreationSucceeded")
    assert made["message"] == "Slice tpu-llama-0-aaaaaaaaaaaaa: All 4 hosts are usable."
    assert made["firstTimestamp"] == made["lastTimestamp"] == "2026-11-01T12:00:05Z"


def test_an_event_is_on_the_jobset_where_no_pod_is_known() -> None:
    made = event(update(), None)
    assert made["involvedObject"] == {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "namespace": "research",
        "name": "llama",
        "uid": "u-1",
    }
    assert made["metadata"]["namespace"] == "research"


def test_the_same_transition_has_the_same_event_name_and_another_has_another() -> None:
    name = event(update(transition_number=2), None)["metadata"]["name"]
    assert name == event(update(transition_number=2), translate.leader(pod(0)))["metadata"]["name"]
    assert name != event(update(transition_number=3), None)["metadata"]["name"]


def test_a_long_message_is_cut_to_the_limit_of_an_event() -> None:
    assert len(event(update(message="x" * 5000), None)["message"]) == MOST_CHARACTERS


@pytest.mark.parametrize(
    ("reason", "phase", "name", "type_"),
    [
        (Reason.REQUESTED, Phase.QUEUED, "Requested", "Normal"),
        (Reason.CREATION_STARTED, Phase.PROVISIONING, "NodePoolCreationStarted", "Normal"),
        (Reason.HOSTS_JOINING, Phase.PROVISIONING, "HostsJoining", "Normal"),
        (Reason.HOSTS_LOST, Phase.PROVISIONING, "HostsLost", "Warning"),
        (Reason.READY, Phase.READY, "NodePoolCreationSucceeded", "Normal"),
        (Reason.LEADER_STILL_WAITING, Phase.READY, "LeaderStillWaiting", "Warning"),
        (Reason.STOCKOUT, Phase.WAITING, "NodePoolCreationFailed", "Warning"),
        (Reason.CREATION_FAILED, Phase.WAITING, "NodePoolCreationFailed", "Warning"),
        (Reason.CLUSTER_BUSY, Phase.WAITING, "ClusterBusy", "Warning"),
        (Reason.IMPOSSIBLE_SHAPE, Phase.REFUSED, "ImpossibleShape", "Warning"),
        (Reason.UNOWNED_POOL, Phase.BLOCKED, "UnownedPool", "Warning"),
        (Reason.DELETION_STARTED, Phase.RELEASING, "NodePoolDeletionStarted", "Normal"),
        (Reason.DELETION_REFUSED, Phase.RELEASING, "NodePoolDeletionFailed", "Warning"),
        (Reason.RELEASED, Phase.GONE, "NodePoolDeletionSucceeded", "Normal"),
        (Reason.NEVER_CREATED, Phase.GONE, "NeverCreated", "Normal"),
    ],
)
def test_the_reason_and_type_of_an_event_follow_from_reason_and_phase(
    reason: Reason, phase: Phase, name: str, type_: str
) -> None:
    assert (reason_of(reason), type_of(phase, reason)) == (name, type_)


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_is_valid_in_kubernetes(reason: Reason) -> None:
    assert reason_of(reason).isalnum()
    assert len(reason_of(reason)) <= 128
