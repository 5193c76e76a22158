"""Both provisioners in one cluster: the relay warns in its log and by an Event."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from kubernetes import client
from structlog.testing import capture_logs

from relay.events import MOST_CHARACTERS
from relay.notices.legacy_provisioner import (
    OURS,
    TPU_OPERATOR,
    TPU_PROVISIONER,
    LegacyProvisionerCheck,
    Provisioner,
    is_active,
    warning,
)
from tests.relay.objects import Json
from tests.relay.watched import START
from tpu_slices.ports.errors import Temporary

THEIRS = TPU_PROVISIONER.place


def deployment(available: int) -> Json:
    return {
        "metadata": {"uid": "d-1"},
        "status": {"replicas": 1, **({"availableReplicas": available} if available else {})},
    }


@dataclass
class FakeCluster:
    deployments: dict[tuple[str, str], Json] = field(default_factory=dict)
    events: list[Mapping[str, Any]] = field(default_factory=list)
    error: Exception | None = None

    def deployment(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        if self.error is not None:
            raise self.error
        return self.deployments.get((namespace, name))

    def post(self, event: Mapping[str, Any]) -> None:
        self.events.append(event)


def log_of_a_check(cluster: FakeCluster, other: Provisioner = TPU_PROVISIONER) -> list[tuple[str, str]]:
    """Check once; return level and event of each line that was logged."""
    with capture_logs() as logs:
        LegacyProvisionerCheck(cluster, lambda: START, other).look()
    return [(line["log_level"], line["event"]) for line in logs]


def test_two_active_provisioners_lead_to_a_log_line_and_an_event_on_our_deployment() -> None:
    cluster = FakeCluster({THEIRS: deployment(1), OURS: deployment(1)})
    assert log_of_a_check(cluster) == [("warning", "legacy_provisioner.detected")]
    (event,) = cluster.events
    assert event["involvedObject"] == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "namespace": "tpu-slice-provisioner",
        "name": "relay",
        "uid": "d-1",
    }
    assert (event["type"], event["reason"]) == ("Warning", "BothProvisionersActive")
    assert "kubectl scale deployment tpu-provisioner-controller-manager" in event["message"]


def test_the_warning_is_one_event_however_often_it_is_posted() -> None:
    first, second = (warning(deployment(1), TPU_PROVISIONER.message, START) for _ in range(2))
    assert first["metadata"] == second["metadata"]
    assert client.CoreV1Event.model_validate(first).reason == "BothProvisionersActive"


@pytest.mark.parametrize("other", [TPU_PROVISIONER, TPU_OPERATOR], ids=lambda each: each.name)
def test_the_warning_says_which_one_it_is_and_how_to_stop_it(other: Provisioner) -> None:
    cluster = FakeCluster({other.place: deployment(1), OURS: deployment(1)})
    assert log_of_a_check(cluster, other) == [("warning", "legacy_provisioner.detected")]
    message = cluster.events[0]["message"]
    assert message.startswith(f"{other.name} runs in this cluster")
    assert message.endswith(f"scale deployment {other.deployment} --namespace {other.namespace} --replicas 0")
    assert len(message) <= MOST_CHARACTERS


def test_without_a_deployment_of_ours_only_the_log_warns() -> None:
    cluster = FakeCluster({THEIRS: deployment(2)})
    assert log_of_a_check(cluster) == [("warning", "legacy_provisioner.detected")]
    assert cluster.events == []


@pytest.mark.parametrize("found", [None, deployment(0), {}])
def test_a_legacy_provisioner_that_is_absent_or_scaled_down_leads_to_no_warning(found: Json | None) -> None:
    assert not is_active(found)
    cluster = FakeCluster({THEIRS: found, OURS: deployment(1)} if found is not None else {})
    assert (log_of_a_check(cluster), cluster.events) == ([], [])


def test_a_check_that_fails_leads_to_no_warning() -> None:
    assert log_of_a_check(FakeCluster(error=Temporary("refused: 403"))) == [("debug", "legacy_provisioner.unknown")]
