"""Where the images come from that builds and environments pull: none straight from a public hub that limits pulls."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.infra.sources import HUB, ROOT

BUILDS = [
    path
    for folder in (ROOT, ROOT / "infra", ROOT / "examples")
    for path in sorted(folder.glob("cloudbuild*.yaml") if folder == ROOT else folder.rglob("cloudbuild*.yaml"))
]
GOOGLES = ("gcr.io/", "us-docker.pkg.dev/cloud-tpu-images/")
IN_CLUSTERS = re.compile(
    r"((mirror\.)?gcr\.io|us-docker\.pkg\.dev/cloud-tpu-images|[a-z0-9-]+-docker\.pkg\.dev/example-project|nvcr\.io/nvidia"
    r"|overlay\.invalid)/.+|auto"
)
"""Google's, with its cache of Docker Hub, the project's own, NVIDIA's, an overlay's, and those of Istio's injection."""
MANIFESTS = [
    path
    for folder in ("infra", "examples")
    for path in sorted((ROOT / folder).rglob("*.yaml"))
    if path.parent.name not in {"refused", "planned", "templates"}  # whose pods never run; which are of a chart
]
DOCKERFILES = [
    path for folder in ("relay", "examples", "infra") for path in sorted((ROOT / folder).rglob("Dockerfile"))
]


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def images(value: Any) -> list[str]:
    """Return the images that a manifest names."""
    if isinstance(value, list):
        return [image for each in value for image in images(each)]
    if not isinstance(value, dict):
        return []
    here = [value[key] for key in ("image", "newName") if isinstance(value.get(key), str)]
    return here + [image for each in value.values() for image in images(each)]


def test_all_builds_are_looked_at() -> None:
    assert len(BUILDS) == 7


@pytest.mark.parametrize("path", BUILDS, ids=named)
def test_steps_run_in_images_of_google_or_by_way_of_the_mirror(path: Path) -> None:
    build = yaml.safe_load(path.read_text())
    assert build["substitutions"]["_HUB"] == "mirror.gcr.io"
    assert [step["name"] for step in build["steps"] if not step["name"].startswith((HUB, *GOOGLES))] == []


@pytest.mark.parametrize("path", BUILDS, ids=named)
def test_images_of_the_hubs_library_are_named_in_full(path: Path) -> None:
    """Docker Hub itself fills in `library`; a mirror does not."""
    for step in yaml.safe_load(path.read_text())["steps"]:
        assert not step["name"].startswith(HUB) or step["name"].removeprefix(HUB).count("/") == 1


@pytest.mark.parametrize("path", BUILDS, ids=named)
def test_scripts_pull_and_run_images_by_way_of_the_mirror(path: Path) -> None:
    text = path.read_text()
    pulled = re.findall(r"docker pull (?:--platform \S+ )?(\S+)", text)
    assert [image for image in pulled if not image.startswith('"$_HUB/')] == []
    run = re.findall(r"docker run (?:--\S+ (?:\S+[:=]\S+ )?)*\\\n\s+(\S+)", text)
    assert [image for image in run if not image.startswith('"$_HUB/')] == []
    assert len(run) == text.count("docker run")


@pytest.mark.parametrize("path", DOCKERFILES, ids=named)
def test_what_is_built_is_built_on_a_base_that_the_build_names(path: Path) -> None:
    bases = set(re.findall(r"^FROM (\S+)", path.read_text(), re.MULTILINE))
    assert all(base == "${BASE}" or base.startswith("${HUB}/library/") for base in bases)
    if "${BASE}" not in bases:
        [build] = path.parents[1].glob("cloudbuild*.yaml")
        assert '--build-arg "HUB=$_HUB"' in build.read_text()


@pytest.mark.parametrize("path", MANIFESTS, ids=named)
def test_pods_run_images_of_registries_that_do_not_limit_pulls(path: Path) -> None:
    found = [image for document in yaml.safe_load_all(path.read_text()) for image in images(document)]
    assert [image for image in found if not (IN_CLUSTERS.fullmatch(image) or image.startswith("projects/"))] == []
