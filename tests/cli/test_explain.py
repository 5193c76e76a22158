"""`slices explain`, on a world in memory."""

from __future__ import annotations

import json
from typing import Any

import pytest
import structlog

from tests.builders import CLUSTER
from tests.cli.stage import Stage, out_of_stock, serving
from tpu_slices.domain.model.facts import WorkloadChanged, WorkloadState
from tpu_slices.wire.readers import OUT, elsewhere
from tpu_slices.wire.workloads import OPTED_OUT
from tpu_slices_cli.screen import log_to_standard_error
from tpu_slices_simulator.objects import patched

WHO = "gemma-slice-0 since 12:00 UTC"
OUT_OF_STOCK = "us-central2-b is out of tpu-v6e-slice 4x4"
REMEDY = "It is retried automatically. Another zone, a smaller topology, spot or a reservation may be available sooner."


def test_a_slice_is_explained_by_each_of_its_names(stage: Stage) -> None:
    record = stage.world.record(serving(stage))
    texts = {stage.output_of("explain", name) for name in (record.name, record.pool, "research/llama-slice-0")}
    (text,) = texts
    assert text.splitlines()[1].startswith("READY for ")
    assert f"{record.pool}: running" in text
    assert "Hosts       4/4 work, 4 joined" in text
    assert "Occupants   research/llama-slice-0" in text
    assert "CreationStarted: Creating node pool" in text


def test_what_gke_does_to_a_slice_is_explained_and_listed_with_its_beginning_and_its_end(stage: Stage) -> None:
    jobset = serving(stage)
    stage.world.backend.upgrade(stage.world.record(jobset).pool)
    stage.world.settle(minutes=30)
    told = "GKE upgrades the node pool and makes its hosts anew since 2026-03-01 12:"
    ends = "If they are not back by 2026-03-01 18:"
    for name in ("research/llama-slice-0", "research/llama"):
        text = stage.output_of("explain", name)
        assert told in text
        assert ends in text
    assert "GkeUpgrades" in stage.output_of("list")


def test_a_jobset_is_explained_before_its_slices(stage: Stage) -> None:
    out_of_stock(stage)
    lines = stage.output_of("explain", "research/gemma").splitlines()
    assert lines[:7] == [
        "research/gemma",
        f"SlicesWaiting for 0 s: 0 of 1 slices ready; {WHO}: {OUT_OF_STOCK}, next attempt at 12:01:00 UTC. {REMEDY}",
        "  New pods are pinned to their slices by the admission policy.",
        f"  1 x WAITING, Stockout, since 12:00:00 UTC: {OUT_OF_STOCK}",
        "    Jobs: gemma-slice-0",
        "    Next attempt: in 1 min (12:01:00 UTC)",
        f"    {REMEDY}",
    ]
    report = json.loads(stage.output_of("explain", "research/gemma", "-o", "json"))["report"]
    assert (report["reason"], report["waits"][0]["reason"]) == ("SlicesWaiting", "Stockout")


ALIKE = (
    "3 slices, each tpu-v6e-slice 4x4: 4 x ct6e-standard-4t, 16 chips, us-central2-b, on demand",
    "  READY, Ready: All 4 hosts are ready and offer their chips; 4 of 4 pods run.",
)


def test_what_slices_of_a_jobset_have_in_common_is_said_once_and_then_what_differs(stage: Stage) -> None:
    jobset = stage.world.jobset_appears("llama", slices=3)
    stage.world.settle(minutes=10, until=lambda: len(jobset.bound) == 3)
    stage.world.settle(minutes=2)
    lines = stage.output_of("explain", "research/llama").splitlines()
    first = lines.index(ALIKE[0])
    assert lines[first + 1] == ALIKE[1]
    for index, line in enumerate(lines[first + 2 : first + 5]):
        record = stage.world.record(jobset, index)
        assert line.split()[:3] == [record.job.job_name, record.name, "4/4"]
        assert line.endswith("pool running")
    assert lines[first + 6] == "`slices explain SLICE` has all of one slice, its history too; --full that of each."
    assert len(lines) < 15
    full = stage.output_of("explain", "research/llama", "--full")
    assert full.count("History") == 3
    assert len(full.splitlines()) > 30


def test_slices_of_different_states_are_told_apart_and_without_a_report_too(stage: Stage) -> None:
    jobset = stage.world.jobset_appears("llama", slices=3)
    stage.world.settle(minutes=10, until=lambda: len(jobset.bound) == 3)
    stage.world.settle(minutes=2)
    stage.output_of("hold", stage.world.record(jobset, 1).name, "--note", "ask Ada")
    text = stage.output_of("explain", "research/llama")
    assert ["1 slice: tpu" in text, "2 slices, each tpu" in text, "; ask Ada" in text] == [True, True, True]
    assert "READY, Held (Ready): Held by ada@example.com" in text
    stage.world.ends(jobset)
    stage.world.deliver()
    lines = stage.output_of("explain", "research/llama").splitlines()
    assert (lines[0], sum("slice" in line and "each" in line for line in lines[:-1])) == ("research/llama", 1)


