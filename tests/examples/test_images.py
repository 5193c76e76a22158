"""What the examples run can be run: their images have it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from infra.local.plan import REPOSITORY
from tests.infra.sources import IMAGES, pins

FOLDER = REPOSITORY / "examples"
EXAMPLES = sorted(FOLDER.rglob("*.yaml"))
JAX = "us-docker.pkg.dev/cloud-tpu-images/jax-ai-image/tpu:jax"
"""Google's image of JAX for TPUs, which its TPU recipes use; never pulled here: the local stack pulls none."""
TRAINING = FOLDER / "training"
SUBSTITUTIONS = IMAGES["substitutions"]
BUILT = "us-central2-docker.pkg.dev/example-project/gke-tpu-training/"
"""Where examples/training/cloudbuild.images.yaml puts the images that it builds."""


def containers_in(value: Any) -> Iterator[dict[str, Any]]:
    """Yield each container, however deep it stands."""
    if isinstance(value, dict):
        yield from (each for each in value.get("containers") or () if isinstance(each, dict))
        value = [*value.values()]
    if isinstance(value, list):
        for each in value:
            yield from containers_in(each)


CONTAINERS = {
    f"{example.relative_to(FOLDER)} {number}": container
    for example in EXAMPLES
    for number, container in enumerate(containers_in([*yaml.safe_load_all(example.read_text())]))
}


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
def test_who_imports_jax_has_an_image_with_jax_and_one_that_does_not_change(container: dict[str, Any]) -> None:
    image = container["image"]
    assert image.startswith(JAX) == ("import jax" in " ".join(container["command"]))
    _, tag = image.split(":")
    assert tag[-1].isdigit()


def test_every_image_of_the_projects_own_is_built_with_the_program_that_it_runs() -> None:
    own = [each for each in CONTAINERS.values() if each["image"].startswith(BUILT)]
    run = {each["image"].removeprefix(BUILT): each["command"][:3] for each in own}
    assert run == {
        "trainer:1.0": ["python", "train.py"],
        "uploader:1.0": ["tb-gcp-uploader"],
        "maxtext:1.0": ["python", "-m", "maxtext.trainers.pre_train.train"],
    }
    assert {f"{name}:{SUBSTITUTIONS['_TAG']}" for name in SUBSTITUTIONS["_IMAGES"].split()} == run.keys()
    assert {"jax", "libtpu"} <= pins(TRAINING / "trainer" / "image.txt").keys()
    assert "google-cloud-aiplatform" in pins(TRAINING / "uploader" / "requirements.txt")
    assert '"maxtext[tpu]==' in (TRAINING / "maxtext" / "Dockerfile").read_text()
