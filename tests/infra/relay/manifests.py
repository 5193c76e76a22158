"""The relay's manifests: as all clusters have them, and as kubectl builds them for one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import yaml

from infra.kubernetes.overlay import BASE, KUSTOMIZATION, Image, Relay, write
from tests.infra.evaluation import SELDOM_COLLECTED
from tpu_slices.domain.model.slices import ClusterId

Json = dict[str, Any]
DIGEST = f"sha256:{'0123456789abcdef' * 4}"
IMAGE = f"us-central1-docker.pkg.dev/shop/tpu-slice-provisioner/relay@{DIGEST}"
_KUSTOMIZATION = yaml.safe_load((BASE / KUSTOMIZATION).read_text())
SHARED: list[Json] = [
    manifest for file in _KUSTOMIZATION["resources"] for manifest in yaml.safe_load_all((BASE / file).read_text())
]
"""The manifests of the base."""


def the(kind: str, among: list[Json] = SHARED, name: str | None = None) -> Json:
    """Return the one manifest of a kind, or of a kind and a name."""
    (found,) = (each for each in among if each["kind"] == kind and name in {None, each["metadata"]["name"]})
    return found


def container(among: list[Json] = SHARED) -> Json:
    (only,) = the("Deployment", among)["spec"]["template"]["spec"]["containers"]
    found: Json = only
    return found


def environment(among: list[Json]) -> dict[str, str]:
    """Return the variables of the relay's container."""
    return {variable["name"]: variable["value"] for variable in container(among)["env"]}


def a_relay(cluster: str = "blue", project: str = "shop", version: str = "1.2.3", image: str = IMAGE) -> Relay:
    return Relay(cluster=ClusterId(cluster), project=project, version=version, image=Image.parse(image))


def built(folder: Path) -> list[Json]:
    """Return what `kubectl apply --kustomize` would apply."""
    environment = {**os.environ, **SELDOM_COLLECTED}
    said = subprocess.run(
        ["kubectl", "kustomize", folder], env=environment, capture_output=True, text=True, check=False
    )
    assert (said.returncode, said.stderr) == (0, "")
    return list(yaml.load_all(said.stdout, Loader=yaml.CSafeLoader))


def deployed(relay: Relay, folder: Path) -> list[Json]:
    """Return the manifests of a cluster's relay."""
    write(relay, folder)
    return built(folder)
