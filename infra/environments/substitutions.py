"""What the substitutions of an environment's builds say to its roots, and what an earlier build has said to them."""

from collections.abc import Iterator, Mapping
from typing import Any

Values = dict[str, Any]
"""Variables of a root."""
Names = Mapping[str, str]
"""By substitution, the variable that it sets. An empty one sets none: terraform.tfvars or the default counts."""


class Refused(Exception):
    """What a build was asked for cannot be, and why."""


def given(substitutions: Mapping[str, str], roots: Mapping[str, Names]) -> dict[str, Values]:
    """Return by root the variables that the substitutions set."""
    return {
        root: {name: value for key, name in names.items() if (value := substitutions.get(key, ""))}
        for root, names in roots.items()
    }


def remembered(
    values: Mapping[str, Values], kept: Mapping[str, Values], roots: Mapping[str, Names]
) -> dict[str, Values]:
    """Return by root the variables that it was provisioned with, else those that are given.

    Raises Refused if something else is given: then another environment is meant.
    """
    if wrong := [line for root in kept for line in _differences(roots[root], values[root], kept[root])]:
        raise Refused("\n".join([*wrong, "Leave out what was provisioned, or name another _TF_STATE_PREFIX."]))
    return {**values, **kept}


def _differences(names: Names, values: Values, kept: Values) -> Iterator[str]:
    for key, name in names.items():
        if name in values and str(values[name]) != str(kept.get(name)):
            yield f"{key} is {values[name]}, but what was provisioned here has {kept.get(name)}."


def place(infrastructure: Values, names: Names) -> str:
    """Return `PROJECT REGION CLUSTER NETWORK`, for scripts. Raises Refused if one is not known."""
    parts = ("project_id", "region", "cluster_name", "network_name")
    keys = {name: key for key, name in names.items()}
    if missing := [keys[part] for part in parts if not infrastructure.get(part)]:
        raise Refused(f"No build has provisioned anything here: {', '.join(missing)} must be set to destroy it.")
    return " ".join(infrastructure[part] for part in parts)
