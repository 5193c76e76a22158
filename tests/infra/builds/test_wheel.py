"""The wheel, built and installed as a user would: the command works, and brings nothing but what it needs."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.infra.builds.wheels import PIP, built, installed, run
from tests.infra.sources import ROOT

pytestmark = [pytest.mark.real, pytest.mark.emulators, pytest.mark.enable_socket]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a clean environment that has the command."""
    folder = tmp_path_factory.mktemp("environment")
    installed(wheel, folder, "cli")
    return folder


def test_the_wheel_holds_the_command_and_what_it_imports_and_nothing_else(wheel: Path) -> None:
    names = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    ours = {"relay", "tpu_slices", "tpu_slices_cli", "tpu_slices_simulator"}
    assert {name for name in names if not name.endswith(".dist-info")} == ours


def test_the_command_simulates_in_a_clean_environment(environment: Path) -> None:
    slices = environment / "venv" / "bin" / "slices"
    told = run(slices, "simulate", ROOT / "examples" / "stories" / "zone-out-for-six-hours.yaml", folder=environment)
    assert "chip-hours held" in told


def test_the_command_plans_in_a_clean_environment(environment: Path) -> None:
    slices = environment / "venv" / "bin" / "slices"
    settings, manifest = ROOT / "examples" / "clusters" / "research.yaml", ROOT / "examples" / "v5e.yaml"
    planned = run(slices, "plan", "-f", manifest, "--cluster", settings, folder=environment)
    assert "tpu-v5-lite-podslice" in planned


def test_the_pages_templates_are_in_the_wheel(environment: Path) -> None:
    python = environment / "venv" / "bin" / "python"
    code = (
        "from importlib.resources import files; print(files('tpu_slices_cli.timeline').joinpath('page.css').is_file())"
    )
    assert run(python, "-c", code, folder=environment) == "True\n"


@pytest.mark.parametrize(
    "file",
    ["adapters/startup.sh", *(f"domain/catalogue/{each}.tsv" for each in ("machines", "prices", "zones"))],
)
def test_what_the_package_reads_beside_its_modules_is_in_the_wheel(wheel: Path, file: str) -> None:
    packed = zipfile.ZipFile(wheel).read(f"tpu_slices/{file}")
    assert packed == (ROOT / "shared" / "tpu_slices" / file).read_bytes()


def test_the_environment_has_no_broken_requirements(environment: Path) -> None:
    pip = (*PIP, "--python", environment / "venv" / "bin" / "python")
    assert run(*pip, "check", folder=environment) == "No broken requirements found.\n"
