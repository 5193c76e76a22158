"""What several runs played is added up, each seed once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.infra.sources import ROOT
from tests.simulation.played import Played
from tests.simulation.promises import Promise
from tests.simulation.total import Total, added, total_in
from tpu_slices_simulator.story import Kind
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.testing.waiting import until


def a_played(seed: int, promise: Promise | None = None) -> Played:
    return Played(seed, 2.0, promise, "seen" if promise else "", Counter({Kind.STOCKOUT: 3}))


def after(*seeds: int) -> Total:
    total = Total()
    for seed in seeds:
        total.add(a_played(seed), 0.5)
    return total


def test_runs_from_different_seeds_add_up() -> None:
    total = after(0, 1, 2, 100, 101)
    assert (total.seeds, total.hours, total.core_seconds, total.faults) == (5, 10.0, 2.5, {"stockout": 15})
    assert total.played == [[0, 3], [100, 102]]


def test_a_seed_that_was_played_before_counts_once() -> None:
    assert after(3, 4, 3) == after(3, 4)


def test_ranges_that_meet_are_one_in_whatever_order_they_were_played() -> None:
    assert after(5, 3, 4, 2).played == [[2, 6]]


def test_what_is_left_are_the_first_seeds_that_were_not_played() -> None:
    assert list(after(0, 1, 3).left(3)) == [2, 4, 5]


def test_from_a_first_seed_only_so_many_are_left() -> None:
    assert list(after(10, 12).left(4, first=10)) == [11, 13]


def test_a_broken_promise_is_kept() -> None:
    total = after(1)
    total.add(a_played(2, Promise.NO_LEAK), 0.5)
    assert total.broken == ["seed 2: seen"]


def test_a_file_keeps_what_two_runs_at_a_time_add(tmp_path: Path) -> None:
    file = tmp_path / "c0ffee.json"
    for seed in (0, 500, 1, 501, 1):
        added(file, a_played(seed), 0.5)
    assert total_in(file) == after(0, 1, 500, 501)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.proof)])
def test_an_interrupted_run_keeps_what_it_has_played_and_the_same_command_goes_on(
    number: signal.Signals, tmp_path: Path
) -> None:
    who = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.com"]
    for git in (["init", "-q"], [*who, "commit", "-q", "--allow-empty", "-m", "Begin"]):
        subprocess.run(["git", *git], cwd=tmp_path, check=True)
    run = begun(tmp_path, 5000)
    until(lambda: [*tmp_path.glob(".local/simulation/*.json")] or run.poll() is not None, "a story that was played")
    (file,) = tmp_path.glob(".local/simulation/*.json")
    run.send_signal(number)
    told, _ = run.communicate(timeout=PATIENCE_SECONDS)
    assert run.returncode == 128 + number
    kept = total_in(file)
    assert f"keeps: {kept}" in told
    assert 0 < kept.seeds < 5000
    again = begun(tmp_path, 1)
    again.communicate(timeout=PATIENCE_SECONDS)
    assert again.returncode == 0
    assert total_in(file).seeds == kept.seeds + 1


def begun(folder: Path, seeds: int) -> subprocess.Popen[str]:
    path = f"{ROOT}:{ROOT / 'shared'}"
    command = [sys.executable, "-m", "tests.simulation", "--seeds", f"{seeds}"]
    env = {**os.environ, "PYTHONPATH": path}
    return subprocess.Popen(command, cwd=folder, env=env, text=True, stdout=subprocess.PIPE)
