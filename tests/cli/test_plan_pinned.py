"""What `slices plan` says of a cluster whose pods are pinned to their slices, as its relay tells."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
import yaml

from tests.builders import CLUSTER
from tests.cli.stage import Stage
from tests.infra.sources import ROOT
from tpu_slices.domain.model.facts import EXCLUSIVE, Pinning
from tpu_slices.domain.planning.host_labels import NODE_POOL
from tpu_slices.domain.records.heartbeats import SILENT_AFTER
from tpu_slices.domain.reporting.reason_texts import PODS_REFUSED

SCATTERS = "only the admission policy or the webhook keeps its pods on one slice"


@pytest.fixture
def manifest() -> str:
    """A JobSet of several hosts that nothing keeps together."""
    found: Any = yaml.safe_load((ROOT / "examples" / "v5e.yaml").read_text())
    found["metadata"]["annotations"].pop(EXCLUSIVE)
    return yaml.safe_dump(found)


def told(pinning: Pinning | None) -> Stage:
    stage = Stage()
    stage.world.cluster.pinning = pinning
    stage.world.settle(minutes=2)
    return stage


def warned(stage: Stage, manifest: str) -> str:
    return stage.slices("plan", "-f", "-", "--cluster", CLUSTER, input=manifest).stderr


@pytest.mark.parametrize("pinning", [Pinning.POLICY, Pinning.WEBHOOK])
def test_where_pods_are_pinned_nobody_is_warned_that_they_spread(pinning: Pinning, manifest: str) -> None:
    assert SCATTERS not in warned(told(pinning), manifest)


def test_where_nobody_knows_the_owner_is_warned(manifest: str) -> None:
    assert SCATTERS in warned(told(None), manifest)


def test_where_they_are_not_it_is_refused_with_what_lacks_and_what_to_do(manifest: str) -> None:
    asked = told(Pinning.NOTHING).slices("plan", "-f", "-", "--cluster", CLUSTER, "-o", "json", input=manifest)
    (planned,) = json.loads(asked.stdout)["slices"]
    assert (asked.exit_code, planned["refused"]["reason"]) == (3, "PodsNotPinned")
    assert "neither the admission policy nor the webhook" in planned["refused"]["message"]
    assert planned["refused"]["message"].endswith(f"create the JobSet with the annotation {EXCLUSIVE}: {NODE_POOL}")


def test_what_exclusive_topology_keeps_together_is_planned_where_nothing_pins_pods() -> None:
    manifest = (ROOT / "examples" / "v5e.yaml").read_text()
    asked = told(Pinning.NOTHING).slices("plan", "-f", "-", "--cluster", CLUSTER, "-o", "json", input=manifest)
    answer = json.loads(asked.stdout)
    assert (asked.exit_code, [each["refused"] for each in answer["slices"]]) == (0, [None])
    assert not [each for each in answer["warnings"] if "keeps its pods on one slice" in each]


def test_what_a_silent_relay_said_counts_no_more(manifest: str) -> None:
    stage = told(Pinning.POLICY)
    stage.world.clock.advance(SILENT_AFTER + timedelta(minutes=1))
    assert SCATTERS in warned(stage, manifest)


def test_that_no_pod_with_chips_can_be_created_is_a_warning(manifest: str) -> None:
    assert f"warning: {PODS_REFUSED}" in warned(told(Pinning.REFUSED), manifest).replace("\n", " ")


def test_by_what_pods_are_pinned_is_in_json(manifest: str) -> None:
    stage = told(Pinning.WEBHOOK)
    said = stage.slices("plan", "-f", "-", "--cluster", CLUSTER, "-o", "json", input=manifest).stdout
    assert json.loads(said)["cluster"]["pinning"] == "webhook"
