"""`python -m infra.environments.training.builds`: what the builds decide between their tools. It needs no library.

    variables        write the variables of both roots: build/ROOT.tfvars.json
    remembered       the same, of what was provisioned (build/kept), and build/place: PROJECT REGION CLUSTER NETWORK
    planned ROOT     judge build/ROOT.plan.json, and write build/place, and its variables into build/kept
    smoke            write build/smoke/: how the smoke JobSet is made, and what it is to report
    standing         write build/standing/ROOT: what Terraform has made, an address a line

Exit codes: 0, or 1 with the reason.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from infra.environments.training.builds import plans
from infra.environments.training.builds.smoke import smoke
from infra.environments.training.builds.variables import (
    CONFIGURATION,
    INFRASTRUCTURE,
    ROOTS,
    Refused,
    Values,
    given,
    place,
    remembered,
)

BUILD = Path("build")
KEPT = BUILD / "kept"
SETTINGS = "provisioner_settings_file"


def _read(path: Path) -> Any:
    return json.loads(path.read_text())


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n" if text else "")


def _write_variables(values: Mapping[str, Values]) -> None:
    for root, each in values.items():
        _write(BUILD / f"{root}.tfvars.json", json.dumps(each, indent=2))


def _variables(_: argparse.Namespace) -> None:
    values = given(os.environ)
    file = Path("infra", "clusters", os.environ["PROJECT_ID"], f"{os.environ['_CLUSTER_NAME']}.yaml").resolve()
    if file.is_file():
        values[CONFIGURATION][SETTINGS] = str(file)
    _write_variables(values)


def _remembered(_: argparse.Namespace) -> None:
    files = {root: KEPT / f"{root}.tfvars.json" for root in ROOTS}
    values = remembered(os.environ, {root: _read(file) for root, file in files.items() if file.is_file()})
    file = values[CONFIGURATION].get(SETTINGS)
    if file and not Path(file).is_file():  # it was not submitted again, and nothing is computed of it any more
        del values[CONFIGURATION][SETTINGS]
    _write(BUILD / "place", place(values[INFRASTRUCTURE]))
    _write_variables(values)


def _planned(options: argparse.Namespace) -> None:
    plan = _read(BUILD / f"{options.root}.plan.json")
    values = plans.variables(plan)
    if options.root == INFRASTRUCTURE:
        plans.judge(plan, os.environ["_NUM_OF_CHIPS"])
        _write(BUILD / "place", place(values))
    _write(KEPT / f"{options.root}.tfvars.json", json.dumps(values, indent=2))


def _smoke(_: argparse.Namespace) -> None:
    flavors = _read(BUILD / f"{INFRASTRUCTURE}.outputs.json")["flavors"]["value"]
    queues = _read(BUILD / f"{CONFIGURATION}.outputs.json")["local_queues"]["value"]
    namespace = _read(KEPT / f"{CONFIGURATION}.tfvars.json").get("tpu_namespace", min(queues))
    made = smoke(flavors, namespace, queues[namespace])
    _write(BUILD / "smoke" / "patch.json", json.dumps(made.patch, indent=2))
    _write(BUILD / "smoke" / "expected", f"{made.namespace} {made.hosts} {made.report}")


def _standing(_: argparse.Namespace) -> None:
    for root in ROOTS:
        resources = plans.standing(_read(BUILD / f"{root}.state.json"))
        plans.destroyable(resources)
        _write(BUILD / "standing" / root, "\n".join(resources))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m infra.environments.training.builds",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    named: Mapping[str, Callable[[argparse.Namespace], None]] = {
        "variables": _variables,
        "remembered": _remembered,
        "planned": _planned,
        "smoke": _smoke,
        "standing": _standing,
    }
    for name, run in named.items():
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        if name == "planned":
            command.add_argument("root", choices=ROOTS)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except Refused as refused:
        sys.stderr.write(f"{refused}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
