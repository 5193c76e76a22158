"""Builds of environments, step by step, by the real gcloud in a cloud that remembers."""

from __future__ import annotations

import os
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Generic, TypeVar

from tests.infra.builds.cloud import Cloud
from tests.infra.builds.played import Stage, played
from tests.infra.gcloud.conftest import Gcloud
from tests.infra.loopback import serving
from tests.infra.sources import ROOT

READY = {"preflight": "mkdir -p build; bash infra/environments/kept.sh fetch"}
"""Instead of the first step: the project is known to be ready."""
_PROVISIONED: dict[type, dict[str, Any]] = {}
C = TypeVar("C", bound=Cloud)
B = TypeVar("B", bound="Bed[Any]")


class Bed(ABC, Generic[C]):
    """A cloud, a workspace for each build, and builds in it."""

    def __init__(self, gcloud: Gcloud, cloud: C, stage: Stage, folder: Path) -> None:
        self._gcloud, self.cloud, self.stage, self._folder = gcloud, cloud, stage, folder
        self.workspace = self.sources = folder / "sources"
        for each in ("infra/environments", "infra/kubernetes", "examples/training"):
            shutil.copytree(ROOT / each, self.sources / each, ignore=shutil.ignore_patterns(".terraform*"))
        self._count = 0

    def build(
        self, build: dict[str, Any], substitutions: Mapping[str, str], instead: Mapping[str, str] = READY
    ) -> CompletedProcess[str]:
        """Run a build in a workspace of its own; return its last step, which has failed or is the last of all."""
        self._count += 1
        self.workspace = self._folder / f"workspace{self._count}"
        shutil.copytree(self.sources, self.workspace)
        assert substitutions.keys() <= build["substitutions"].keys()
        environment = {**build["substitutions"], **substitutions, "PROJECT_ID": "shop"}
        for step in build["steps"]:
            done = self.run(instead.get(step["id"], step["script"]), environment)
            if done.returncode:
                done.stderr = f"{step['id']}: {done.stderr}"
                break
        return done

    @abstractmethod
    def provision(self, **changes: str) -> CompletedProcess[str]:
        """Run the provision build; return its last step."""

    def provisioned(self) -> None:
        """Have what the provision build makes: it runs once, and is remembered."""
        if type(self) in _PROVISIONED:
            self.cloud.recall(_PROVISIONED[type(self)])
            return
        done = self.provision()
        assert done.returncode == 0, done.stderr
        self.stage.calls.clear()
        _PROVISIONED[type(self)] = self.cloud.memory()

    def run(self, script: str, environment: Mapping[str, str]) -> CompletedProcess[str]:
        shell = "sh" if script.startswith("#!/bin/sh") else "bash"
        path = f"{self.stage.folder}:{self._gcloud.folder}:{os.environ['PATH']}"
        whole = {**environment, "PATH": path}
        url = self.cloud.objects.url
        return self._gcloud.run(shell, "-c", script, url=url, environment=whole, folder=self.workspace)

    @property
    def kept(self) -> dict[str, bytes]:
        return self.cloud.objects.buckets["state"]

    @property
    def terraform(self) -> list[str]:
        """What Terraform was told to do, and where, without its options."""
        told = [call.words for call in self.stage.calls if call.program == "terraform"]
        each = [f"{words[1]} {Path(words[0]).name}" for words in told]
        return [
            one for one in each if one.partition(" ")[0] not in {"init", "show", "output"} and one != "plan validated"
        ]


@contextmanager
def laid(kind: type[B], gcloud: Gcloud, cloud: Cloud, folder: Path) -> Iterator[B]:
    """Serve a cloud, and the programs that builds call, to a bed."""
    parts = {"terraform": cloud.terraform, "kubectl": cloud.kubectl, "sleep": cloud.sleep}
    with played(folder / "tools", parts) as stage, serving(cloud.google) as cloud.objects.url:
        python = stage.folder / "python"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
        yield kind(gcloud, cloud, stage, folder)
