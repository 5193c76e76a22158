"""The closed lists: log events and reasons are the same in code, Terraform and documentation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.house.sources import ROOT, modules, text, tree
from tpu_slices.domain.model.reasons import ClusterReason, OwnerReason, Phase, Reason, ReportReason, WorkloadReason
from tpu_slices.domain.reporting.reason_texts import REASON_TEXTS
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.wire.documents import COLLECTIONS

DEPLOYED = [
    name for name in modules("shared/tpu_slices/", "functions/", "relay/") if not name.endswith("log_events.py")
]
LOGGERS = {"log", "_log", "logger"}
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
HEADINGS = {"event", "reason", "phase", "document"}
SETTINGS_AND_REJECTIONS = {"clusters", "accepted", "pauses", "rejected"}
REASONS = [*Reason, *ReportReason, *ClusterReason, *OwnerReason, *WorkloadReason]


def logged(name: str) -> Iterator[ast.Call]:
    """Yield each call of a logger."""
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS:
            target = node.func.value
            if isinstance(target, ast.Name) and target.id in LOGGERS:
                yield node


def rows(page: str) -> list[list[str]]:
    """Return the cells of each row of the tables of a page, without headings."""
    lines = (ROOT / "docs" / page).read_text().splitlines()
    table = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [cells for cells in table if not set(cells[0]) <= set("-") and cells[0] not in HEADINGS]


def test_an_event_is_a_noun_and_what_happened_to_it() -> None:
    assert [event for event in LogEvent if not re.fullmatch(r"[a-z]+(_[a-z]+)*\.[a-z]+(_[a-z]+)*", event)] == []


def test_nothing_is_logged_but_events_of_the_list() -> None:
    events = {f"{name}:{call.lineno}": ast.unparse(call.args[0]) for name in DEPLOYED for call in logged(name)}
    assert len(events) > 30
    others = {where: event for where, event in events.items() if not event.startswith("LogEvent.") and event != "event"}
    assert others == {}


def test_every_event_is_logged_somewhere() -> None:
    source = "".join(map(text, DEPLOYED))
    assert [event.name for event in LogEvent if f"LogEvent.{event.name}" not in source] == []


def test_every_event_is_documented_and_no_other() -> None:
    assert [cells[0] for cells in rows("log-events.md")] == [event.value for event in LogEvent]


def test_terraform_filters_by_events_of_the_list() -> None:
    known = {*LogEvent, "${each.key}", "${each.value.event}"}
    for path in sorted((ROOT / "infra" / "terraform").glob("*.tf")):
        named = re.findall(r'jsonPayload\.event\s*=~?\s*\\?"([^"\\]+)', path.read_text())
        assert set(named) <= known, path.name


def test_reasons_are_distinct_and_written_as_kubernetes_writes_them() -> None:
    assert len({reason.value for reason in REASONS}) == len(REASONS)
    assert [reason for reason in REASONS if not re.fullmatch(r"([A-Z][a-z]+)+", reason.value)] == []


def test_every_reason_is_documented_and_no_other() -> None:
    assert [cells[0] for cells in rows("reasons.md")] == [reason.value for reason in REASONS]


def test_every_reason_that_implies_a_phase_is_documented_with_it() -> None:
    documented = {cells[0]: cells[1] for cells in rows("reasons.md")}
    implied = {reason.value: reason.phase.value for reason in Reason if reason.phase is not None}
    assert {reason: documented[reason] for reason in implied} == implied


def test_every_phase_and_every_collection_is_documented_and_no_other() -> None:
    documented = [cells[0] for cells in rows("records.md")]
    assert documented[: len(Phase)] == [phase.value for phase in Phase]
    assert {each.partition("/")[0] for each in documented[len(Phase) :]} == {
        *COLLECTIONS.values(),
        *SETTINGS_AND_REJECTIONS,
    } - {"slices"}


def test_every_reason_of_a_slice_has_a_text_for_people() -> None:
    assert set(REASON_TEXTS) == set(Reason)


def test_terraform_filters_by_reasons_of_the_list() -> None:
    known = {reason.value for reason in REASONS}
    for path in sorted((ROOT / "infra" / "terraform").glob("*.tf")):
        named = re.findall(r'jsonPayload\.reason\s*=~?\s*\\?"([^"\\]+)', path.read_text())
        assert set(named) <= known, path.name
