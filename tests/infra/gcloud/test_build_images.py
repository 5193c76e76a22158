"""The build of the examples' images: its scripts with the real gcloud, and a stand-in for Docker."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.infra.builds.test_build import header
from tests.infra.gcloud.conftest import Gcloud
from tests.infra.loopback import Request, Response, refusal, serving
from tests.infra.sources import IMAGES, IMAGES_STEPS, ROOT
from tests.infra.tools import Tools, tools

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

FOLDER = ROOT / "examples" / "training"
REPOSITORY = "projects/shop/locations/us-central2/repositories/gke-tpu-training"
REGISTRY = "us-central2-docker.pkg.dev/shop/gke-tpu-training"
GIVEN = IMAGES["substitutions"] | {"_REPOSITORY": REGISTRY, "_BUCKET": "gs://runs"}


def asked_for(gcloud: Gcloud, tags: dict[str, list[str]]) -> CompletedProcess[str]:
    """Run the first step where the repository has these tags, by image."""

    def answer(request: Request) -> Response:
        if request.path.endswith(REPOSITORY):
            return Response({"name": REPOSITORY, "format": "DOCKER"})
        _, _, path = request.path.partition(f"/{REPOSITORY}/packages")
        image = path.removeprefix("/").removesuffix("/tags")
        if path == "":
            return Response({"packages": [{"name": f"{REPOSITORY}/packages/{each}"} for each in tags]})
        if image not in tags:
            return refusal(404)
        return Response({"tags": [{"name": f"{REPOSITORY}/packages/{image}/tags/{tag}"} for tag in tags[image]]})

    with serving(answer) as url:
        return gcloud.run("bash", "-c", IMAGES_STEPS["unused"]["script"], url=url, environment=GIVEN)


@pytest.mark.parametrize("tags", [{}, {"trainer": ["0.9", "11.0"], "other": ["1.0"]}])
def test_tags_that_are_not_there_yet_are_used(gcloud: Gcloud, tags: dict[str, list[str]]) -> None:
    assert asked_for(gcloud, tags).returncode == 0


def test_a_tag_that_is_there_is_not_moved(gcloud: Gcloud) -> None:
    refused = asked_for(gcloud, {"trainer": ["0.9"], "uploader": ["0.9", "1.0"]})
    assert refused.returncode == 1
    assert refused.stderr.endswith(
        f"There is {REGISTRY}/uploader:1.0 already: choose another _TAG, or other _IMAGES.\n"
    )


@pytest.fixture
def docker(tmp_path: Path) -> Tools:
    return tools(tmp_path / "tools", "docker", "gcloud")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FOLDER, tmp_path / "source"))


def test_every_image_is_built_of_its_folder_and_pushed_by_the_tag(docker: Tools, folder: Path) -> None:
    assert docker.run(IMAGES_STEPS["images"]["script"], folder, **GIVEN).returncode == 0
    named = [f"{REGISTRY}/{image}:1.0" for image in ("trainer", "uploader", "maxtext")]
    assert docker.calls == [
        f"docker {each}"
        for name in named
        for each in (
            f"build --platform linux/amd64 --build-arg HUB=mirror.gcr.io --tag {name} {name[len(REGISTRY) + 1 : -4]}",
            f"push {name}",
        )
    ]


@pytest.mark.parametrize("what", ["docker build", "docker push"])
def test_whatever_fails_ends_the_step(docker: Tools, folder: Path, what: str) -> None:
    docker.fail(what)
    assert docker.run(IMAGES_STEPS["images"]["script"], folder, **GIVEN).returncode != 0
    assert docker.calls[-1].startswith(what)


def test_the_dataset_is_made_and_staged_where_the_manifests_look_for_it(docker: Tools, folder: Path) -> None:
    for step in ("dataset", "stage"):
        assert docker.run(IMAGES_STEPS[step]["script"], folder, **GIVEN).returncode == 0
    assert docker.calls == ["gcloud storage cp sums.txt gs://runs/datasets/sums.txt"]
    assert (folder / "sums.txt").read_text().splitlines()[1234] == "12+34=046"
    assert "/datasets/sums.txt\n" in (FOLDER / "data-parallel.yaml").read_text()


def test_the_command_in_the_header_sets_what_is_required() -> None:
    command = header("examples/training/cloudbuild.images.yaml").partition("gcloud builds submit")[2]
    required = {name for name, value in IMAGES["substitutions"].items() if not value}
    assert set(re.findall(r"(_[A-Z]+)=", command)) == required


@pytest.mark.parametrize("image", IMAGES["substitutions"]["_IMAGES"].split())
def test_an_image_has_a_release_as_its_base_and_no_root(image: str) -> None:
    dockerfile = (FOLDER / image / "Dockerfile").read_text()
    assert re.findall(r"^FROM \$\{HUB\}/library/python:(\d+\.\d+\.\d+)-slim-bookworm$", dockerfile, re.MULTILINE)
    (user,) = re.findall(r"^USER (\d+):\d+$", dockerfile, re.MULTILINE)
    assert int(user) > 0
    assert dockerfile.index("USER ") > dockerfile.rindex("RUN ")
    copied = [name for names in re.findall(r"^COPY (.+) \.$", dockerfile, re.MULTILINE) for name in names.split()]
    assert [name for name in copied if not (FOLDER / image / name).is_file()] == []
