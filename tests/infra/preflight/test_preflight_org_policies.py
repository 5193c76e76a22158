"""Organisation policies in effect: what they refuse is told, and what only Google knows as such."""

from __future__ import annotations

from typing import Any

import pytest

from infra.preflight.answers import Answer, Denied, Found, Missing, Unreachable
from infra.preflight.findings import Finding, Severity
from infra.preflight.org_policies import (
    CONNECTOR,
    EXTERNAL,
    IMAGES,
    INGRESS,
    LOCATIONS,
    MEMBERS,
    NO_ACCOUNTS,
    NO_DEFAULT_NETWORK,
    OF_CLUSTERS,
    OF_PROVISIONER,
    SHIELDED,
    cluster_findings,
    network_findings,
    project_findings,
    provisioner_findings,
    unread_findings,
)
from tests.infra.preflight.clouds import settings
from tpu_slices.domain.model.clusters import ComputeSettings, PoolSettings

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
SILENT: dict[str, Answer] = {
    constraint: answer
    for constraint in (*OF_PROVISIONER, *OF_CLUSTERS)
    for answer in [Found({"name": f"projects/4711/policies/{constraint}", "spec": {"rules": [{"allowAll": True}]}})]
}
PLACES = {"functions": "us-central1"}


def rules(*given: dict[str, Any]) -> Found:
    return Found({"spec": {"rules": [*given]}})


def allowed(*values: str) -> Found:
    return rules({"values": {"allowedValues": [*values]}})


def denied(*values: str) -> Found:
    return rules({"values": {"deniedValues": [*values]}})


ENFORCED, NOT_ENFORCED, DENY_ALL, ALLOW_ALL = (
    rules({each: value})
    for each, value in (("enforce", True), ("enforce", False), ("denyAll", True), ("allowAll", True))
)


def of_provisioner(constraint: str, answer: Answer, *, deployed: bool = False) -> list[Finding]:
    return list(provisioner_findings("shop", PLACES, {**SILENT, constraint: answer}, deployed=deployed))


def of_cluster(constraint: str, answer: Answer, *, public_nodes: bool = False, **changes: Any) -> list[Finding]:
    found = cluster_findings(settings(**changes), {**SILENT, constraint: answer}, public_nodes=public_nodes)
    return list(found)


def severities(findings: list[Finding]) -> list[Severity]:
    return [finding.severity for finding in findings]


@pytest.mark.parametrize("policies", [{}, SILENT, dict.fromkeys(SILENT, Missing()), dict.fromkeys(SILENT, Found({}))])
def test_where_nothing_is_set_nothing_is_told(policies: dict[str, Answer]) -> None:
    assert list(provisioner_findings("shop", PLACES, policies, deployed=False)) == []
    assert list(cluster_findings(settings(), policies, public_nodes=True)) == []
    assert list(project_findings("shop", policies)) == []
    assert list(network_findings("shop", policies)) == []


@pytest.mark.parametrize("refused", [Denied("no orgpolicy.policy.get"), Unreachable("timed out")])
def test_policies_that_cannot_be_read_are_told_once_as_unknown_and_refuse_nothing(refused: Answer) -> None:
    policies = dict.fromkeys(SILENT, refused)
    [finding] = unread_findings("shop", policies)
    assert finding.severity is WARNING
    assert finding.message.startswith("It could not be read whether organisation policies refuse something in shop: ")
    assert list(provisioner_findings("shop", PLACES, policies, deployed=False)) == []
    assert list(cluster_findings(settings(), policies, public_nodes=True)) == []
    assert list(unread_findings("shop", SILENT)) == []


@pytest.mark.parametrize(("constraint", "ours"), INGRESS.items())
def test_functions_must_be_allowed_to_take_internal_calls_only(constraint: str, ours: str) -> None:
    for answer in (allowed(ours), allowed("all", f"is:{ours}"), denied("all"), ALLOW_ALL):
        assert of_provisioner(constraint, answer) == []
    for answer in (allowed("all"), denied(ours), DENY_ALL):
        assert severities(of_provisioner(constraint, answer)) == [ERROR]
        assert severities(of_provisioner(constraint, answer, deployed=True)) == [WARNING]
    [finding] = of_provisioner(constraint, DENY_ALL)
    assert finding.remedies == (f"gcloud org-policies describe {constraint} --effective --project shop",)


