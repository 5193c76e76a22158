"""Builds controllers, each into a folder that appears only when it is complete.

It has the controller's program and its manifests.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml

from tpu_standins.controllers.catalogue import CONTROLLERS, MANIFESTS, PROGRAM, Controller, built, cache_of, complete
from tpu_standins.kubernetes import programs, toolchain
from tpu_standins.kubernetes.build import Go, Tell, alone, appearing, compiled
from tpu_standins.kubernetes.toolchain import NotBuilt
from tpu_standins.prerequisites import Prerequisite, find

_NO_SYMBOLS = ("-ldflags", "-s -w")
_CONFIGURATION = ("config", "default")
MINUTES = 4
"""For each, on two processors, with the modules to be downloaded."""


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


def minutes_left(environment: Mapping[str, str]) -> int:
    """Return how many minutes of two processors `provide` would take."""
    return MINUTES * sum(not complete(built(each, environment)) for each in CONTROLLERS)


def build(controllers: Iterable[Controller], environment: Mapping[str, str], tell: Tell) -> None:
    """Build the controllers that are not there yet. Raise NotBuilt; what was built before stays."""
    cache = cache_of(environment)
    with alone(cache, tell):
        for controller in controllers:
            if not complete(built(controller, environment)):
                _build(controller, environment, tell)


def _build(controller: Controller, environment: Mapping[str, str], tell: Tell) -> None:
    program, which = toolchain.go(environment, controller.go, programs.cache_of(environment), tell)
    tell(f"Building {controller} with {which}: some {MINUTES} minutes.")
    with appearing(built(controller, environment)) as whole:
        go = Go(program=program, environment=environment, folder=controller.folder)
        compiled(go, (controller.package,), _NO_SYMBOLS, whole, tell)
        (made,) = whole.iterdir()
        made.rename(whole / PROGRAM)
        (module,) = go.lines("list", "-mod=readonly", "-m", "-f", "{{.Dir}}", controller.module, heard=lambda _: None)
        (whole / MANIFESTS).write_text(json.dumps(_manifests(Path(module), environment)), encoding="utf-8")


def _manifests(module: Path, environment: Mapping[str, str]) -> list[object]:
    """Return the objects that the module's project installs."""
    kubectl = find(environment)[Prerequisite.KUBECTL]
    if kubectl is None:
        raise NotBuilt("kubectl, which puts manifests together, is not on the PATH")
    command = (str(kubectl), "kustomize", str(module.joinpath(*_CONFIGURATION)))
    said = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if said.returncode != 0:
        raise NotBuilt(f"kubectl kustomize failed: {said.stderr.strip().splitlines()[-1]}")
    return list(yaml.load_all(said.stdout, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
