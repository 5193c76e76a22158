"""docs/first-live-day.md: what is seen if a probe goes wrong is named as it is in the product."""

from __future__ import annotations

import re

from infra.preflight.indexes import Declared
from tests.house.sources import ROOT, text, tracked
from tests.house.test_closed_lists import REASONS
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.ports.log_events import LogEvent

PAGE = "docs/first-live-day.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in text(PAGE).partition("## Before anything is deployed")[2].splitlines()
    if re.match(r"\| \d+ \|", line)
]
COLUMNS = ("number", "probe", "expected", "seen", "change")
SEEN = " ".join(cells[3] for cells in ROWS)
ANSWERS = " ".join(cells[2] + " " + cells[3] for cells in ROWS)
OTHERS = {"Pending", "CreateNodePool", "DisruptionTarget", "NodeLost"}
"""Words of Kubernetes and GKE, and a reason of TPU operator's."""
NO_EVENTS = r"google_.*|.*[.](txt|last)"
"""Resources of Terraform, files, and a field of an entry of the audit log."""


def quoted(pattern: str, where: str) -> set[str]:
    return {word for word in re.findall(r"`([^`]+)`", where) if re.fullmatch(pattern, word)}


def test_each_probe_says_what_is_expected_what_is_seen_otherwise_and_what_is_to_be_changed_then() -> None:
    assert [cells[0] for cells in ROWS if len(cells) != len(COLUMNS) or not all(cells)] == []


def test_each_reason_that_is_seen_is_one_of_the_product() -> None:
    assert quoted(r"[A-Z][a-z]+(?:[A-Z][a-z]+)*", ANSWERS) - OTHERS <= {*REASONS}


def test_a_reason_stands_behind_the_phase_that_it_has() -> None:
    told = re.findall(rf"\b({'|'.join(Phase)}), `(\w+)`", ANSWERS)
    assert len(told) > 20
    assert [(phase, reason) for phase, reason in told if Reason(reason).phase not in {phase, None}] == []


def test_each_log_event_that_is_seen_is_one_of_the_list() -> None:
    named = {word for word in quoted(r"[a-z_]+\.[a-z_]+", SEEN) if not re.fullmatch(NO_EVENTS, word)}
    assert named
    assert named <= {*LogEvent}


def test_each_alert_that_is_seen_has_its_paragraph_in_the_runbook() -> None:
    named = set(re.findall(r'alerts? "([^"]+)"', ANSWERS))
    headings = set(re.findall(r"^## (.+)$", text("docs/runbook.md"), re.MULTILINE))
    assert len(named) > 5
    assert named <= headings


def test_each_step_that_is_seen_is_one_of_a_build() -> None:
    builds = "".join(text(name) for name in tracked(".yaml") if "cloudbuild" in name)
    ids = set(re.findall(r"^  - id: (\S+)$", builds, re.MULTILINE))
    named = set(re.findall(r"steps? `([a-z-]+)`", " ".join(" ".join(cells) for cells in ROWS)))
    assert len(named) > 8
    assert named <= ids


def test_each_file_that_is_to_be_changed_is_there() -> None:
    named = quoted(r"(?:shared|infra|relay|functions|tests|docs|examples)/[\w./-]*", text(PAGE))
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_indexes_and_settings_of_fields_are_counted() -> None:
    declared = Declared.read()
    indexes, fields = len(declared.indexes), len(declared.fields)
    told = f'"Of {indexes + fields} indexes and fields of Firestore, {indexes + fields} are ready."'
    assert f"{told}: {indexes} indexes and {fields} settings" in text(PAGE)