@pytest.mark.parametrize(
    ("constraint", "answer", "new", "standing"),
    [
        (CONNECTOR, ENFORCED, [WARNING], [WARNING]),
        (CONNECTOR, NOT_ENFORCED, [], []),
        (NO_ACCOUNTS, ENFORCED, [ERROR], []),
        (NO_ACCOUNTS, NOT_ENFORCED, [], []),
        (MEMBERS, allowed("C012345"), [NOTE], [NOTE]),
        (MEMBERS, DENY_ALL, [ERROR], [WARNING]),
        (MEMBERS, ALLOW_ALL, [], []),
    ],
)
def test_what_refuses_the_provisioner_is_told(
    constraint: str, answer: Answer, new: list[Severity], standing: list[Severity]
) -> None:
    assert severities(of_provisioner(constraint, answer)) == new
    assert severities(of_provisioner(constraint, answer, deployed=True)) == standing


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (allowed("us-central1"), []),
        (allowed("in:us-central1-locations"), []),
        (allowed("in:us-locations"), []),
        (allowed("in:eu-locations", "in:us-locations"), []),
        (denied("in:us-east1-locations", "europe-west1"), []),
        (allowed("us"), [ERROR]),
        (allowed("us-east1", "in:us-east1-locations", "us-central1-a"), [ERROR]),
        (denied("us-central1"), [ERROR]),
        (denied("in:us-locations"), [ERROR]),
        (DENY_ALL, [ERROR]),
        (allowed("in:eu-locations"), [WARNING]),
        (allowed("in:northamerica-low-carbon-locations"), [WARNING]),
        (denied("in:eu-locations"), [WARNING]),
    ],
)
def test_a_place_is_allowed_by_its_name_or_by_a_group_that_surely_has_it(
    answer: Found, expected: list[Severity]
) -> None:
    assert severities(of_provisioner(LOCATIONS, answer)) == expected


def test_a_multi_region_is_no_group_of_regions() -> None:
    told = provisioner_findings(
        "shop", {"the records": "nam5"}, {LOCATIONS: allowed("in:us-locations")}, deployed=False
    )
    assert severities(list(told)) == [WARNING]
    assert list(provisioner_findings("shop", {"x": "nam5"}, {LOCATIONS: allowed("nam5")}, deployed=False)) == []


def test_slices_must_be_allowed_in_each_zone_that_the_settings_name() -> None:
    only = allowed("us-central2-b")
    assert of_cluster(LOCATIONS, only, zone="us-central2-b") == []
    assert severities(of_cluster(LOCATIONS, only)) == [ERROR], "a zone does not stand for its region"
    [finding] = of_cluster(LOCATIONS, only, zone="us-central2-b", zones=("us-central2-b", "us-central2-c"))
    assert "us-central2-c" in finding.message
    assert of_cluster(LOCATIONS, allowed("in:us-central2-locations"), zone="us-central2-b") == []


def test_nodes_with_external_addresses_must_be_allowed() -> None:
    for answer in (DENY_ALL, allowed("projects/shop/zones/us-central2-b/instances/bastion")):
        assert severities(of_cluster(EXTERNAL, answer, public_nodes=True)) == [ERROR]
        assert of_cluster(EXTERNAL, answer, public_nodes=False) == []
    assert of_cluster(EXTERNAL, ALLOW_ALL, public_nodes=True) == []


@pytest.mark.parametrize(
    ("pools", "expected"),
    [
        (PoolSettings(), []),
        (PoolSettings(secure_boot=False), [ERROR]),
        (PoolSettings(integrity_monitoring=False), [ERROR]),
    ],
)
def test_hosts_must_be_shielded_where_that_is_demanded(pools: PoolSettings, expected: list[Severity]) -> None:
    assert severities(of_cluster(SHIELDED, ENFORCED, pools=pools)) == expected
    assert of_cluster(SHIELDED, NOT_ENFORCED, pools=pools) == []


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (allowed("projects/images"), []),
        (allowed("is:projects/images"), []),
        (allowed("under:folders/1"), []),
        (allowed("projects/others"), [ERROR]),
        (denied("projects/images"), [ERROR]),
    ],
)
def test_the_image_of_self_managed_hosts_must_be_of_a_trusted_project(answer: Found, expected: list[Severity]) -> None:
    pools = PoolSettings(compute=ComputeSettings(image="projects/images/global/images/tpu"))
    assert severities(of_cluster(IMAGES, answer, pools=pools)) == expected
    assert of_cluster(IMAGES, answer) == [], "GKE's own images are GKE's"


def test_a_rule_that_depends_on_tags_is_not_judged() -> None:
    conditional = rules({"denyAll": True, "condition": {"expression": "resource.matchTag('1/env', 'prod')"}})
    assert of_provisioner(LOCATIONS, conditional) == []


def test_that_projects_have_no_default_network_is_told_where_one_is_missing() -> None:
    [finding] = network_findings("shop", {NO_DEFAULT_NETWORK: ENFORCED})
    assert finding.severity is NOTE
    assert finding.remedies == ("gcloud compute networks list --project shop",)
    assert of_cluster(NO_DEFAULT_NETWORK, ENFORCED) == []
