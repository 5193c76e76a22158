"""The alerts and the dashboard as Terraform evaluates them: on metrics that there are, and each with its paragraph."""

from __future__ import annotations

import copy
import json
import re
import shutil
from functools import reduce
from itertools import chain
from operator import getitem
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseError

from infra.local import messaging
from tests.infra.evaluation import CLUSTERS, PROJECT, as_answered, evaluated, prepared, terraform
from tests.infra.provider_schema import EXTRACT
from tests.infra.sources import ROOT, attributes, blocks, resource
from tests.infra.test_log_metrics import COUNTED
from tpu_slices.ports.log_events import MEASURED

pytestmark = [
    pytest.mark.emulators,
    pytest.mark.enable_socket,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed"),
]

METRIC = re.compile(r'metric\.type="([^"]+)"')
OF_LINES = "logging.googleapis.com/user/tpu-slices/"
GOOGLES = {
    "pubsub.googleapis.com/subscription/num_undelivered_messages",
    "pubsub.googleapis.com/subscription/oldest_unacked_message_age",
    "run.googleapis.com/request_count",
}
MEASURED_METRICS = {f"{event}/{number}" for event, numbers in MEASURED.items() for number in numbers}
SINGLE = {"The sweep does not run": "sweep", "A relay logs errors": "relay"}
"""The alerts that are resources of their own."""
LONGEST = 8_192
"""Cloud Monitoring's limit of a documentation, in characters; in bytes it is 10,240."""
ABSENT = {"sweep.completed", "clusters.searched"}
"""The lines whose absence asks for somebody."""
CHANNEL = "projects/other-project/notificationChannels/7"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared(tmp_path_factory.mktemp("alerts"))


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, Any]:
    return evaluated(
        folder,
        {
            name: f"local.{name}"
            for name in ("alerts", "runbook", "dashboard", "unacked_age", "log_metrics", "channels", "ticked")
        },
        notification_channels=json.dumps([CHANNEL]),
    )


def conditions(found: dict[str, Any]) -> list[dict[str, Any]]:
    return list(chain.from_iterable(alert["conditions"] for alert in found["alerts"].values()))


def metrics(filters: list[str]) -> set[str]:
    return {metric for each in filters for metric in METRIC.findall(each)}


def test_every_alert_has_its_paragraph_and_every_paragraph_its_alert(found: dict[str, Any]) -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "docs" / "runbook.md").read_text(), re.MULTILINE)
    assert sorted(headings) == sorted(found["runbook"]) == sorted([*found["alerts"], *SINGLE])
    assert resource("google_monitoring_alert_policy", "alert")["display_name"] == "TPU slices: ${each.key}"
    for heading, name in SINGLE.items():
        policy = resource("google_monitoring_alert_policy", name)
        assert heading in policy["display_name"]
        assert policy["documentation"][0]["content"].replace('\\"', '"') == f'${{local.runbook["{heading}"]}}'


def test_a_paragraph_tells_what_to_look_at_and_what_to_do_and_fits_into_a_notification(found: dict[str, Any]) -> None:
    for heading, text in found["runbook"].items():
        assert "\nLook" in text, heading
        assert "\nDo: " in text, heading
        assert not re.search(r"^#|\]\(|\$\{", text, re.MULTILINE), "no heading, link or variable reaches its reader"
        assert len(text.encode()) <= LONGEST


def test_every_line_that_is_counted_and_asks_for_somebody_has_an_alert(found: dict[str, Any]) -> None:
    used = metrics([each["filter"] for each in conditions(found)])
    of_lines = {metric.removeprefix(OF_LINES) for metric in used if metric.startswith(OF_LINES)}
    assert of_lines & COUNTED == COUNTED - ABSENT
    assert of_lines - COUNTED <= MEASURED_METRICS
    assert {metric for metric in used if not metric.startswith(OF_LINES)} == GOOGLES


