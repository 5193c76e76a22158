"""What GKE writes on a node when Google is about to maintain or stop its machine. Pure.

GKE's label has the time at which maintenance is planned, its annotation what Compute Engine says of that; with the
first taint the window for it has begun, with the second the machine is stopped within minutes, also a spot machine.
Who may change nodes may write anything there: what cannot be read says nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from tpu_slices.domain.model.hosts import Upcoming
from tpu_slices.wire.bounds import YEARS
from tpu_slices.wire.jobsets import strings

SCHEDULED = "cloud.google.com/scheduled-maintenance-time"
UPCOMING = "node.gke.io/upcoming-maintenance"
WINDOW_STARTED = "cloud.google.com/maintenance-window-started"
TERMINATION = "cloud.google.com/impending-node-termination"
_BEGINS = ("windowStartTime", "window_start_time")
"""The member of the annotation's object, as the API's JSON and its fields have it."""
_MOST_CHARACTERS = 4096
_MOST_DIGITS = 11


def announced(node: Mapping[str, Any]) -> Upcoming | None:
    """Return what is announced of the machine of a v1 Node; of two times the earlier."""
    times = (*_labelled(node), *_annotated(node))
    taints = {each.get("key") for each in (node.get("spec") or {}).get("taints") or ()}
    stopping = int(bool(taints & {WINDOW_STARTED, TERMINATION}))
    return Upcoming(begins=min(times, default=None), stopping=stopping) if times or stopping else None


def _labelled(node: Mapping[str, Any]) -> Iterator[datetime]:
    seconds = strings(node["metadata"], "labels").get(SCHEDULED, "")
    if seconds.isascii() and seconds.isdigit() and len(seconds) <= _MOST_DIGITS:
        yield from _believed(datetime.fromtimestamp(int(seconds), UTC))


def _annotated(node: Mapping[str, Any]) -> Iterator[datetime]:
    text = strings(node["metadata"], "annotations").get(UPCOMING, "")
    if not text or len(text) > _MOST_CHARACTERS:
        return
    try:
        said = json.loads(text)
        times = [datetime.fromisoformat(said[name]) for name in _BEGINS if name in said]
    except (ValueError, TypeError, LookupError, RecursionError):
        return
    for time in times:
        yield from _believed(time)


def _believed(time: datetime) -> Iterator[datetime]:
    if time.year in YEARS and time.tzinfo is not None:
        yield time.astimezone(UTC)
