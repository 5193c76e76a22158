"""The metrics of log lines, compared with what the functions log."""

from __future__ import annotations

import re

import pytest

from tests.builders import MINUTE
from tests.conftest import Lines
from tests.functions.test_handlers import an_event
from tests.house.test_closed_lists import rows
from tests.infra.sources import local, resource
from tests.world import World
from tpu_slices.app.handlers import handle_sweep
from tpu_slices.ports.log_events import MEASURED, LogEvent
from tpu_slices.wire.messages import Message

EVENT = resource("google_logging_metric", "event")
NUMBER = resource("google_logging_metric", "number")
COUNTED = set(re.findall(r'"([\w.]+)"', local("counted_events")))
FUNCTIONS = {"functions", "receive", "reconcile", "sweep", "notify"}
DOCUMENTED = {event: (severity, set(loggers.split(", "))) for event, severity, loggers, _ in rows("log-events.md")}
CLUSTER = {"cluster": "EXTRACT(jsonPayload.cluster)"}


def test_every_error_of_the_functions_is_counted_and_so_are_the_sweeps() -> None:
    errors = {event for event, (severity, by) in DOCUMENTED.items() if "ERROR" in severity and by & FUNCTIONS}
    assert errors | {LogEvent.SWEEP_COMPLETED.value, LogEvent.CLUSTERS_SEARCHED.value} == COUNTED
    assert EVENT["for_each"] == "${local.counted_events}"


def test_the_numbers_that_become_metrics_are_those_of_the_code() -> None:
    measured = {event.strip('"'): tuple(numbers) for event, numbers in local("measured_numbers").items()}
    assert measured == {event.value: numbers for event, numbers in MEASURED.items()}
    assert NUMBER["for_each"] == "${local.measured}"


def test_every_number_is_documented_with_its_event() -> None:
    meanings = {event: meaning for event, _, _, meaning in rows("log-events.md")}
    missing = {
        (event.value, number)
        for event, numbers in MEASURED.items()
        for number in numbers
        if f"`{number}`" not in meanings[event]
    }
    assert missing == set()


def test_metrics_are_of_the_functions_lines_only() -> None:
    function = resource("google_cloudfunctions2_function", "function")
    assert function["name"] == "tpu-slice-${each.key}"
    assert "^tpu-slice-(${join(" in local("functions_lines")
    for metric in (EVENT, NUMBER):
        assert "local.functions_lines" in metric["filter"]


def test_their_one_label_is_the_cluster_that_a_line_names() -> None:
    for metric, kind in ((EVENT, "INT64"), (NUMBER, "DISTRIBUTION")):
        [descriptor] = metric["metric_descriptor"]
        assert (descriptor["metric_kind"], descriptor["value_type"]) == ("DELTA", kind)
        assert [label["key"] for label in descriptor["labels"]] == ["cluster"]
        assert metric["label_extractors"] == CLUSTER


def test_a_silent_relay_is_counted_by_its_cluster_once_a_sweep(lines: Lines) -> None:
    world = World()
    for _ in range(6):
        world.clock.advance(MINUTE)
        handle_sweep(an_event("ticks-demo", Message(b"{}", {})), world.deps)
    counted = [line for line in lines() if line["event"] == LogEvent.RELAY_SILENT and line["event"] in COUNTED]
    assert [line["cluster"] for line in counted] == ["demo"] * 3


@pytest.mark.parametrize("name", sorted({*COUNTED, *(f"{e}/{n}" for e, numbers in MEASURED.items() for n in numbers)}))
def test_a_metrics_name_is_one_that_cloud_logging_takes(name: str) -> None:
    assert EVENT["name"] == NUMBER["name"] == "tpu-slices/${each.key}"
    assert re.fullmatch(r"[A-Za-z0-9_\-.,+!*',()%/]{1,100}", f"tpu-slices/{name}")
