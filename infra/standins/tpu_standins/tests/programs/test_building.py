"""What is built: the whole time is said before anything begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from tpu_standins import building
from tpu_standins.controllers import build as controllers
from tpu_standins.controllers.catalogue import CONTROLLERS
from tpu_standins.kubernetes import build as control_plane
from tpu_standins.testing.builds import a_control_plane, a_controller

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


def test_a_first_build_says_how_long_all_of_it_takes(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert f"some {WHOLE} minutes" in begun(environment, monkeypatch)


def test_what_is_there_is_not_counted(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    a_control_plane(environment)
    a_controller(CONTROLLERS[0], environment)
    left = (len(CONTROLLERS) - 1) * controllers.MINUTES
    assert f"some {left} minutes" in begun(environment, monkeypatch)


def test_with_everything_there_no_time_is_said(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    a_control_plane(environment)
    for each in CONTROLLERS:
        a_controller(each, environment)
    assert begun(environment, monkeypatch).startswith("Kubernetes v")
