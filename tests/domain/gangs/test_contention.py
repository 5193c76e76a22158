"""Fifty gangs that contend for capacity that comes and goes: each starts in the end, and none holds for ever."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.domain.gangs import contended
from tests.domain.gangs.contended import OVER_WITHIN, Broken, starts_or_never_fits
from tpu_slices.domain.gangs import deciding

SEEDS = range(10)


def all_start() -> None:
    for seed in SEEDS:
        starts_or_never_fits(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_gang_starts_or_is_too_large_and_no_two_wait_for_each_other(seed: int) -> None:
    starts_or_never_fits(seed)


SABOTEURS: dict[str, tuple[str, Callable[..., object]]] = {
    "nobody is before another in line": ("_before", lambda _case, _pools: None),
    "nobody gives way to who waits longer": ("_yields_to", lambda _gang, _case: None),
    "slices are held without end": ("_is_held_too_long", lambda _gang, _case: False),
    "slices are held until the cap": ("_hold_for", lambda _gang, case: case.limits.gang_hold_at_most),
}


@pytest.mark.parametrize(("name", "instead"), SABOTEURS.values(), ids=SABOTEURS)
def test_a_contention_shows_when(name: str, instead: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deciding, name, instead)
    with pytest.raises(Broken):
        all_start()


def test_a_contention_shows_when_slices_are_idle_for_longer_than_the_starts_are_worth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for bound in ("HELD_AT_MOST", "BOTH_AT_MOST", "MOST_OFTEN"):
        monkeypatch.setattr(contended, bound, OVER_WITHIN)
    monkeypatch.setattr(deciding, "_before", lambda _case, _pools: None)
    with pytest.raises(Broken, match="slices were idle for"):
        starts_or_never_fits(5)


def test_many_contentions_are_told_in_a_line_and_fail_if_one_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert contended.main(["--seeds", "1"]) == 0
    monkeypatch.setattr(deciding, "_is_held_too_long", lambda _gang, _case: False)
    assert contended.main(["--seeds", "2"]) == 1
    assert "2 contentions of fifty gangs, " in capsys.readouterr().out
