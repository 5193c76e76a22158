"""The filters of the log sinks, compared with the entries that `ended_operation` reads."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.infra.sources import ROOT, resource
from tpu_slices.domain.model.slices import ClusterId, Owner, OwnerKind, WorkloadJob, WorkloadUid, claim_id, pool_name
from tpu_slices.wire.operations import ended_operation


def filter_of(sink: str) -> str:
    text: str = resource("google_logging_project_sink", sink)["filter"]
    return text.replace('\\"', '"')


OF_GKE, OF_COMPUTE = filter_of("operations"), filter_of("compute_operations")
ENTRIES = sorted((ROOT / "tests" / "events" / "audit_log").glob("*.json"))


def pattern_of(field: str, filter_: str = OF_GKE) -> re.Pattern[str]:
    """Return the pattern that a filter has for a field; in the logging query language it may match anywhere."""
    [pattern] = re.findall(rf'{re.escape(field)}=~"([^"]+)"', filter_)
    return re.compile(pattern)


def passes_gke(entry: dict[str, Any]) -> bool:
    return (
        entry["resource"]["type"] == "gke_nodepool"
        and entry["protoPayload"]["serviceName"] == "container.googleapis.com"
        and pattern_of("protoPayload.methodName").search(entry["protoPayload"]["methodName"]) is not None
        and pattern_of("resource.labels.nodepool_name").search(entry["resource"]["labels"]["nodepool_name"]) is not None
    )


def passes_compute(entry: dict[str, Any]) -> bool:
    payload = entry["protoPayload"]
    return payload["serviceName"] == "compute.googleapis.com" and all(
        pattern_of(f"protoPayload.{field}", OF_COMPUTE).search(payload[field]) is not None
        for field in ("methodName", "resourceName")
    )


def job(jobset: str, index: int = 0) -> WorkloadJob:
    return WorkloadJob(
        cluster=ClusterId("demo"),
        owner=Owner(
            kind=OwnerKind.JOBSET,
            namespace="team-a",
            name=jobset,
            uid=WorkloadUid("6f5b1f39-6f0c-4a53-9f4c-2f6f0a2b9a11"),
        ),
        replicated_job="slice",
        job_index=index,
    )


@pytest.mark.parametrize("jobset", ["a", "train", "llama-3.1-405b-pretraining-on-sixteen-slices", "9", "x--y"])
@pytest.mark.parametrize("index", [0, 15, 1023])
@pytest.mark.parametrize("attempt", [1, 10, 9999])
def test_every_name_of_our_pools_passes_the_filter(jobset: str, index: int, attempt: int) -> None:
    name = pool_name(claim_id(job(jobset, index)), attempt)
    assert pattern_of("resource.labels.nodepool_name").search(name)
    for place in ("regions/r/resourcePolicies", "global/instanceTemplates", "zones/z/instanceGroupManagers"):
        assert pattern_of("protoPayload.resourceName", OF_COMPUTE).search(f"projects/p/{place}/{name}")


@pytest.mark.parametrize("name", ["default-pool", "tpu-pool", "tpu-v5e-16", "my-tpu-a-aaaaaaaaaaaaa-1"])
def test_names_of_other_pools_do_not_pass_the_filter(name: str) -> None:
    assert not pattern_of("resource.labels.nodepool_name").search(name)
    assert not pattern_of("protoPayload.resourceName", OF_COMPUTE).search(f"projects/p/global/instanceTemplates/{name}")


@pytest.mark.parametrize("path", ENTRIES, ids=lambda path: path.stem)
def test_the_filters_pass_exactly_the_entries_that_are_read(path: Path) -> None:
    entry = json.loads(path.read_text())
    operation = entry.get("operation")
    ended = operation.get("last", False) if operation else entry["severity"] in {"ERROR", "CRITICAL"}
    passes = ended and (passes_gke(entry) or passes_compute(entry))

    assert passes == (ended_operation(path.read_bytes()) is not None)


def conditions_of(filter_: str) -> list[str]:
    return re.sub(r'=~"[^"]+"', "=~…", filter_).split("\nAND ")


def test_the_filters_have_no_other_conditions() -> None:
    assert conditions_of(OF_GKE) == [
        'resource.type="gke_nodepool"',
        'log_id("cloudaudit.googleapis.com/activity")',
        'protoPayload.serviceName="container.googleapis.com"',
        "protoPayload.methodName=~…",
        "resource.labels.nodepool_name=~…",
        "(${local.served_clusters_filter[each.key]})",
        "(operation.last=true OR (NOT operation:* AND severity>=ERROR))",
    ]
    assert conditions_of(OF_COMPUTE) == [
        'log_id("cloudaudit.googleapis.com/activity")',
        'protoPayload.serviceName="compute.googleapis.com"',
        "protoPayload.methodName=~…",
        "protoPayload.resourceName=~…",
        "(operation.last=true OR (NOT operation:* AND severity>=ERROR))",
    ]
