"""What the substitutions of a build say to the two roots, and what an earlier build has said to them."""

from collections.abc import Iterator, Mapping
from typing import Any

Values = dict[str, Any]
ROOTS = INFRASTRUCTURE, CONFIGURATION = ("infrastructure", "configuration")
VARIABLES = {
    INFRASTRUCTURE: {
        "PROJECT_ID": "project_id",
        "_REGION": "region",
        "_ZONE": "zone",
        "_NETWORK_NAME": "network_name",
        "_SUBNET_NAME": "subnet_name",
        "_CLUSTER_NAME": "cluster_name",
        "_ARTIFACT_REPOSITORY_BUCKET_NAME": "artifact_repository_bucket_name",
        "_TPU_TYPE": "tpu_type",
        "_NUM_TPU_POOLS": "num_tpu_pools",
        "_TENSORBOARD_REGION": "tensorboard_region",
    },
    CONFIGURATION: {
        "PROJECT_ID": "project_id",
        "_TF_STATE_BUCKET": "state_bucket",
        "_NAMESPACE": "tpu_namespace",
        "_JOBSET_API_VERSION": "jobset_version",
        "_KUEUE_API_VERSION": "kueue_version",
    },
}
"""By root, the variable that each substitution sets. An empty one sets none: terraform.tfvars or the default counts."""


class Refused(Exception):
    """What a build was asked for cannot be, and why."""


def given(substitutions: Mapping[str, str]) -> dict[str, Values]:
    """Return by root the variables that the substitutions set."""
    values: dict[str, Values] = {
        root: {name: value for key, name in names.items() if (value := substitutions.get(key, ""))}
        for root, names in VARIABLES.items()
    }
    values[CONFIGURATION]["state_prefix"] = f"{substitutions['_TF_STATE_PREFIX']}/{INFRASTRUCTURE}"
    return values


def remembered(substitutions: Mapping[str, str], kept: Mapping[str, Values]) -> dict[str, Values]:
    """Return by root the variables that it was provisioned with, else those that are given.

    Raises Refused if something else is given: then another environment is meant.
    """
    values = given(substitutions)
    if wrong := [line for root in kept for line in _differences(root, values[root], kept[root])]:
        raise Refused("\n".join([*wrong, "Leave out what was provisioned, or name another _TF_STATE_PREFIX."]))
    return {**values, **kept}


def _differences(root: str, values: Values, kept: Values) -> Iterator[str]:
    for key, name in VARIABLES[root].items():
        if name in values and str(values[name]) != str(kept.get(name)):
            yield f"{key} is {values[name]}, but what was provisioned here has {kept.get(name)}."


def place(infrastructure: Values) -> str:
    """Return `PROJECT REGION CLUSTER NETWORK`, for scripts. Raises Refused if one is not known."""
    names = ("project_id", "region", "cluster_name", "network_name")
    keys = {name: key for key, name in VARIABLES[INFRASTRUCTURE].items()}
    if missing := [keys[name] for name in names if not infrastructure.get(name)]:
        raise Refused(f"No build has provisioned anything here: {', '.join(missing)} must be set to destroy it.")
    return " ".join(infrastructure[name] for name in names)
