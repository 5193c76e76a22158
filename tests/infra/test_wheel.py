"""The wheel, built and installed as a user would: the command works, and brings nothing but what it needs."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.infra.sources import ROOT

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.timeout(300)]


def run(*command: str | Path, folder: Path) -> str:
    done = subprocess.run([*map(str, command)], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder, ROOT, folder=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a clean environment with the command, its libraries in the versions that were locked."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", folder / "venv", folder=folder)
    versions = folder / "versions.txt"  # constraints take no hashes where a wheel of ours has none
    locked = (ROOT / "tests" / "requirements.txt").read_text().splitlines()
    versions.write_text("\n".join(line.partition(" ")[0] for line in locked if line[:1].isalnum()))
    pip = (folder / "venv" / "bin" / "pip", "--disable-pip-version-check", "install", "--quiet")
    run(*pip, "--constraint", versions, f"{wheel}[cli]", folder=folder)
    return folder


def test_the_wheel_holds_the_package_and_the_command_and_nothing_else(wheel: Path) -> None:
    names = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"tpu_slices", "tpu_slices_cli"}


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


def test_the_environment_has_no_broken_requirements(environment: Path) -> None:
    pip = environment / "venv" / "bin" / "pip"
    assert run(pip, "check", folder=environment) == "No broken requirements found.\n"
