"""The logs of all parts, formatted for people."""

import json
from pathlib import Path
from typing import Any

import pytest

from infra.local.up.log_lines import AT_ONCE, Logs, shown


def said(event: str, **fields: Any) -> str:
    return json.dumps({"severity": "INFO", "time": "2026-11-01T12:30:05.123Z", "event": event, **fields})


def test_one_of_our_lines_is_shown_short_and_in_order() -> None:
    line = said("slice.decided", slice="tpu-a", reason="Ready", phase="READY", message="All 4.", cluster="demo", n=1)
    assert shown("relay", line) == "12:30:05 relay              slice.decided demo tpu-a READY Ready All 4."


def test_every_field_is_shown_to_who_asks_for_everything() -> None:
    line = said("slice.decided", slice="tpu-a", operation="operation-7", owner_uid="u")
    assert shown("relay", line, everything=True) == "12:30:05 relay              slice.decided tpu-a operation-7"


def test_what_is_more_than_information_is_marked() -> None:
    line = said("watch.failed", severity="WARNING", message="watch.failed: 410", error="410")
    assert shown("relay", line) == "12:30:05 relay              WARNING watch.failed 410"


@pytest.mark.parametrize(
    ("part", "line"),
    [
        ("relay", ""),
        ("pubsub", "INFO: started"),
        ("kube-apiserver", "I1122 13:05:42.094091   24182 controller.go:127] Starting"),
        ("kueue", '{"level": "info", "logger": "setup", "msg": "Starting manager"}'),
        ("function-sweep", said("sweep.completed", requested=0)),
        ("function-sweep", said("cluster.counted", ready=2)),
        ("function-sweep", said("inventory.checked", orphans=0)),
        ("function-receive", said("fact.received", kind="Heartbeat")),
    ],
)
def test_routine_is_left_out_unless_everything_is_asked_for(part: str, line: str) -> None:
    assert shown(part, line) is None
    assert line == "" or shown(part, line, everything=True) is not None


@pytest.mark.parametrize("line", ["panic: no space left", "Traceback (most recent call last):"])
def test_a_death_is_shown_whoever_dies(line: str) -> None:
    assert shown("jobset", line) == f"jobset             {line}"


@pytest.mark.parametrize("line", ["Traceback (most recent call last):", "{not json", '{"no": "message"}', "[1]"])
def test_what_is_no_line_of_ours_is_shown_as_it_is(line: str) -> None:
    assert shown("gke", line) == f"gke                {line}"


def test_only_what_is_new_is_told_and_only_whole_lines(tmp_path: Path) -> None:
    log = tmp_path / "gke.log"
    logs = Logs(tmp_path)
    log.write_text("one\ntw")
    assert list(logs.news()) == ["gke                one"]
    with log.open("a") as more:
        more.write("o\n")
    assert list(logs.news()) == ["gke                two"]
    assert list(logs.news()) == []


def test_a_log_that_was_cut_off_or_replaced_is_read_from_its_beginning(tmp_path: Path) -> None:
    log = tmp_path / "gke.log"
    logs = Logs(tmp_path)
    log.write_text("long enough\n")
    list(logs.news())
    log.write_bytes(b"")
    list(logs.news())
    with log.open("a") as more:
        more.write("cut\n")
    assert list(logs.news()) == ["gke                cut"]
    log.rename(tmp_path / "gke.log.1")
    log.write_text("new, and longer than before\n")
    assert list(logs.news()) == ["gke                new, and longer than before"]


def test_a_part_can_be_read_alone_by_its_short_name(tmp_path: Path) -> None:
    for part in ("relay", "function-sweep", "gke"):
        (tmp_path / f"{part}.log").write_text("a line\n")
    assert list(Logs(tmp_path, frozenset({"sweep", "relay"})).news()) == [
        "function-sweep     a line",
        "relay              a line",
    ]


def test_a_large_log_is_read_in_pieces(tmp_path: Path) -> None:
    (tmp_path / "gke.log").write_text("x" * (AT_ONCE + 10) + "\nend\n")
    logs = Logs(tmp_path)
    assert list(logs.news()) == []
    assert [line[-3:] for line in logs.news()] == ["xxx", "end"]
