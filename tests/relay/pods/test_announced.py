"""What a node says of the maintenance of its machine, and that what cannot be read says nothing."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay import translate
from relay.hosts.announced import SCHEDULED, TERMINATION, UPCOMING, WINDOW_STARTED, announced
from tests.relay.objects import Json, node
from tpu_slices.domain.model.hosts import Upcoming
from tpu_slices.wire.bounds import beyond_bounds

SECONDS = 1764576000
BEGINS = datetime(2025, 12, 1, 8, tzinfo=UTC)


def annotated(text: str, labels: Json | None = None) -> Json:
    """Return a node with the annotation."""
    return node(metadata={**node(labels=labels or {})["metadata"], "annotations": {UPCOMING: text}})


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        pytest.param(node(), None, id="nothing"),
        pytest.param(node(labels={SCHEDULED: str(SECONDS)}), Upcoming(begins=BEGINS), id="the label"),
        pytest.param(
            annotated('{"maintenanceStatus": "PENDING", "windowStartTime": "2025-12-01T08:00:00Z"}'),
            Upcoming(begins=BEGINS),
            id="the annotation, as the API's JSON",
        ),
        pytest.param(
            annotated('{"type": "SCHEDULED", "window_start_time": "2025-12-01T09:00:00.123456789+01:00"}'),
            Upcoming(begins=BEGINS.replace(microsecond=123456)),
            id="the annotation, as the API's fields",
        ),
        pytest.param(
            annotated('{"windowStartTime": "2025-12-01T07:00:00Z"}', labels={SCHEDULED: str(SECONDS)}),
            Upcoming(begins=BEGINS.replace(hour=7)),
            id="the earlier of both",
        ),
        pytest.param(
            node(spec={"taints": [{"key": TERMINATION, "effect": "NoSchedule"}]}), Upcoming(stopping=1), id="it stops"
        ),
        pytest.param(
            node(spec={"taints": [{"key": WINDOW_STARTED}]}, labels={SCHEDULED: str(SECONDS)}),
            Upcoming(begins=BEGINS, stopping=1),
            id="its window has begun",
        ),
    ],
)
def test_the_earliest_time_on_a_node_counts_and_the_taints_of_a_stop(seen: Json, says: Upcoming | None) -> None:
    host = translate.host(seen)
    assert host is not None
    assert host.announced == says


@pytest.mark.parametrize(
    "label", ["", "soon", "-1764576000", "1e9", "1764576000.5", "9" * 30, "99999999999", "0", "²³", " 1764576000"]
)
def test_a_label_that_is_no_time_says_nothing(label: str) -> None:
    assert announced(node(labels={SCHEDULED: label})) is None


@pytest.mark.parametrize(
    "text",
    [
        "soon",
        "[]",
        "7",
        "null",
        "{}",
        "[" * 4000,
        '{"windowStartTime": 1764576000}',
        '{"windowStartTime": null}',
        '{"windowStartTime": "tomorrow"}',
        '{"windowStartTime": "2025-12-01T08:00:00"}',
        '{"windowStartTime": "0001-01-01T00:00:00+14:00"}',
        '{"windowStartTime": "9999-12-31T23:59:59-14:00"}',
        '{"windowStartTime": "2025-12-01T08:00:00Z", "text": "' + "x" * 10_000 + '"}',
    ],
)
def test_an_annotation_that_cannot_be_read_says_nothing(text: str) -> None:
    assert announced(annotated(text)) is None


@given(
    label=st.text() | st.integers().map(str),
    text=st.text() | st.datetimes().map('{{"windowStartTime": "{0}Z"}}'.format),
)
def test_whatever_is_written_there_leads_to_what_can_be_told(label: str, text: str) -> None:
    seen = announced(annotated(text, labels={SCHEDULED: label}))
    assert seen is None or beyond_bounds(seen) is None