def test_each_schedule_has_an_alert_on_the_lines_that_follow_its_ticks(found: dict[str, Any]) -> None:
    assert {name: each["seconds"] for name, each in found["ticked"].items()} == {
        **{f"ticks-{cluster}": 900 for cluster in CLUSTERS},
        "project-ticks": 3600,
    }
    for name, each in found["ticked"].items():
        of_cluster = f' AND metric.label.cluster="{name.removeprefix("ticks-")}"' if name != "project-ticks" else ""
        event = "sweep.completed" if of_cluster else "clusters.searched"
        assert each["lines"] == f'{found["log_metrics"]}/{event}"{of_cluster}'


def test_the_sweeps_alert_takes_no_data_and_zeros() -> None:
    policy = resource("google_monitoring_alert_policy", "sweep")
    assert policy["for_each"] == "${local.ticked}"
    assert [next(attributes(condition, "filter")) for condition in policy["conditions"]] == ["${each.value.lines}"] * 2


def test_the_dashboard_shows_every_line_that_asks_for_somebody_and_only_metrics_that_there_are(
    found: dict[str, Any],
) -> None:
    shown = metrics(list(attributes(found["dashboard"], "filter")))
    of_lines = {metric.removeprefix(OF_LINES) for metric in shown if metric.startswith(OF_LINES)}
    assert of_lines & COUNTED == COUNTED - ABSENT
    phases = set(MEASURED_METRICS) - {
        "cluster.counted/held_seconds",
        "cluster.counted/idle_percent",
        "inventory.checked/orphans",
        "inventory.checked/ownerless",
    }
    assert of_lines - COUNTED == phases
    assert {metric for metric in shown if not metric.startswith(OF_LINES)} == GOOGLES


def test_the_charts_of_the_dashboard_lie_side_by_side(found: dict[str, Any]) -> None:
    layout = found["dashboard"]["mosaicLayout"]
    squares = [
        (x, y)
        for tile in layout["tiles"]
        for x in range(tile.get("xPos", 0), tile.get("xPos", 0) + tile["width"])
        for y in range(tile.get("yPos", 0), tile.get("yPos", 0) + tile["height"])
    ]
    assert len(squares) == len(set(squares))
    assert max(x for x, _ in squares) < layout["columns"] <= 48


def test_the_dashboard_is_written_as_the_api_answers_it(found: dict[str, Any]) -> None:
    """So a second apply changes nothing."""
    assert as_answered(found["dashboard"]) == found["dashboard"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["mosaicLayout", "tiles", 0, "xPos"], 0),
        (["mosaicLayout", "tiles", 0, "yPos"], 0),
        (["mosaicLayout", "tiles", 0, "widget", "xyChart", "dataSets", 0, "timeSeriesQuery", "timeSeriesFilter",
          "aggregation", "groupByFields"], []),
        (["mosaicLayout", "tiles", 0, "widget", "xyChart", "dataSets", 0, "minAlignmentPeriod"], "60.0s"),
    ],
)  # fmt: skip
def test_what_the_api_would_answer_otherwise_is_found(found: dict[str, Any], path: list[Any], value: object) -> None:
    dashboard = copy.deepcopy(found["dashboard"])
    *above, name = path
    reduce(getitem, above, dashboard)[name] = value
    assert as_answered(dashboard) != dashboard


def test_an_axis_that_the_api_would_add_is_found(found: dict[str, Any]) -> None:
    dashboard = copy.deepcopy(found["dashboard"])
    for chart in attributes(dashboard, "xyChart"):
        for line in chart["dataSets"]:
            assert line.pop("targetAxis") == "Y1"
    assert as_answered(dashboard) == found["dashboard"]


