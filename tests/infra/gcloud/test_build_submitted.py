"""The builds as gcloud sends them to Cloud Build: it refuses fields that Google's schema of a build does not have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml

from tests.infra.gcloud.conftest import Gcloud
from tests.infra.loopback import Request, Response, serving
from tests.infra.sources import BUILD, DESTROY, DESTROY_TRAINING, IMAGES, PROVISION_TRAINING, ROOT

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

GIVEN = {"_STATE_BUCKET": "state", "_REGION": "us-central1", "_FIRESTORE_LOCATION": "nam5"}


def submitted(
    gcloud: Gcloud, config: Path, substitutions: Mapping[str, str]
) -> tuple[CompletedProcess[str], list[Any]]:
    """Submit a build; return what gcloud said, and what it sent."""
    sent: list[Any] = []

    def answer(request: Request) -> Response:
        if request.method == "POST":
            sent.append(request.body)
        build = {"id": "b-1", "status": "QUEUED", "projectId": "shop", "createTime": "2026-11-01T12:00:00Z"}
        return Response({"name": "operations/build/shop/1", "metadata": {"build": build}})

    given = ",".join(f"{name}={value}" for name, value in substitutions.items())
    command = ("gcloud", "builds", "submit", "--no-source", "--async", "--project", "shop", "--config", str(config))
    with serving(answer) as url:
        return gcloud.run(*command, f"--substitutions={given}", url=url, environment={}), sent


@pytest.mark.parametrize(
    ("file", "build", "given"),
    [
        ("cloudbuild.yaml", BUILD, GIVEN),
        ("infra/cloudbuild.destroy.yaml", DESTROY, GIVEN),
        ("examples/training/cloudbuild.images.yaml", IMAGES, {"_REPOSITORY": "r", "_BUCKET": "gs://b"}),
        ("infra/environments/training/cloudbuild.provision.yaml", PROVISION_TRAINING, {"_TF_STATE_BUCKET": "state"}),
        ("infra/environments/training/cloudbuild.destroy.yaml", DESTROY_TRAINING, {"_TF_STATE_BUCKET": "state"}),
    ],
    ids=["deploy", "destroy", "images", "provision training", "destroy training"],
)
def test_every_field_is_one_of_googles_and_arrives_as_it_is_written(
    gcloud: Gcloud, file: str, build: dict[str, Any], given: dict[str, str]
) -> None:
    done, sent = submitted(gcloud, ROOT / file, given)
    assert done.returncode == 0, done.stderr
    [body] = sent
    scripts = {step["id"]: step["script"] for step in body["steps"]}
    assert scripts == {step["id"]: step["script"] for step in build["steps"]}
    assert body["substitutions"] == build["substitutions"] | given
    assert body["options"] == build["options"]
    assert (body["timeout"], body.get("serviceAccount")) == (build["timeout"], build.get("serviceAccount"))


@pytest.mark.parametrize("change", [{"step": []}, {"options": {"automapSubstitution": True}}])
def test_a_field_that_google_does_not_have_is_refused(gcloud: Gcloud, tmp_path: Path, change: dict[str, Any]) -> None:
    config = tmp_path / "cloudbuild.yaml"
    config.write_text(yaml.safe_dump(BUILD | change))
    done, sent = submitted(gcloud, config, GIVEN)
    assert done.returncode != 0
    assert re.search(r"unused|unrecognized|Unrecognized|unknown", done.stderr), done.stderr
    assert sent == []