def test_a_suspended_jobset_is_explained_though_it_has_no_slice(stage: Stage) -> None:
    suspended = stage.world.jobset_appears("gemma")
    stage.world.publish(WorkloadChanged(workload=suspended.ref, state=WorkloadState.SUSPENDED, queue="team-a"))
    stage.world.deliver()
    assert stage.output_of("explain", "research/gemma").splitlines()[1] == (
        'NoSlicesRequested for 0 s: The JobSet is suspended by Kueue in queue "team-a" '
        "(see `kubectl describe workloads -n research`); slices are created when it is resumed."
    )


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ({"metadata": {"annotations": {OPTED_OUT: "true"}}}, f"it {OUT}"),
        ({"spec": {"managedBy": "example.com/other"}}, elsewhere("example.com/other")),
        ({}, ""),
    ],
    ids=["opted out", "managed elsewhere", "served"],
)
def test_a_jobset_for_which_no_slices_are_made_is_explained_with_the_reason_that_plan_gives(
    stage: Stage, parts: dict[str, Any], why: str
) -> None:
    jobset = stage.world.jobset_appears("gemma")
    stage.world.edits(jobset, patched(jobset.manifest, parts))
    stage.world.cluster_lives()
    stage.world.deliver()
    text = stage.output_of("explain", "research/gemma")
    told = f"NoSlicesRequested for 0 s: No slices are made for the JobSet: {why}."
    assert (text.splitlines()[1] == told) is bool(why), text
    assert "reports no leader pod" not in text


def test_a_waiting_slice_is_explained_with_its_reason_and_next_retry(stage: Stage) -> None:
    out_of_stock(stage)
    text = stage.output_of("explain", "research/gemma")
    assert "WAITING for 0 s (since 12:00:00 UTC): us-central2-b is out of" in text
    assert "Next attempt in 1 min (12:01:00 UTC)." in text


def test_explaining_changes_nothing_and_shows_the_next_decision(stage: Stage) -> None:
    record = stage.world.record(serving(stage))
    stage.world.store.edit_slice(CLUSTER, record.id, release_requested=True)
    calls = len(stage.world.backend.calls)
    (explained,) = json.loads(stage.output_of("explain", record.name, "-o", "json"))["slices"]
    assert explained["decision"]["actions"] == [
        f"ask the relay to close the hosts of {record.pool} to new pods, and who is on them"
    ]
    assert explained["seen"] == "running"
    assert len(stage.world.backend.calls) == calls


def test_a_slice_is_explained_though_gke_is_unavailable(stage: Stage) -> None:
    record = stage.world.record(serving(stage))
    stage.world.backend.hide()
    assert "cannot be read: The service is currently unavailable." in stage.output_of("explain", record.name)


def test_a_jobset_is_explained_beside_a_slice_whose_record_cannot_be_read(stage: Stage) -> None:
    jobset = stage.world.jobset_appears("gemma", slices=2)
    stage.world.cluster_lives()
    stage.world.deliver()
    unreadable, sound = stage.world.record(jobset, 0), stage.world.record(jobset, 1)
    stage.world.store.edit_slice(CLUSTER, unreadable.id, schema=99)
    lines = stage.output_of("explain", "research/gemma").splitlines()
    assert lines[1].startswith(f"SlicesBlocked for 0 s: 0 of 2 slices ready; {unreadable.name} since")
    assert lines[-1].startswith(f"slices/demo.{unreadable.id}: schema: 99 is not supported")
    explained = json.loads(stage.output_of("explain", "research/gemma", "-o", "json"))
    assert [each["record"]["id"] for each in explained["slices"]] == [sound.id]
    assert len(explained["unreadable"]) == 1


def test_a_slice_whose_record_cannot_be_read_is_not_called_unknown(stage: Stage) -> None:
    record = stage.world.record(serving(stage))
    stage.world.store.edit_slice(CLUSTER, record.id, schema=99)
    result = stage.slices("explain", record.name)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"slices/demo.{record.id}: schema: 99")


def test_log_lines_do_not_mix_with_results(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_standard_error()
    structlog.get_logger().error("document.unreadable")
    structlog.reset_defaults()
    written = capsys.readouterr()
    assert (written.out, "document.unreadable" in written.err) == ("", True)


def test_an_unknown_name_is_an_error_of_one_line(stage: Stage) -> None:
    result = stage.slices("explain", "research/nobody")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines() == [
        'slice "research/nobody" not found in cluster demo: see `slices list --cluster demo --all`'
    ]