@pytest.mark.parametrize(("name", "value"), [("plotType", "LINES"), ("plottype", "LINE"), ("legend", "a")])
def test_what_the_api_does_not_have_is_refused(found: dict[str, Any], name: str, value: str) -> None:
    dashboard = copy.deepcopy(found["dashboard"])
    dashboard["mosaicLayout"]["tiles"][0]["widget"]["xyChart"]["dataSets"][0][name] = value
    with pytest.raises(ParseError):
        as_answered(dashboard)


def test_a_number_of_a_cluster_is_compared_cluster_by_cluster(found: dict[str, Any]) -> None:
    for condition in conditions(found):
        if OF_LINES in condition["filter"]:
            assert condition["group_by"] == ["metric.label.cluster"], condition["name"]


def test_numbers_are_means_or_percentiles_and_lines_are_summed(found: dict[str, Any]) -> None:
    """A distribution has no sum that could be compared with a threshold."""
    for condition in conditions(found):
        [metric] = metrics([condition["filter"]])
        number = metric.removeprefix(OF_LINES) in MEASURED_METRICS
        assert condition["reducer"].startswith(("REDUCE_MEAN", "REDUCE_PERCENTILE")) == number, condition["name"]


def test_severities_aligners_and_reducers_are_those_that_the_provider_names(found: dict[str, Any]) -> None:
    policy = json.loads(EXTRACT.read_text())["resource"]["google_monitoring_alert_policy"]["arguments"]
    assert {alert["severity"] for alert in found["alerts"].values()} <= {*policy["severity"]["values"]}
    threshold = policy["conditions"]["block"]["condition_threshold"]["block"]["aggregations"]["block"]
    for name, argument in {"aligner": "per_series_aligner", "reducer": "cross_series_reducer"}.items():
        assert {each[name] for each in conditions(found)} <= {*threshold[argument]["values"]}


def test_durations_are_what_cloud_monitoring_takes(found: dict[str, Any]) -> None:
    """Whole minutes; an incident is kept open for half an hour at least."""
    for alert in found["alerts"].values():
        assert 1800 <= int(alert["auto_close"].removesuffix("s")) <= 7 * 86400
        for condition in alert["conditions"]:
            for span in (condition["period"], condition["duration"]):
                assert int(span.removesuffix("s")) % 60 == 0


def test_messages_that_wait_are_those_of_every_subscription_but_dead_letters_and_notifications(
    found: dict[str, Any],
) -> None:
    """A notification waits for a target that is down, and no other message does."""
    [pattern] = re.findall(r'full_match\("([^"]+)"\)', found["unacked_age"])
    rows = [row.name for row in messaging.read().of_cluster("blue").subscriptions]
    assert {name for name in rows if re.fullmatch(pattern, name)} == {*rows} - {"dead-letters", "notify-blue"}


def test_policies_on_metrics_of_lines_wait_for_these() -> None:
    [sleep] = [
        block["time_sleep"]["metrics"] for block in blocks("resource") if "metrics" in block.get("time_sleep", {})
    ]
    for name in ("event", "number"):
        assert f"google_logging_metric.{name}" in sleep["triggers"]
    for name in ("alert", "sweep"):
        assert resource("google_monitoring_alert_policy", name)["depends_on"] == ["${time_sleep.metrics}"]


def test_a_channel_serves_the_alerts_of_its_own_project(found: dict[str, Any]) -> None:
    assert found["channels"] == {"other-project": [CHANNEL], PROJECT: []}


@pytest.mark.parametrize(
    ("channel", "says"),
    [
        ("7", "projects/PROJECT/notificationChannels/NUMBER"),
        ("projects/third-project/notificationChannels/7", "of the provisioner's project"),
    ],
)
def test_a_channel_that_could_serve_none_is_refused(folder: Path, channel: str, says: str) -> None:
    values = {"project": PROJECT, "region": "us-central1", "firestore_location": "nam5"}
    given = [f"-var={name}={value}" for name, value in values.items()]
    with pytest.raises(AssertionError, match=says):
        terraform(folder, "plan", "-no-color", *given, f'-var=notification_channels=["{channel}"]')
