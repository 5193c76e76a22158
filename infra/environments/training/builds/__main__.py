"""`python -m infra.environments.training.builds COMMAND`: what the builds decide between their tools.

    variables                write the variables of both roots: build/ROOT.tfvars.json
    remembered               the same, of what was provisioned, and build/place: PROJECT REGION CLUSTER NETWORK
    planned infrastructure   judge its plan, write build/place, and its variables into build/kept
    planned configuration    write its variables into build/kept
    smoke                    write build/smoke/: how the smoke JobSet is made, and what it is to report
    standing                 write build/standing/ROOT: what Terraform has made, an address a line

It needs no library. Exit codes: 0, 1 with the reason, or 2 for another command.
"""

import json
import os
import sys
from pathlib import Path

from infra.environments.substitutions import place, remembered
from infra.environments.training.builds.plans import judge
from infra.environments.training.builds.smoke import smoke
from infra.environments.training.builds.variables import CONFIGURATION, INFRASTRUCTURE, ROOTS, VARIABLES, given
from infra.environments.workspace import (
    BUILD,
    KEPT,
    decide,
    keep_variables,
    kept_variables,
    read,
    write,
    write_standing,
    write_variables,
)

SETTINGS = "provisioner_settings_file"


def _variables() -> None:
    values = given(os.environ)
    file = Path("infra", "clusters", os.environ["PROJECT_ID"], f"{os.environ['_CLUSTER_NAME']}.yaml").resolve()
    if file.is_file():
        values[CONFIGURATION][SETTINGS] = str(file)
    write_variables(values)


def _remembered() -> None:
    values = remembered(given(os.environ), kept_variables(ROOTS), VARIABLES)
    file = values[CONFIGURATION].get(SETTINGS)
    if file and not Path(file).is_file():  # it was not submitted again, and nothing is computed of it any more
        del values[CONFIGURATION][SETTINGS]
    write(BUILD / "place", place(values[INFRASTRUCTURE], VARIABLES[INFRASTRUCTURE]))
    write_variables(values)


def _planned_infrastructure() -> None:
    plan = read(BUILD / f"{INFRASTRUCTURE}.plan.json")
    judge(plan, os.environ["_NUM_OF_CHIPS"])
    write(BUILD / "place", place(keep_variables(INFRASTRUCTURE, plan), VARIABLES[INFRASTRUCTURE]))


def _planned_configuration() -> None:
    keep_variables(CONFIGURATION, read(BUILD / f"{CONFIGURATION}.plan.json"))


def _smoke() -> None:
    flavors = read(BUILD / f"{INFRASTRUCTURE}.outputs.json")["flavors"]["value"]
    queues = read(BUILD / f"{CONFIGURATION}.outputs.json")["local_queues"]["value"]
    namespace = read(KEPT / f"{CONFIGURATION}.tfvars.json").get("tpu_namespace", min(queues))
    made = smoke(flavors, namespace, queues[namespace])
    write(BUILD / "smoke" / "patch.json", json.dumps(made.patch, indent=2))
    write(BUILD / "smoke" / "expected", f"{made.namespace} {made.hosts} {made.report}")


COMMANDS = {
    "variables": _variables,
    "remembered": _remembered,
    f"planned {INFRASTRUCTURE}": _planned_infrastructure,
    f"planned {CONFIGURATION}": _planned_configuration,
    "smoke": _smoke,
    "standing": lambda: write_standing(ROOTS),
}

if __name__ == "__main__":
    sys.exit(decide(COMMANDS, sys.argv[1:], __doc__))
