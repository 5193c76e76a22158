"""What is said of Kueue's queues that have an admission check of the relay."""

from typing import Any

import pytest

from infra.preflight.answers import Denied, Found
from infra.preflight.findings import Finding, Severity
from infra.preflight.kueue import check_findings
from tests.infra.preflight.clouds import KUEUE, config_map

Json = dict[str, Any]
OURS: Json = {"metadata": {"name": "slices"}, "spec": {"controllerName": "tpu-provisioner.cloud.google.com/slices"}}
MULTIKUEUE: Json = {"metadata": {"name": "multi"}, "spec": {"controllerName": "kueue.x-k8s.io/multikueue"}}
V5E, SPOT = ({"metadata": {"name": name}, "spec": {}} for name in ("v5e", "v5e-spot"))


def a_queue(*checks: Json, chips: str = "google.com/tpu") -> Json:
    groups = [{"coveredResources": [chips], "flavors": [{"name": "v5e"}, {"name": "v5e-spot"}]}]
    listed = {"admissionChecks": [*(checks or ({"name": "slices"},))]}
    return {"metadata": {"name": "research"}, "spec": {"resourceGroups": groups, "admissionChecksStrategy": listed}}


def found_of(
    *queues: Json, checks: tuple[Json, ...] = (OURS,), flavors: tuple[Json, ...] = (V5E, SPOT), config: str = KUEUE
) -> list[Finding]:
    of_checks, of_queues, of_flavors = (Found({"items": [*each]}) for each in (checks, queues, flavors))
    return list(check_findings(of_checks, of_queues, of_flavors, Found(config_map(config))))


def test_a_queue_with_the_check_of_slices_is_well() -> None:
    assert found_of(a_queue()) == []
    assert found_of(a_queue({"name": "slices", "onFlavors": ["v5e", "v5e-spot"]})) == []


def test_a_configuration_that_waits_for_no_pods_admits_them_all() -> None:
    old = KUEUE.replace("v1beta2", "v1beta1") + "  blockAdmission: true\n"
    assert found_of(a_queue(), config=old) == []
    assert (
        found_of(a_queue(), config=KUEUE + "  blockAdmission: true\nfeatureGates: {DisableWaitForPodsReady: true}")
        == []
    )


def test_of_queues_without_the_check_nothing_is_said() -> None:
    blocks = KUEUE.replace("timeout: 1h", "timeout: 1h\n  blockAdmission: true")
    assert found_of(a_queue({"name": "multi"}), checks=(MULTIKUEUE,), config=blocks) == []
    assert found_of(a_queue({"name": "multi"}), checks=(OURS, MULTIKUEUE)) == []


@pytest.mark.parametrize(
    ("findings", "severity", "text"),
    [
        (found_of(config=KUEUE.replace("timeout: 1h", "blockAdmission: true")), Severity.ERROR, "blocks every queue"),
        (
            found_of(config=KUEUE.replace("v1beta2", "v1beta1") + "  enable: true\n"),  # blocks without the field
            Severity.ERROR,
            "blocks every queue",
        ),
        (
            found_of(checks=({**OURS, "spec": {**OURS["spec"], "parameters": {"kind": "a"}}},)),
            Severity.ERROR,
            "AdmissionCheck slices has spec.parameters",
        ),
        (
            found_of(a_queue({"name": "slices"}, {"name": "multi"}), checks=(OURS, MULTIKUEUE)),
            Severity.ERROR,
            "Give the check to the queues of the workers",
        ),
        (
            found_of(a_queue(), flavors=({**V5E, "spec": {"topologyName": "pools"}}, SPOT)),
            Severity.ERROR,
            "flavors with a Topology (v5e)",
        ),
        (
            found_of(a_queue({"name": "slices", "onFlavors": ["v5e"]})),
            Severity.WARNING,
            "not for the flavors v5e-spot",
        ),
    ],
)
def test_what_keeps_workloads_of_such_queues_from_starting_is_told(
    findings: list[Finding], severity: Severity, text: str
) -> None:
    [finding] = findings
    assert finding.severity is severity
    assert text in finding.message


def test_checks_that_cannot_be_read_are_told() -> None:
    denied = Denied("no")
    [finding] = check_findings(denied, denied, denied, denied)
    assert finding.severity is Severity.WARNING
