"""Plans of the configuration, on an infrastructure that Terraform planned: its outputs are as a state has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.infra.environments.evaluation import CONFIGURATION
from tests.infra.environments.planned import Plan, plan_of, planned_in, prepared

CLUSTER = "projects/shop-project/locations/us-central2/clusters/trainer"
TOLD_LATER: Mapping[str, Any] = {
    "bucket": "gs://shop-project-artifacts",
    "cluster": {
        "id": CLUSTER,
        "name": "trainer",
        "location": "us-central2",
        "zone": "us-central2-b",
        "dns_endpoint": "gke-0a1b2c.us-central2.gke.goog",
    },
    "image_repository": "us-central2-docker.pkg.dev/shop-project/gke-tpu-training",
    "service_accounts": {
        "nodes": "gke-sa@shop-project.iam.gserviceaccount.com",
        "training": "cloud-tpu-sa@shop-project.iam.gserviceaccount.com",
        "tensorboard": "tensorboard-sa@shop-project.iam.gserviceaccount.com",
    },
    "tensorboard": "projects/shop-project/locations/us-central1/tensorboards/123",
}
"""Outputs that are known only after the apply."""
OVERRIDE = """
data "terraform_remote_state" "infrastructure" {
  backend = "local"
  config  = { path = "infrastructure.tfstate" }
}
"""

Json = dict[str, Any]


@dataclass(frozen=True)
class Configured:
    """What Terraform would make, and what the charts would be told."""

    plan: Plan

    def values(self, release: str) -> Json:
        [text] = self.plan.resources[f"helm_release.{release}"]["values"]
        found: Json = yaml.safe_load(text)
        return found

    def kueue(self) -> Json:
        """Return the configuration of Kueue itself."""
        found: Json = yaml.safe_load(self.values("kueue")["managerConfig"]["controllerManagerConfigYaml"])
        return found

    def manifests(self, kind: str) -> dict[str, Json]:
        """Return the manifests of a kind, by name, and namespace if they have one."""
        found = [each for each in self.values("queues")["manifests"] if each["kind"] == kind]
        return {
            "/".join([*filter(None, [each["metadata"].get("namespace")]), each["metadata"]["name"]]): each
            for each in found
        }


def outputs_of(folder: Path, **variables: Any) -> Json:
    """Return what the infrastructure with these variables tells when it is applied."""
    planned = plan_of(folder, **variables).outputs
    return {name: TOLD_LATER[name] if value is None else value for name, value in planned.items()}


def configured(folder: Path, outputs: Json, settings: Json | None = None, **variables: Any) -> Configured:
    """Plan the configuration on these outputs, and with these settings of the provisioner for the cluster."""
    if settings is not None:
        variables["provisioner_settings_file"] = "settings.yaml"
    root = prepared(folder, CONFIGURATION, **variables)
    (root / "settings.yaml").write_text(json.dumps({"path": CLUSTER, **(settings or {})}))
    state = {name: {"value": value, "type": type_of(value)} for name, value in outputs.items()}
    (root / "infrastructure.tfstate").write_text(json.dumps({"version": 4, "lineage": "x", "outputs": state}))
    (root / "infrastructure_override.tf").write_text(OVERRIDE)
    return Configured(planned_in(root))


def type_of(value: object) -> Any:
    """Return a type of Terraform, as a state has it."""
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case dict():
            return ["object", {name: type_of(inner) for name, inner in value.items()}]
        case list():
            return ["tuple", [type_of(inner) for inner in value]]
        case _:
            return "string"
