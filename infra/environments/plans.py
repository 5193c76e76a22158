"""Whether a plan of Terraform may be applied, and what stands by Terraform's state."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from infra.environments.substitutions import Refused, Values

Json = Mapping[str, Any]
CLUSTER = "google_container_cluster.cluster"


def keeps(plan: Json, addresses: Collection[str]) -> None:
    """Raise Refused if a plan deletes one of these resources."""
    lost = [
        change["address"]
        for change in plan.get("resource_changes", ())
        if change["address"] in addresses and "delete" in change["change"]["actions"]
    ]
    if lost:
        raise Refused(
            f"This would delete {' and '.join(lost)}, with all that is in it. Is _TF_STATE_PREFIX another "
            "environment's? If it is meant, run cloudbuild.destroy.yaml first."
        )


def variables(plan: Json) -> Values:
    """Return the variables that a plan was made with, wherever they came from."""
    return {name: each["value"] for name, each in plan.get("variables", {}).items() if "value" in each}


def standing(state: Json) -> dict[str, Values]:
    """Return what Terraform has made and not yet destroyed: its values, by address."""
    return dict(_resources(state.get("values", {}).get("root_module", {})))


def _resources(module: Json) -> Iterator[tuple[str, Values]]:
    for resource in module.get("resources", ()):
        if resource["mode"] == "managed":
            yield resource["address"], resource.get("values", {})
    for child in module.get("child_modules", ()):
        yield from _resources(child)


def destroyable(resources: Mapping[str, Values]) -> None:
    """Raise Refused if the cluster is protected."""
    if resources.get(CLUSTER, {}).get("deletion_protection"):
        raise Refused(
            "The cluster is protected. Set deletion_protection = false in infrastructure/terraform.tfvars, "
            "and provision."
        )
