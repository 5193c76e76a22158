"""What a cluster's API server says: JobSet, admission policies, Kueue."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.preflight.answers import Answer, Denied, Found, Missing, Unreachable
from infra.preflight.findings import Severity, error
from infra.preflight.kubernetes import admission_versions, api_findings, reachable
from infra.preflight.kueue import kueue_findings
from infra.preflight.manifests import FOLDER, Manifest, cluster_wide, manifests
from tests.infra.preflight.clouds import KUEUE, config_map

HELD = timedelta(hours=1)
BY_DEFAULT = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
#waitForPodsReady:
#  timeout: 5m
"""
"""As the manifests of Kueue 0.19 have it."""
V1 = "admissionregistration.k8s.io/v1"
RULE = Manifest("relay.yaml", V1, "ValidatingAdmissionPolicy", "rule", None)
OPTION = Manifest("admission.yaml", V1, "MutatingAdmissionPolicy", "option", None)
BINDING = Manifest("relay.yaml", V1, "ValidatingAdmissionPolicyBinding", "rule", None)
OTHER = Manifest("relay.yaml", "v1", "Namespace", "ours", None)


def serving(*kinds: str) -> dict[str, Answer]:
    return {V1: Found({"resources": [{"kind": kind} for kind in kinds]})}


def severities(findings: Any) -> list[Severity]:
    return [finding.severity for finding in findings]


@pytest.mark.parametrize("answer", [Denied("Forbidden"), Unreachable("timed out"), Missing()])
def test_an_api_server_that_does_not_answer_is_an_error(answer: Answer) -> None:
    assert severities(reachable(answer)) == [Severity.ERROR]


def test_an_api_server_that_tells_its_version_is_reached() -> None:
    assert list(reachable(Found({"major": "1"}))) == []


def test_a_cluster_without_jobset_is_served_and_told() -> None:
    assert list(api_findings(Found({}), {}, [])) == []
    [finding] = api_findings(Missing(), {}, [])
    assert finding.severity is Severity.WARNING
    assert finding.remedies[0].startswith("kubectl apply --server-side -f https://")


def test_a_policy_of_the_relays_that_is_not_served_is_an_error_and_the_one_that_the_webhook_replaces_is_none() -> None:
    both = [RULE, BINDING, OPTION, OTHER]
    assert list(api_findings(Found({}), serving(RULE.kind, OPTION.kind), both)) == []
    assert list(api_findings(Found({}), serving(RULE.kind), both)) == []
    assert severities(api_findings(Found({}), serving(OPTION.kind), both)) == [Severity.ERROR]
    assert severities(api_findings(Found({}), {V1: Missing()}, both)) == [Severity.ERROR]
    assert severities(api_findings(Found({}), {V1: Denied("no")}, both)) == [Severity.WARNING, Severity.WARNING]


def test_the_policies_of_the_repository_are_asked_about() -> None:
    ours = list(manifests())
    assert V1 in admission_versions(ours)
    assert "MutatingAdmissionPolicy" in {each.kind for each in ours if each.replaced}


def test_all_that_is_made_outside_of_namespaces_is_listed_and_the_namespace_goes_last() -> None:
    texts = [path.read_text() for path in FOLDER.rglob("*.yaml") if path.name != "kustomization.yaml"]
    objects = [each for text in texts for each in yaml.safe_load_all(text)]
    listed = [manifest.reference for manifest in cluster_wide()]

    outside = [each for each in objects if "namespace" not in each["metadata"]]
    assert sorted(reference.rpartition("/")[2] for reference in listed) == sorted(
        each["metadata"]["name"] for each in outside
    )
    assert listed[-1] == "namespace/tpu-slice-provisioner"
    assert "clusterrole.rbac.authorization.k8s.io/tpu-slice-provisioner-relay" in listed


def test_manifests_of_kustomize_are_no_objects(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n")
    assert list(manifests(tmp_path)) == []


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (KUEUE, []),
        (KUEUE.replace("1h", "40m") + "  recoveryTimeout: 1h\n", []),
        (KUEUE.replace("1h", "40m") + "  recoveryTimeout: 0s\n", []),  # never, after a loss
        (KUEUE.replace("1h", "45m"), [Severity.WARNING]),
        (KUEUE + "  recoveryTimeout: 59m\n", [Severity.WARNING]),
        (KUEUE.replace("1h", "39m59s"), [Severity.ERROR]),
        (KUEUE.replace("timeout: 1h", "blockAdmission: true"), [Severity.ERROR]),  # v1beta2: 30 minutes
        (KUEUE.replace("v1beta2", "v1beta1"), []),  # on only with `enable`
        (KUEUE.replace("v1beta2", "v1beta1").replace("timeout: 1h", "enable: true"), [Severity.ERROR]),
        (KUEUE.replace("v1beta2", "v1beta1") + "  enable: true\n", []),
        ("kind: Configuration", [Severity.WARNING]),
        (BY_DEFAULT, [Severity.WARNING]),
        (BY_DEFAULT + "waitForPodsReady:\n", [Severity.WARNING]),
        (BY_DEFAULT + "waitForPodsReady: {}\n", [Severity.ERROR]),
        (BY_DEFAULT + "featureGates: {DisableWaitForPodsReady: true}\n", []),
        (BY_DEFAULT.replace("v1beta2", "v1beta1"), []),
        (KUEUE.replace("1h", "soon"), [Severity.WARNING]),
        ("waitForPodsReady: [", [Severity.WARNING]),
        ("- a list", [Severity.WARNING]),
    ],
)
def test_kueue_must_wait_as_long_as_the_creation_of_a_slice_takes(config: str, expected: list[Severity]) -> None:
    assert severities(kueue_findings(Found({}), Found(config_map(config)), HELD)) == expected


def test_the_line_to_change_is_told() -> None:
    short = Found(config_map(KUEUE.replace("1h", "5m")))
    assert list(kueue_findings(Found({}), short, HELD)) == [
        error(
            "Kueue evicts a JobSet whose pods are not ready after 5 minutes; creating its slices can take "
            "40m: it would be evicted again and again. Set it, and restart its deployment.",
            "kubectl edit configmap kueue-manager-config --namespace kueue-system",
            "waitForPodsReady: {timeout: 40m, recoveryTimeout: 60m}  # the rest as it is",
        )
    ]


def test_kueue_without_a_word_on_it_is_judged_by_its_defaults() -> None:
    [finding] = kueue_findings(Found({}), Found(config_map(BY_DEFAULT)), HELD)
    assert "has no waitForPodsReady: since 0.19 Kueue then evicts" in finding.message
    assert "not ready after 30 minutes" in finding.message


def test_a_gang_that_is_held_for_longer_than_kueue_waits_is_told() -> None:
    [finding] = kueue_findings(Found({}), Found(config_map(KUEUE.replace("1h", "45m"))), HELD)
    assert "lost a slice after 45 minutes" in finding.message
    assert "gang are held for 1 hour" in finding.message


def test_kueue_is_not_judged_where_it_is_not_installed() -> None:
    assert list(kueue_findings(Missing(), Missing(), HELD)) == []


@pytest.mark.parametrize("config", [Missing(), Denied("no")])
def test_a_kueue_that_cannot_be_read_is_told(config: Answer) -> None:
    assert severities(kueue_findings(Found({}), config, HELD)) == [Severity.WARNING]
