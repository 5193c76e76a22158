"""Wheels of ours, built and installed as a user would."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def run(*command: str | Path, folder: Path) -> str:
    done = subprocess.run([*map(str, command)], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def built(source: Path, folder: Path) -> Path:
    """Build the wheel of a project; return its file."""
    offline = ("--no-deps", "--no-build-isolation", "--no-index")
    run(*PIP, "wheel", *offline, "--wheel-dir", folder, source, folder=folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def installed(wheel: Path, folder: Path, *extras: str) -> Path:
    """Install a wheel in a clean environment, with links to what it requires and no more; return its Python."""
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv", folder=folder)
    python = folder / "venv" / "bin" / "python"
    run(*PIP, "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel, folder=folder)
    (libraries,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (metadata,) = distributions(path=[str(libraries)])
    for each in required(metadata, *extras).values():
        for part in parts(each):
            (libraries / part).parent.mkdir(parents=True, exist_ok=True)
            (libraries / part).symlink_to(Path(str(each.locate_file(part))))
    return python


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
