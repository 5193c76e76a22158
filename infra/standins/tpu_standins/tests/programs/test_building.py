"""What is built: the whole time is said before anything begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from tpu_standins import building
from tpu_standins.controllers import build as controllers
from tpu_standins.controllers.catalogue import CONTROLLERS, MANIFESTS, PROGRAM, Controller, built
from tpu_standins.kubernetes import build as control_plane
from tpu_standins.kubernetes import programs
from tpu_standins.kubernetes.versions import pinned

WHOLE = control_plane.MINUTES + len(CONTROLLERS) * controllers.MINUTES


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment in which nothing is built, and nothing can be."""
    return {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path)}


def begun(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what is said first."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    told: list[str] = []
    building.provide(environment, told.append)
    return told[0]


def has_control_plane(environment: dict[str, str]) -> None:
    folder = programs.built(environment, pinned())
    folder.mkdir(parents=True)
    for name in programs.NAMES:
        (folder / name).touch(mode=0o755)


def has(controller: Controller, environment: dict[str, str]) -> None:
    folder = built(controller, environment)
    folder.mkdir(parents=True)
    for name in (PROGRAM, MANIFESTS):
        (folder / name).touch()


def test_a_first_build_says_how_long_all_of_it_takes(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert f"some {WHOLE} minutes" in begun(environment, monkeypatch)


def test_what_is_there_is_not_counted(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    has_control_plane(environment)
    has(CONTROLLERS[0], environment)
    left = (len(CONTROLLERS) - 1) * controllers.MINUTES
    assert f"some {left} minutes" in begun(environment, monkeypatch)


def test_with_everything_there_no_time_is_said(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    has_control_plane(environment)
    for each in CONTROLLERS:
        has(each, environment)
    assert begun(environment, monkeypatch).startswith("Kubernetes v")
