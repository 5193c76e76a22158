"""`python -m infra.environments.triton.builds COMMAND`: what the builds decide between their tools.

    variables    write the variables of the root: build/infrastructure.tfvars.json
    remembered   the same, of what was provisioned, and build/place: PROJECT REGION CLUSTER NETWORK
    planned      judge the plan, write build/place, and its variables into build/kept
    serving      write build/model_repository, build/triton (the overlay), build/serving: NAMESPACE BUCKET MEMBER
    standing     write build/standing/infrastructure: what Terraform has made, an address a line

It needs no library. Exit codes: 0, 1 with the reason, or 2 for another command.
"""

import os
import sys

from infra.environments import plans
from infra.environments.plans import CLUSTER
from infra.environments.substitutions import given, place, remembered
from infra.environments.triton.builds.variables import INFRASTRUCTURE, VARIABLES
from infra.environments.triton.serving.overlay import Serving, Version
from infra.environments.triton.serving.overlay import write as write_overlay
from infra.environments.triton.serving.sample_model import write as write_model
from infra.environments.workspace import (
    BUILD,
    decide,
    keep_variables,
    kept_variables,
    read,
    write,
    write_standing,
    write_variables,
)

BUCKET = "google_storage_bucket.models"


def _variables() -> None:
    write_variables(given(os.environ, VARIABLES))


def _remembered() -> None:
    values = remembered(given(os.environ, VARIABLES), kept_variables(VARIABLES), VARIABLES)
    write(BUILD / "place", place(values[INFRASTRUCTURE], VARIABLES[INFRASTRUCTURE]))
    write_variables(values)


def _planned() -> None:
    plan = read(BUILD / f"{INFRASTRUCTURE}.plan.json")
    plans.keeps(plan, {CLUSTER, BUCKET})
    write(BUILD / "place", place(keep_variables(INFRASTRUCTURE, plan), VARIABLES[INFRASTRUCTURE]))


def _serving() -> None:
    outputs = {name: each["value"] for name, each in read(BUILD / f"{INFRASTRUCTURE}.outputs.json").items()}
    serving = Serving(
        project=outputs["project_id"],
        stable=Version(repository=outputs["model_repository"]),
        namespace=outputs["namespace"],
        account=outputs["service_accounts"]["kubernetes"],
        gpus=outputs["gpus"]["count"],
    )
    write_overlay(serving, BUILD / "triton")
    write_model(BUILD / "model_repository")
    write(BUILD / "serving", " ".join((outputs["namespace"], outputs["bucket"], outputs["mesh"]["member"])))


COMMANDS = {
    "variables": _variables,
    "remembered": _remembered,
    "planned": _planned,
    "serving": _serving,
    "standing": lambda: write_standing(VARIABLES),
}

if __name__ == "__main__":
    sys.exit(decide(COMMANDS, sys.argv[1:], __doc__))
