"""The device plugin's manifests, as kubectl builds them: where it runs, as whom, and that its images are settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.infra.relay.manifests import Json, built, the
from tests.infra.sources import ROOT
from tpu_slices.domain.planning.host_labels import ACCELERATOR
from tpu_slices.domain.planning.joining import TPU_TAINT

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

FOLDER = ROOT / "infra" / "kubernetes" / "device-plugin"
EXAMPLE = FOLDER / "overlays" / "example"
NOWHERE = "overlay.invalid/"


def pod(manifests: list[Json]) -> Json:
    spec: Json = the("DaemonSet", manifests)["spec"]["template"]["spec"]
    return spec


def images(manifests: list[Json]) -> dict[str, str]:
    return {each["name"]: each["image"] for each in pod(manifests)["containers"]}


def with_components(folder: Path, *components: str) -> list[Json]:
    """Return what an overlay builds that has these components and says nothing of images."""
    for name in ("base", *components):
        (folder / name).symlink_to(FOLDER / name)
    overlay: dict[str, Any] = {"resources": ["base"], "components": [*components]}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    return built(folder)


def test_no_image_has_a_default() -> None:
    assert images(built(FOLDER / "base")) == {"tpu-device-plugin": f"{NOWHERE}tpu-device-plugin"}


def test_an_overlay_names_them_by_their_digests() -> None:
    named = images(built(EXAMPLE))
    assert set(named) == {"tpu-device-plugin", "vbar-control-agent", "log-collector"}
    assert all("@sha256:" in image and NOWHERE not in image for image in named.values())


def test_it_runs_where_the_labels_of_a_slice_are_whatever_taints_are_there() -> None:
    spec = pod(built(FOLDER / "base"))
    affinity = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert affinity == {"nodeSelectorTerms": [{"matchExpressions": [{"key": ACCELERATOR, "operator": "Exists"}]}]}
    tolerated = {each["effect"] for each in spec["tolerations"] if each["operator"] == "Exists" and "key" not in each}
    assert tolerated == {"NoSchedule", "NoExecute"}
    assert TPU_TAINT.key == "google.com/tpu"


def test_it_is_its_own_service_account_and_may_do_what_it_does() -> None:
    manifests = built(FOLDER / "base")
    account = the("ServiceAccount", manifests)["metadata"]
    assert pod(manifests)["serviceAccountName"] == account["name"]
    [subject] = the("ClusterRoleBinding", manifests)["subjects"]
    assert (subject["namespace"], subject["name"]) == (account["namespace"], account["name"])
    assert the("ClusterRole", manifests)["rules"] == [
        {
            "apiGroups": [""],
            "resources": ["nodes", "nodes/status"],
            "verbs": ["get", "list", "watch", "patch", "update"],
        },
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
    ]


@pytest.mark.parametrize("components", [("vbar",), ("log-collector",), ("vbar", "log-collector")])
def test_the_rest_is_optional(components: tuple[str, ...], tmp_path: Path) -> None:
    manifests = with_components(tmp_path, *components)
    plugin = pod(manifests)["containers"][0]
    assert ("--enable-vbar-uds=true" in plugin["args"]) is ("vbar" in components)
    assert ("log-collector" in images(manifests)) is ("log-collector" in components)
    volumes = {each["name"] for each in pod(manifests)["volumes"]}
    assert {mount["name"] for each in pod(manifests)["containers"] for mount in each["volumeMounts"]} <= volumes


def test_what_selects_its_pods_is_on_them() -> None:
    spec = the("DaemonSet", built(EXAMPLE))["spec"]
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
