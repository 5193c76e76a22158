"""`make kubernetes`: builds controllers, each into a folder that appears only when it is complete.

It has the controller's program and its manifests.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml

from infra.local.controllers.catalogue import CONTROLLERS, MANIFESTS, PROGRAM, Controller, built, cache_of, complete
from infra.local.kubernetes import programs, toolchain
from infra.local.kubernetes.build import Go, Tell, alone, appearing, compiled, for_people
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
                _build(controller, environment, tell)


def _build(controller: Controller, environment: Mapping[str, str], tell: Tell) -> None:
    program, which = toolchain.go(environment, controller.go, programs.cache_of(environment), tell)
    tell(f"Building {controller} with {which}: 3 to 5 minutes of two processors, once.")
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


if __name__ == "__main__":
    sys.exit(for_people(provide))
