"""The limits in a cluster's settings: their names, durations and backoffs."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest

from tests.builders import CLUSTER, MINUTE, settings
from tpu_slices.domain.model.clusters import Backoff, Limits
from tpu_slices.domain.model.observations import Cause, FailureKind
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.cluster_settings import decode_settings

OTHERS = {"backoff", "patience", "operations", "gang_backfill"}
DURATIONS = [field.name for field in fields(Limits) if field.name not in OTHERS]


def read(**limits: Any) -> Limits:
    return decode_settings(CLUSTER, {"path": settings().path, "limits": limits}, "edition-1").limits


@pytest.mark.parametrize("name", DURATIONS)
def test_every_duration_is_read_by_its_name(name: str) -> None:
    assert read(**{name: "7m"}) == replace(Limits(), **{name: 7 * MINUTE})  # type: ignore[arg-type]  # a duration


@pytest.mark.parametrize("kind", Limits().backoff)
def test_every_backoff_is_read_by_the_kind_of_failure(kind: FailureKind) -> None:
    backoff = read(backoff={kind.lower(): {"initial": "3m", "maximum": "2h"}}).backoff
    assert backoff == {**Limits().backoff, kind: Backoff(3 * MINUTE, 120 * MINUTE)}


@pytest.mark.parametrize("cause", Cause)
def test_every_patience_is_read_by_its_cause(cause: Cause) -> None:
    patience = read(patience={cause.lower(): "3h"}).patience
    assert patience == {**Limits().patience, cause: 180 * MINUTE}


@pytest.mark.parametrize(
    ("patience", "problem"),
    [
        ({"upgrades": "3h"}, "limits.patience.upgrades: Invalid value: 'upgrades': must be a map of durations"),
        ({"upgrade": "long"}, "limits.patience.upgrade: Invalid value: 'long': must be a map of durations"),
        ("3h", "limits.patience: Invalid value: '3h': must be a map of durations"),
    ],
)
def test_an_invalid_patience_is_named(patience: object, problem: str) -> None:
    with pytest.raises(Permanent, match=re.escape(problem)):
        read(patience=patience)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (90, timedelta(seconds=90)),
        (0.5, timedelta(milliseconds=500)),
        ("90s", timedelta(seconds=90)),
        ("15m", timedelta(minutes=15)),
        (" 1.5 h ", timedelta(minutes=90)),
        ("30d", timedelta(days=30)),
        (None, Limits().demand_ttl),
    ],
)
def test_durations_are_seconds_or_text(written: object, expected: timedelta) -> None:
    assert read(demand_ttl=written).demand_ttl == expected


def test_an_initial_backoff_beyond_the_default_maximum_is_the_maximum_too() -> None:
    backoff = read(backoff={"RATE": {"initial": "5m"}}).backoff

    assert backoff[FailureKind.RATE] == Backoff(5 * MINUTE, 5 * MINUTE)
