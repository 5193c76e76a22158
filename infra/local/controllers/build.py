"""`make kubernetes`: builds controllers, each into a folder that appears only when it is complete.

It has the controller's program and its manifests.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml

from infra.local.controllers.catalogue import CONTROLLERS, MANIFESTS, PROGRAM, Controller, built, cache_of, complete
from infra.local.interrupts import orderly_end
from infra.local.kubernetes import programs, toolchain
from infra.local.kubernetes.__main__ import INTERRUPTED
from infra.local.kubernetes.build import BUILDING, Go, Tell, alone, compiled
from infra.local.kubernetes.toolchain import NotBuilt
from infra.local.prerequisites import Prerequisite, find

_NO_SYMBOLS = ("-ldflags", "-s -w")
_CONFIGURATION = ("config", "default")


def provide(environment: Mapping[str, str], tell: Tell) -> int:
    """Build what is not there, and say what is used. Return the exit code."""
    try:
        build(CONTROLLERS, environment, tell)
    except (NotBuilt, OSError) as problem:
        tell(f"NOT ALL CONTROLLERS: tests of them are skipped, with CI=true they fail. {problem}")
        return 1
    for each in CONTROLLERS:
        tell(f"{each}: {built(each, environment)}, built here")
    return 0


def build(controllers: Iterable[Controller], environment: Mapping[str, str], tell: Tell) -> None:
    """Build the controllers that are not there yet. Raise NotBuilt; what was built before stays."""
    cache = cache_of(environment)
    with alone(cache, tell):
        for controller in controllers:
            if not complete(built(controller, environment)):
                _build(controller, cache, environment, tell)


def _build(controller: Controller, cache: Path, environment: Mapping[str, str], tell: Tell) -> None:
    target = built(controller, environment)
    program, which = toolchain.go(environment, controller.go, programs.cache_of(environment), tell)
    tell(f"Building {controller} with {which}: some 3 minutes of two processors, once.")
    with tempfile.TemporaryDirectory(prefix=BUILDING, dir=cache) as unfinished:
        whole = Path(unfinished) / "whole"
        go = Go(program=program, environment=environment, folder=controller.folder)
        compiled(go, (controller.package,), _NO_SYMBOLS, whole, tell)
        (made,) = whole.iterdir()
        made.rename(whole / PROGRAM)
        (module,) = go.lines("list", "-mod=readonly", "-m", "-f", "{{.Dir}}", controller.module, heard=lambda _: None)
        (whole / MANIFESTS).write_text(json.dumps(_manifests(Path(module), environment)), encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)  # somebody removed a part of it
        whole.rename(target)


def _manifests(module: Path, environment: Mapping[str, str]) -> list[object]:
    """Return the objects that the module's project installs."""
    kubectl = find(environment)[Prerequisite.KUBECTL]
    if kubectl is None:
        raise NotBuilt("kubectl, which puts manifests together, is not on the PATH")
    command = (str(kubectl), "kustomize", str(module.joinpath(*_CONFIGURATION)))
    said = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    if said.returncode != 0:
        raise NotBuilt(f"kubectl kustomize failed: {said.stderr.strip().splitlines()[-1]}")
    return list(yaml.load_all(said.stdout, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


def main() -> int:
    """Run it for people: lines go to the terminal as they come."""
    try:
        with orderly_end():
            return provide(os.environ, lambda line: print(line, flush=True))
    except KeyboardInterrupt:
        print("Interrupted; the next build goes on where this one was, from Go's cache.", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
