"""The filter of the log sink, compared with the entries that `ended_operation` reads."""

import json
import re
from pathlib import Path

import pytest

from tests.infra.sources import ROOT, resource
from tpu_slices.domain.model.slices import ClusterId, Owner, OwnerKind, WorkloadJob, WorkloadUid, pool_name, slice_id
from tpu_slices.wire.operations import ended_operation

FILTER = resource("google_logging_project_sink", "operations")["filter"].replace('\\"', '"')
ENTRIES = sorted((ROOT / "tests" / "events" / "audit_log").glob("*.json"))


def pattern_of(field: str) -> re.Pattern[str]:
    """Return the pattern that the filter has for a field; in the logging query language it may match anywhere."""
    [pattern] = re.findall(rf'{re.escape(field)}=~"([^"]+)"', FILTER)
    return re.compile(pattern)


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
    assert pattern_of("resource.labels.nodepool_name").search(pool_name(slice_id(job(jobset, index)), attempt))


@pytest.mark.parametrize("name", ["default-pool", "tpu-pool", "tpu-v5e-16", "my-tpu-a-aaaaaaaaaaaaa-1"])
def test_names_of_other_pools_do_not_pass_the_filter(name: str) -> None:
    assert not pattern_of("resource.labels.nodepool_name").search(name)


@pytest.mark.parametrize("path", ENTRIES, ids=lambda path: path.stem)
def test_the_filter_passes_exactly_the_entries_that_are_read(path: Path) -> None:
    entry = json.loads(path.read_text())
    operation = entry.get("operation")
    passes = (
        entry["resource"]["type"] == "gke_nodepool"
        and entry["protoPayload"]["serviceName"] == "container.googleapis.com"
        and pattern_of("protoPayload.methodName").search(entry["protoPayload"]["methodName"]) is not None
        and pattern_of("resource.labels.nodepool_name").search(entry["resource"]["labels"]["nodepool_name"]) is not None
        and (operation.get("last", False) if operation else entry["severity"] in {"ERROR", "CRITICAL"})
    )

    assert passes == (ended_operation(path.read_bytes()) is not None)


def test_the_filter_has_no_other_conditions() -> None:
    assert re.sub(r'=~"[^"]+"', "=~…", FILTER).split("\nAND ") == [
        'resource.type="gke_nodepool"',
        'log_id("cloudaudit.googleapis.com/activity")',
        'protoPayload.serviceName="container.googleapis.com"',
        "protoPayload.methodName=~…",
        "resource.labels.nodepool_name=~…",
        "(${local.served_clusters_filter[each.key]})",
        "(operation.last=true OR (NOT operation:* AND severity>=ERROR))",
    ]
