"""The trainer in an environment of its own: what its lock has, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from infra.local.plan import REPOSITORY
from tpu_standins.patience import PATIENCE_SECONDS

TRAINER = REPOSITORY / "examples" / "training" / "trainer"
LOCK = TRAINER / "requirements.txt"


@dataclass(frozen=True, slots=True)
class Trainer:
    """A user's commands, in a folder that has the dataset."""

    python: Path
    folder: Path

    @property
    def dataset(self) -> Path:
        return self.folder / "sums.txt"

    @contextmanager
    def starting(self, output: str, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
        """Start training; it is killed in the end, if it still runs."""
        paths = ("--data", str(self.dataset), "--output", output)
        command = ["setpriv", "--pdeathsig", "KILL", str(self.python), str(TRAINER / "train.py"), *paths, *arguments]
        whole = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "JAX_PLATFORMS": "cpu", **environment}
        with subprocess.Popen(command, cwd=self.folder, env=whole, stdout=subprocess.PIPE, text=True) as started:
            yield started
            started.kill()

    def train(self, output: str, *arguments: str, **environment: str) -> list[str]:
        """Train to the end, and return what was printed."""
        with self.starting(output, *arguments, **environment) as training:
            printed, _ = training.communicate(timeout=PATIENCE_SECONDS)
        assert training.returncode == 0
        return printed.splitlines()


@pytest.fixture(scope="session")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> Trainer:
    folder = tmp_path_factory.mktemp("trainer")
    uv, environment = str(Path(sys.executable).with_name("uv")), folder / "venv"
    python = environment / "bin" / "python"
    install = ("pip", "install", "--quiet", "--require-hashes", "--only-binary", ":all:", "--python", str(python))
    for command in (
        (uv, "venv", "--quiet", "--python", sys.executable, str(environment)),
        (uv, *install, "--requirement", str(LOCK)),
        (str(python), str(TRAINER / "dataset.py"), str(folder / "sums.txt")),
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return Trainer(python, folder)
