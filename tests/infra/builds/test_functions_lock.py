"""The functions as their build makes them: the staged source, with nothing but the libraries of its lock."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from infra.local import messaging
from tests.infra.builds.libraries import install
from tests.infra.builds.test_build_scripts import SUBSTITUTIONS, run
from tests.infra.metadata import GET_TOKEN, TOKEN, asking, metadata
from tests.infra.sources import ROOT, pins

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

SERVE = """
import sys
import functions_framework, main
for target in sys.argv[1:]:
    functions_framework.create_app(target, "main.py", "cloudevent")
main._intake_deps(), main._reconcile_deps()
print("served")
"""
"""Loads every function, and connects all that they connect to, which they do at their first event."""
NOWHERE = {
    "GOOGLE_CLOUD_PROJECT": "shop",
    "FIRESTORE_EMULATOR_HOST": "127.0.0.1:9",
    "PUBSUB_EMULATOR_HOST": "127.0.0.1:9",
    "GKE_EMULATOR_HOST": "127.0.0.1:9",
}


@dataclass(frozen=True, slots=True)
class Built:
    """The source of the functions, and the libraries of its lock."""

    source: Path
    site: Path

    def python(self, code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run code in a Python that has no other libraries."""
        paths = {"PYTHONPATH": f"{self.site}:{self.source}", "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.environ["PATH"]}
        command = ["setpriv", "--pdeathsig", "TERM", sys.executable, "-S", "-c", code, *arguments]
        whole = {**paths, **environment}
        return subprocess.run(command, cwd=self.source, env=whole, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("built")
    for name in ("functions", "shared"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "pyproject.toml", folder)
    staged = run("stage", folder, {**SUBSTITUTIONS, "PATH": os.environ["PATH"]})
    assert staged.returncode == 0, staged.stderr
    source, site = folder / "build" / "functions", folder / "site"
    install(source / "requirements.txt", site)
    return Built(source, site)


@pytest.mark.real
def test_every_function_is_served_and_connects_with_what_is_locked(built: Built) -> None:
    served = built.python(SERVE, *messaging.read().functions, **NOWHERE)
    assert served.stdout == "served\n", served.stderr


@pytest.mark.real
def test_their_libraries_get_a_token_from_the_metadata_server(built: Built) -> None:
    with metadata() as server:
        got = built.python(GET_TOKEN, **asking(server))
    assert got.stdout == f"{TOKEN}\n", got.stderr


def test_the_versions_are_those_that_the_functions_are_tested_with() -> None:
    assert pins(ROOT / "functions" / "requirements.txt").items() <= pins(ROOT / "tests" / "requirements.txt").items()
