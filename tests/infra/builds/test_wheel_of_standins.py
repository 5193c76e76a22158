"""The wheel of the stand-ins: each program of theirs starts where nothing of what is tested with them is installed."""

from __future__ import annotations

import zipfile
from pathlib import Path, PurePath

import pytest

from tests.house.sources import STANDINS, tracked
from tests.infra.builds.wheels import built, installed, run
from tests.infra.sources import ROOT

pytestmark = [pytest.mark.real, pytest.mark.emulators, pytest.mark.enable_socket]

SOURCES = [PurePath(name).relative_to(STANDINS) for name in tracked("") if name.startswith(f"{STANDINS}tpu_standins/")]
DELIVERED = {each.as_posix() for each in SOURCES if each.parts[1] != "tests"}
PROGRAMS = sorted(each.parent.as_posix().replace("/", ".") for each in SOURCES if each.name == "__main__.py")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(ROOT / STANDINS, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of a clean environment that has the stand-ins."""
    return installed(wheel, tmp_path_factory.mktemp("environment"))


def test_the_wheel_has_all_but_the_tests(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == DELIVERED


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_program_starts_in_a_clean_environment(python: Path, program: str) -> None:
    assert f"python -m {program}" in run(python, "-m", program, "--help", folder=python.parent)
