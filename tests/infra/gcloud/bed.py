"""Builds of environments, step by step, by the real gcloud in a cloud that remembers."""

from __future__ import annotations

import os
import shutil
import sys
from abc import ABC
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from subprocess import CompletedProcess
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

from tests.infra.builds.cloud import Cloud
from tests.infra.builds.played import Stage, played
from tests.infra.gcloud.conftest import Gcloud
from tests.infra.loopback import serving
from tests.infra.sources import ROOT

READY = {"preflight": "mkdir -p build; bash infra/environments/kept.sh fetch"}
"""Instead of the first step: the project is known to be ready."""
SOURCES = ("infra/environments", "infra/kubernetes/credentials.sh", "examples/training/device-check.yaml")
"""What the steps read of what is submitted."""
TRIES = "3"
"""How often builds try what they wait for: what comes has come by then."""
END = "end"
C = TypeVar("C", bound=Cloud)
B = TypeVar("B", bound="Bed[Any]")


@dataclass(frozen=True, slots=True)
class Moment:
    """What is there before a step of a build."""

    cloud: dict[str, Any]
    made: dict[str, bytes | None]
    """The files that earlier steps have made in the workspace; None: a folder."""


_PLAYED: dict[type, dict[str, Moment]] = {}
"""By kind of bed, the moments of a provision build that went well, by the step before which they are."""


class Bed(ABC, Generic[C]):
    """A cloud, a workspace for each build, and builds in it."""

    provisions: ClassVar[dict[str, Any]]
    given: ClassVar[dict[str, str]]
    """The substitutions with which it provisions."""
    destroys: ClassVar[dict[str, Any]]
    meant: ClassVar[dict[str, str]]
    """The substitutions that destroy what was provisioned."""
    instead: ClassVar[dict[str, str]] = READY
    """Other scripts for some steps."""

    def __init__(self, gcloud: Gcloud, cloud: C, stage: Stage, folder: Path) -> None:
        self._gcloud, self.cloud, self.stage, self._folder = gcloud, cloud, stage, folder
        self.workspace = folder
        self.submitted: dict[str, str] = {}
        """Files beside the sources."""
        self._count = 0
        self._step = END

    def build(
        self, build: dict[str, Any], substitutions: Mapping[str, str], instead: Mapping[str, str] = READY
    ) -> CompletedProcess[str]:
        """Run a build in a workspace of its own; return its last step, which has failed or is the last of all."""
        self._lay()
        return self._run(build, substitutions, instead)

    def provision(self, *, until: str = END, **changes: str) -> CompletedProcess[str]:
        """Run the provision build, but for a step and those after it; return the last."""
        self._lay()
        return self._run(self.provisions, {**self.given, **changes}, self.instead, until=until)

    def destroy(self, *, until: str = END, **changes: str) -> CompletedProcess[str]:
        self._lay()
        return self._run(self.destroys, {**self.meant, **changes}, READY, until=until)

    def take_away(self, **changes: str) -> None:
        """Destroy all there is, without the look for leftovers: here it is seen whether there are any."""
        done = self.destroy(until="leftovers", **changes)
        assert done.returncode == 0, done.stderr
        assert self.cloud.status == ""
        assert not any(self.cloud.states.values())
        assert not any(self.cloud.compute.values())

    def at(self, step: str) -> None:
        """Be before a step of a provision build that goes well, which is played once."""
        if type(self) not in _PLAYED:
            moments: dict[str, Moment] = {}
            self._lay()
            done = self._run(self.provisions, self.given, self.instead, moments=moments)
            assert done.returncode == 0, done.stderr
            _PLAYED[type(self)] = moments
        moment = _PLAYED[type(self)][step]
        self._lay(moment.made)
        self.cloud.recall(moment.cloud)
        self.stage.calls.clear()
        self._step = step

    def provisioned(self) -> None:
        """Have what the provision build makes."""
        self.at(END)

    def go_on(self, **changes: str) -> CompletedProcess[str]:
        """Run the provision build from the step on where this bed is; return the last one, as a build does."""
        return self._run(self.provisions, {**self.given, **changes}, self.instead, first=self._step)

    def _run(
        self,
        build: dict[str, Any],
        substitutions: Mapping[str, str],
        instead: Mapping[str, str],
        *,
        first: str = "",
        until: str = END,
        moments: dict[str, Moment] | None = None,
    ) -> CompletedProcess[str]:
        assert substitutions.keys() <= build["substitutions"].keys()
        environment = {**build["substitutions"], **substitutions, "PROJECT_ID": "shop"}
        scripts = {step["id"]: instead.get(step["id"], step["script"]) for step in build["steps"]}
        names = [*scripts, END]
        for name in names[names.index(first) if first else 0 : names.index(until)]:
            if moments is not None:
                moments[name] = self._moment()
            done = self.run(scripts[name], environment)
            if done.returncode:
                done.stderr = f"{name}: {done.stderr}"
                return done
        if moments is not None:
            moments[END] = self._moment()
        return done

    def _lay(self, made: Mapping[str, bytes | None] = MappingProxyType({})) -> None:
        """Have a workspace of what was submitted, and these files."""
        self._count += 1
        self.workspace = self._folder / f"workspace{self._count}"
        for name, path in _sources().items():
            (self.workspace / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, self.workspace / name)
        for name, data in {**{each: text.encode() for each, text in self.submitted.items()}, **made}.items():
            folder = self.workspace / name if data is None else (self.workspace / name).parent
            folder.mkdir(parents=True, exist_ok=True)
            if data is not None:
                (self.workspace / name).write_bytes(data)

    def _moment(self) -> Moment:
        found = {each.relative_to(self.workspace).as_posix(): each for each in self.workspace.rglob("*")}
        made = {
            name: None if path.is_dir() else path.read_bytes()
            for name, path in found.items()
            if name not in _sources() and "__pycache__" not in path.parts
        }
        return Moment(self.cloud.memory(), made)

    def run(self, script: str, environment: Mapping[str, str]) -> CompletedProcess[str]:
        shell = "sh" if script.startswith("#!/bin/sh") else "bash"
        path = f"{self.stage.folder}:{self._gcloud.folder}:{os.environ['PATH']}"
        whole = {**environment, "PATH": path, "UNTIL_TRIES": TRIES}
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


@cache
def _sources() -> dict[str, Path]:
    """Return the files of the sources that steps read, by their names."""
    files = [path for each in SOURCES for path in (ROOT / each, *(ROOT / each).rglob("*")) if path.is_file()]
    return {path.relative_to(ROOT).as_posix(): path for path in files if ".terraform" not in str(path)}


@contextmanager
def laid(kind: type[B], gcloud: Gcloud, cloud: Cloud, folder: Path) -> Iterator[B]:
    """Serve a cloud, and the programs that builds call, to a bed."""
    parts = {"terraform": cloud.terraform, "kubectl": cloud.kubectl, "sleep": cloud.sleep}
    with played(folder / "tools", parts) as stage, serving(cloud.google) as cloud.objects.url:
        python = stage.folder / "python"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
        yield kind(gcloud, cloud, stage, folder)
