"""How many instances of the functions fit, by Cloud Run's quota of CPUs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from infra.preflight.answers import Answer, Denied, Found, Missing
from infra.preflight.findings import Finding, Severity
from infra.preflight.instances import (
    FUNCTIONS,
    OTHERS,
    QUOTA,
    SERVICE,
    THOUSANDTHS,
    instance_findings,
    together,
    wanted,
)
from infra.preflight.quotas import path_of
from tests.infra.sources import TERRAFORM, local, resource

VARIABLES = (TERRAFORM / "variables.tf").read_text()
UNLIMITED = "-1"


def told(*limits: tuple[str, str]) -> Found:
    """Return what Cloud Quotas tells: regions, or "" for all others, each with a limit."""
    rows: list[dict[str, Any]] = [
        {"dimensions": {"region": region} if region else {}, "details": {"value": limit}} for region, limit in limits
    ]
    return Found({"dimensionsInfos": rows})


def found(max_instances: int, answer: Answer) -> list[Finding]:
    return list(instance_findings("shop", "us-central1", max_instances, answer))


@pytest.mark.parametrize(
    ("max_instances", "cpus", "severity"),
    [
        (10, 9, Severity.ERROR),
        (10, 10, Severity.NOTE),
        (10, 31, Severity.NOTE),
        (10, 32, None),
        (20, 19, Severity.ERROR),
        (20, 20, Severity.NOTE),
        (20, 61, Severity.NOTE),
        (20, 62, None),
        (1, 0, Severity.ERROR),
        (1, 1, Severity.NOTE),
        (1, 5, None),
    ],
)
def test_more_than_one_function_may_have_is_an_error_and_more_than_all_may_have_a_note(
    max_instances: int, cpus: int, severity: Severity | None
) -> None:
    findings = found(max_instances, told(("us-central1", str(cpus * 1000))))
    assert [each.severity for each in findings] == ([] if severity is None else [severity])


@pytest.mark.parametrize(("cpus", "fits"), [(20, 6), (9, 2), (5, 1), (20.5, 6)])
def test_what_is_told_to_fit_fits_with_nothing_to_tell(cpus: float, fits: int) -> None:
    quota = told(("us-central1", str(int(cpus * 1000))))
    [finding] = found(30, quota)
    assert finding.remedies[0] == f"max_instances = {fits} # in infra/terraform/terraform.tfvars"
    assert found(fits, quota) == []
    assert found(fits + 1, quota) != []


def test_where_no_number_fits_more_quota_is_asked_for() -> None:
    [finding] = found(1, told(("us-central1", "2000")))
    [remedy] = finding.remedies
    assert "--quota-id CpuAllocPerProjectRegion --dimensions region=us-central1 --preferred-value 5000" in remedy


def test_what_is_asked_for_is_enough() -> None:
    [finding] = found(10, told(("us-central1", "20000")))
    asked = finding.remedies[-1].rpartition(" ")[2]
    assert found(10, told(("us-central1", asked))) == []


@pytest.mark.parametrize(
    "answer", [told(("us-central1", UNLIMITED)), told(("europe-west4", "1000")), told(), Found({})]
)
def test_without_a_limit_that_is_told_nothing_is_judged(answer: Answer) -> None:
    assert found(1000, answer) == []


def test_the_limit_of_the_region_counts_before_that_of_all() -> None:
    assert found(10, told(("", "1000"), ("us-central1", "50000"))) == []
    assert found(10, told(("", "50000"), ("us-central1", "1000"))) != []
    assert found(10, told(("", "1000"), ("europe-west4", "50000"))) != []


def test_a_quota_that_may_not_be_read_is_told_and_is_no_error() -> None:
    [finding] = found(10, Denied("no"))
    assert finding.severity is Severity.WARNING
    assert "how many CPUs Cloud Run allows in us-central1" in finding.message


def test_a_quota_that_cloud_quotas_does_not_know_is_told_as_not_known() -> None:
    [finding] = found(10, Missing())
    assert finding.severity is Severity.NOTE
    assert "It is not known whether us-central1 has CPUs for max_instances = 10, which are 32" in finding.message


def test_it_is_a_quota_of_cloud_run() -> None:
    path = path_of(QUOTA.id, "shop", service=SERVICE)
    services = "v1/projects/shop/locations/global/services"
    assert path == f"{services}/run.googleapis.com/quotaInfos/CpuAllocPerProjectRegion"


@pytest.mark.parametrize(
    ("values", "number"),
    [
        (None, 10),
        ("", 10),
        ('database = "existing"\n', 10),
        ("max_instances = 4\n", 4),
        ('database = "existing"\n  max_instances=25 # as many as fit\n', 25),
        ('max_instances = "7"\n', 7),
        ("# max_instances = 4\n", 10),
    ],
)
def test_the_number_is_the_one_that_terraform_takes(tmp_path: Path, values: str | None, number: int) -> None:
    (tmp_path / "variables.tf").write_text(VARIABLES)
    if values is not None:
        (tmp_path / "terraform.tfvars").write_text(values)
    assert wanted(tmp_path) == number


def test_a_root_without_the_variable_is_no_such_root(tmp_path: Path) -> None:
    (tmp_path / "variables.tf").write_text(VARIABLES.replace('"max_instances"', '"another"'))
    with pytest.raises(ValueError, match="has no variable max_instances"):
        wanted(tmp_path)


def test_the_functions_have_the_instances_and_the_cpus_that_are_counted() -> None:
    instances = [function["max_instances"] for function in local("functions").values()]
    assert instances == [*["${var.max_instances}"] * FUNCTIONS, OTHERS]
    assert together(10) == 32
    [config] = resource("google_cloudfunctions2_function", "function")["service_config"]
    assert int(config["available_cpu"]) * 1000 == THOUSANDTHS
