"""`slices list` and `slices explain` while a cluster's relay is silent."""

from __future__ import annotations

import json

import pytest

from tests.builders import MINUTE
from tests.cli.stage import Stage, out_of_stock, serving
from tests.cli.test_people import SleepUntilInterrupted

SILENT = (
    "demo: The cluster's relay has not been heard since {since} UTC: hosts are shown as they were then, and nothing "
    "new is created or deleted until it runs again. Operators: `kubectl -n tpu-slice-provisioner get pods`."
)


@pytest.fixture
def silent(stage: Stage) -> str:
    """Let the relay fall silent; return the line about it."""
    serving(stage)
    since = f"{stage.world.clock.now() - MINUTE:%H:%M}"
    stage.world.relay_is_dead = True
    stage.world.settle(minutes=5)
    return SILENT.format(since=since)


def test_a_list_ends_with_a_line_for_each_silent_relay(stage: Stage, silent: str) -> None:
    for output in ("table", "wide"):
        header, *_, line = stage.output_of("list", "-o", output).splitlines()
        assert (header.startswith("CLUSTER"), line) == (True, silent)


def test_a_list_without_slices_tells_of_a_silent_relay(stage: Stage, silent: str) -> None:
    assert stage.output_of("list", "--jobset", "nobody").splitlines() == [silent]


def test_machines_are_told_of_a_silent_relay_on_standard_error(stage: Stage, silent: str) -> None:
    result = stage.slices("list", "-o", "json")
    assert len(json.loads(result.stdout)["slices"]) == 1
    assert result.stderr.splitlines() == [silent]


def test_a_relay_that_is_heard_is_not_mentioned(stage: Stage) -> None:
    serving(stage)
    assert "relay" not in stage.output_of("list")


def test_watching_prints_a_line_when_the_relay_falls_silent(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    serving(stage)

    def falls_silent() -> None:
        stage.world.relay_is_dead = True
        stage.world.settle(minutes=5)

    monkeypatch.setattr("tpu_slices_cli.listing.sleep", SleepUntilInterrupted(falls_silent, lambda: None))
    _, line = stage.slices("list", "--watch").stdout.splitlines()
    assert "demo: The cluster's relay has not been heard since" in line


def test_an_explanation_tells_of_a_silent_relay(stage: Stage, silent: str) -> None:
    assert stage.output_of("explain", "research/llama").splitlines()[-1] == silent
    assert json.loads(stage.output_of("explain", "research/llama", "-o", "json"))["silent_relays"] == [silent]


def test_an_explained_wait_has_the_silent_relay_as_its_remedy(stage: Stage) -> None:
    out_of_stock(stage)
    stage.world.relay_is_dead = True
    stage.world.settle(minutes=6)
    report = json.loads(stage.output_of("explain", "research/gemma", "-o", "json"))["report"]
    assert report["message"].endswith(SILENT.format(since="12:00").removeprefix("demo: "))
