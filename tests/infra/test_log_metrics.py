"""The metrics to alert on, compared with what the functions log and with the policies that operators are given."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.builders import MINUTE
from tests.conftest import Lines
from tests.functions.test_handlers import an_event
from tests.house.test_closed_lists import rows
from tests.infra.sources import ROOT, local, resource
from tests.world import World
from tpu_slices.app.handlers import handle_sweep
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.wire.messages import Message

METRIC = resource("google_logging_metric", "event")
COUNTED = set(re.findall(r'"([\w.]+)"', local("counted_events")))
FUNCTIONS = {"functions", "receive", "reconcile", "sweep"}
DOCUMENTED = {event: (severity, set(loggers.split(", "))) for event, severity, loggers, _ in rows("log-events.md")}
PAGE = (ROOT / "docs" / "log-events.md").read_text()
POLICIES: list[dict[str, Any]] = [json.loads(text) for text in re.findall(r"--policy='(.*?)'\n", PAGE, re.DOTALL)]
USED = re.compile(r'metric\.type="logging\.googleapis\.com/user/tpu-slices/([\w.]+)"')


def conditions(kind: str) -> list[dict[str, Any]]:
    return [each[kind] for policy in POLICIES for each in policy["conditions"] if kind in each]


def test_every_error_of_the_functions_is_counted_and_so_are_the_sweeps() -> None:
    errors = {event for event, (severity, by) in DOCUMENTED.items() if "ERROR" in severity and by & FUNCTIONS}
    assert errors | {LogEvent.SWEEP_COMPLETED.value} == COUNTED
    assert METRIC["for_each"] == "${local.counted_events}"


def test_a_metric_counts_the_lines_of_one_event_of_the_functions() -> None:
    assert METRIC["filter"].replace('\\"', '"').strip().split("\nAND ") == [
        'resource.type="cloud_run_revision"',
        'resource.labels.service_name=~"^tpu-slice-(${join("|", keys(local.functions))})$"',
        'jsonPayload.event="${each.key}"',
    ]
    assert resource("google_cloudfunctions2_function", "function")["name"] == "tpu-slice-${each.key}"


def test_its_one_label_is_the_cluster_that_a_line_names() -> None:
    [descriptor] = METRIC["metric_descriptor"]
    assert (descriptor["metric_kind"], descriptor["value_type"]) == ("DELTA", "INT64")
    assert [label["key"] for label in descriptor["labels"]] == ["cluster"]
    assert METRIC["label_extractors"] == {"cluster": "EXTRACT(jsonPayload.cluster)"}


def test_a_silent_relay_is_counted_by_its_cluster_once_a_sweep(lines: Lines) -> None:
    world = World()
    for _ in range(6):
        world.clock.advance(MINUTE)
        handle_sweep(an_event("sweep-ticks", Message(b"{}", {})), world.deps)
    counted = [line for line in lines() if line["event"] == LogEvent.RELAY_SILENT and line["event"] in COUNTED]
    assert [line["cluster"] for line in counted] == ["demo"] * 3


def test_the_documented_policies_are_on_metrics_that_there_are() -> None:
    filters = [each["filter"] for kind in ("conditionThreshold", "conditionAbsent") for each in conditions(kind)]
    used = {metric for each in filters for metric in USED.findall(each)}
    assert {LogEvent.RELAY_SILENT.value, LogEvent.SWEEP_COMPLETED.value} <= used <= COUNTED


def test_an_alert_about_a_silent_relay_is_one_for_each_cluster() -> None:
    [silent] = [each for each in conditions("conditionThreshold") if "relay.silent" in each["filter"]]
    [summed] = silent["aggregations"]
    assert summed["groupByFields"] == ["metric.label.cluster"]
    assert (silent["comparison"], silent["thresholdValue"]) == ("COMPARISON_GT", 0)


@pytest.mark.parametrize("event", sorted(COUNTED))
def test_a_metrics_name_is_one_that_cloud_logging_takes(event: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_\-.,+!*',()%/]{1,100}", METRIC["name"].replace("${each.key}", event))
