"""`slices list` and `slices explain` while a cluster's relay is silent."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest

from tests.builders import CLUSTER, MINUTE
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


def test_machines_are_told_of_it_beside_the_slices_too(stage: Stage, silent: str) -> None:
    assert json.loads(stage.output_of("list", "-o", "json"))["silent_relays"] == [silent]


@pytest.mark.parametrize("command", [["list"], ["explain", "research/llama"]], ids=lambda words: words[0])
def test_after_two_minutes_without_its_relay_a_cluster_is_told_as_it_was_then(stage: Stage, command: list[str]) -> None:
    serving(stage)
    stage.world.relay_is_dead = True
    heartbeat = stage.world.store.heartbeat(CLUSTER)
    assert heartbeat is not None
    assert heartbeat.value.received_at is not None
    stage.world.clock.advance(heartbeat.value.received_at - stage.world.clock.now() + 2 * MINUTE)
    assert "last heard" not in stage.output_of(*command)
    stage.world.clock.advance(timedelta(seconds=1))
    assert LATE.search(stage.output_of(*command))


LATE = re.compile(r"demo: The cluster's relay was last heard at \d\d:\d\d UTC: what is told here is as it was then\.")


def test_a_name_that_is_not_on_record_may_be_of_what_a_silent_relay_did_not_tell(stage: Stage, silent: str) -> None:
    result = stage.slices("explain", "research/new")
    assert result.exit_code == 1
    assert 'slice "research/new" not found in cluster demo' in result.stderr
    assert f"It may be newer than what is on record: {silent}" in result.stderr


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


def test_a_timeline_says_from_when_it_is(stage: Stage, silent: str) -> None:
    assert f'<p class="note">{silent}</p>' in stage.output_of("timeline", "-f", "-").replace("&#x27;", "'")


def test_an_explained_wait_has_the_silent_relay_as_its_remedy(stage: Stage) -> None:
    out_of_stock(stage)
    stage.world.relay_is_dead = True
    stage.world.settle(minutes=6)
    report = json.loads(stage.output_of("explain", "research/gemma", "-o", "json"))["report"]
    assert report["message"].endswith(SILENT.format(since="12:00").removeprefix("demo: "))
