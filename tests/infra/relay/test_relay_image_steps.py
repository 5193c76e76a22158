"""The steps of the build that make the relay's image and its bill of materials, run with stand-ins for their tools."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.infra.builds.test_build_scripts import SUBSTITUTIONS
from tests.infra.relay.manifests import DIGEST, IMAGE
from tests.infra.sources import ROOT, STEPS
from tests.infra.tools import Tools, tools

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

REPOSITORY = IMAGE.partition("@")[0]
TAG = f"{REPOSITORY}:b-1"
BASE = "python:3.11.14-slim-bookworm"
PULLED = f"mirror.example/library/{BASE}"
BASE_DIGEST = f"sha256:{'ab' * 32}"
BILL = '{"spdxVersion": "SPDX-2.3"}'


@pytest.fixture
def docker(tmp_path: Path) -> Tools:
    """A Docker whose images have these digests; the base came by another registry's mirror, too."""
    made = tools(tmp_path / "tools", "docker", "gcloud")
    made.answer(f".RepoDigests 0}}}} {PULLED}", f"mirror.example/library/python@{BASE_DIGEST}")
    made.answer(f"{{{{println .}}}}{{{{end}}}} {TAG}", f"mirror.example/relay@{BASE_DIGEST}\\n{IMAGE}\\n")
    made.answer("docker run", BILL)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    (source / "relay" / "image").mkdir(parents=True)
    shutil.copy(ROOT / "relay" / "image" / "Dockerfile", source / "relay" / "image")
    return source


def run(step: str, made: Tools, folder: Path, image: str = "") -> CompletedProcess[str]:
    environment = SUBSTITUTIONS | {"_IMAGE": image, "_HUB": "mirror.example"}
    return made.run(STEPS[step]["script"], folder, **environment)


def call(made: Tools, beginning: str) -> str:
    [found] = [each for each in made.calls if each.startswith(beginning)]
    return found


def test_the_base_is_resolved_to_a_digest_which_is_built_on_and_recorded(docker: Tools, folder: Path) -> None:
    built = run("image", docker, folder)

    assert built.returncode == 0, built.stderr
    build = call(docker, "docker build")
    assert f"--build-arg BASE=mirror.example/library/python@{BASE_DIGEST} " in build
    assert f"org.opencontainers.image.base.digest={BASE_DIGEST} " in build
    assert f"org.opencontainers.image.base.name=docker.io/library/{BASE} " in build
    assert docker.calls.index(f"docker pull --platform linux/amd64 {PULLED}") < docker.calls.index(build)


def test_what_was_pushed_is_known_by_its_digest(docker: Tools, folder: Path) -> None:
    run("image", docker, folder)

    assert f"docker push {TAG}" in docker.calls
    assert f"--tag {TAG} " in call(docker, "docker build")
    assert (folder / "build" / "relay-image").read_text() == f"{IMAGE}\n"


def test_the_bill_of_materials_is_made_of_that_image_and_kept_with_it(docker: Tools, folder: Path) -> None:
    run("image", docker, folder)
    assert (folder / "build" / "relay.spdx.json").read_text() == BILL
    assert re.search(rf" mirror\.example/anchore/syft:v\d+\.\d+\.\d+ scan docker:{TAG} ", call(docker, "docker run"))

    attached = run("bill-of-materials", docker, folder)
    assert attached.returncode == 0, attached.stderr
    assert call(docker, "gcloud") == (
        "gcloud artifacts attachments create relay-spdx-b-1 --project shop --location us-central1 "
        f"--repository tpu-slice-provisioner --target {IMAGE} "
        "--attachment-type application/spdx+json --files build/relay.spdx.json"
    )


def test_a_given_image_is_deployed_as_it_is_whatever_an_earlier_build_left(docker: Tools, folder: Path) -> None:
    given = f"registry.example/mirror/relay@{DIGEST}"
    (folder / "build").mkdir()
    (folder / "build" / "relay.spdx.json").write_text("of another")

    assert run("image", docker, folder, given).returncode == 0
    assert run("bill-of-materials", docker, folder, given).returncode == 0
    assert (folder / "build" / "relay-image").read_text() == f"{given}\n"
    assert docker.calls == []


@pytest.mark.parametrize("what", ["docker pull", "docker build", "docker push", "docker run", "{{println .}}"])
def test_whatever_fails_ends_the_step(tmp_path: Path, folder: Path, what: str) -> None:
    failing = tools(tmp_path / "failing", "docker")
    failing.fail(what)
    failing.answer("{{println .}}", f"{IMAGE}\\n")

    assert run("image", failing, folder).returncode != 0


def test_an_image_without_a_digest_in_its_repository_ends_the_step(tmp_path: Path, folder: Path) -> None:
    unpushed = tools(tmp_path / "unpushed", "docker")
    unpushed.answer("{{println .}}", f"mirror.example/relay@{DIGEST}\\n")

    assert run("image", unpushed, folder).returncode != 0
