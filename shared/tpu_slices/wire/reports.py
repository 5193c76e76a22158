"""A report as JSON: the same in the Event's annotation, in the logs and from `slices explain`."""

from __future__ import annotations

import json
from typing import Any

from tpu_slices.domain.records.workloads import Report
from tpu_slices.wire.validation import adapter_of


def document(report: Report) -> dict[str, Any]:
    """Return `{"reason", "message", "requested", "ready", "waits": [{"phase", "reason", "jobs", ...}], "since"}`."""
    written: dict[str, Any] = adapter_of(Report).dump_python(report, mode="json")
    return written


def text(report: Report) -> str:
    """Return the document as JSON on one line."""
    return json.dumps(document(report), separators=(",", ":"))
