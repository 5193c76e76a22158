"""The wheel, built and installed as a user would: the command works, and brings nothing but what it needs."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.infra.sources import ROOT

pytestmark = [pytest.mark.real, pytest.mark.emulators, pytest.mark.enable_socket]


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
    """Return a clean environment with the command, and of our own libraries those that its wheel requires, as links."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv", folder=folder)
    python = folder / "venv" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, folder=folder)
    (libraries,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (metadata,) = distributions(path=[str(libraries)])
    for each in required(metadata, "cli").values():
        for part in parts(each):
            (libraries / part).parent.mkdir(parents=True, exist_ok=True)
            (libraries / part).symlink_to(Path(str(each.locate_file(part))))
    return folder


def parts(of: Distribution) -> set[Path]:
    """Return what a distribution installs: packages, and files that are in none, also within a namespace of many."""
    installed = [Path(path) for path in of.files or () if not {"..", "__pycache__"} & set(path.parts[:-1])]
    initial = {path.parent for path in installed if path.name == "__init__.py"}
    return {next((each for each in reversed(path.parents) if each in initial), path) for path in installed}


def required(of: Distribution, *extras: str) -> dict[str, Distribution]:
    """Return what a distribution requires, and what that requires, as installed here in versions that satisfy all."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    left = [(of, frozenset(extras))]
    while left:
        each, wanted = left.pop()
        for requirement in map(Requirement, each.requires or ()):
            marker, name = requirement.marker, canonicalize_name(requirement.name)
            if marker and not any(marker.evaluate({"extra": extra}) for extra in wanted | {""}):
                continue
            found[name] = distribution(name)
            assert requirement.specifier.contains(found[name].version, prereleases=True), (each.name, str(requirement))
            asked = (name, frozenset(requirement.extras))
            left += [(found[name], asked[1])] if asked not in seen else []
            seen.add(asked)
    return found


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


def test_the_startup_script_is_in_the_wheel(wheel: Path) -> None:
    script = "tpu_slices/adapters/startup.sh"
    assert zipfile.ZipFile(wheel).read(script) == (ROOT / "shared" / script).read_bytes()


def test_the_environment_has_no_broken_requirements(environment: Path) -> None:
    pip = (
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--python",
        environment / "venv" / "bin" / "python",
    )
    assert run(*pip, "check", folder=environment) == "No broken requirements found.\n"
