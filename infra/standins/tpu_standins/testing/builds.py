"""What seems to be built: files in the place of programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tpu_standins.controllers import catalogue
from tpu_standins.kubernetes import programs
from tpu_standins.kubernetes.versions import pinned


def a_control_plane(environment: Mapping[str, str]) -> None:
    _made(programs.built(environment, pinned()), *programs.NAMES)


def a_controller(controller: catalogue.Controller, environment: Mapping[str, str]) -> None:
    _made(catalogue.built(controller, environment), catalogue.PROGRAM, catalogue.MANIFESTS)


def _made(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).touch(mode=0o755)
