"""The builds as gcloud sends them to Cloud Build: it refuses fields that Google's schema of a build does not have."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml

from tests.infra.gcloud.conftest import Gcloud
from tests.infra.loopback import Request, Response, refusal, serving
from tests.infra.sources import BUILD, DESTROY, DESTROY_TRAINING, DESTROY_TRITON, IMAGES, PROVISION_TRAINING, ROOT

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

LOGS = "gs://shop-tpu-build-logs"
"""The bucket that bootstrap makes for a project `shop`: tests/infra/builds/test_build_logs.py."""
PRINTED = "Step #1 - preflight: project shop: nothing is missing\nStep #18 - doctor: ok\n"
KINDS = ["deploy", "destroy", "images", "provision training", "destroy triton"]
FINAL = {"SUCCESS": 0, "FAILURE": 1}
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


def cloud_build(build: dict[str, Any], status: str) -> Callable[[Request], Response]:
    """Return a Cloud Build that ends each build at once, and a Cloud Storage with its log."""
    kept = {"id": "b-1", "projectId": "shop", "createTime": "2026-11-01T12:00:00Z", "status": status} | build

    def answer(request: Request) -> Response:
        if request.method == "POST":
            kept.update(request.body)
            return Response({"name": "operations/build/shop/1", "metadata": {"build": kept}})
        if request.path == "/v1/projects/shop/locations/global/builds/b-1":
            return Response(kept)
        if request.path == f"/{LOGS.removeprefix('gs://')}/log-b-1.txt":
            start = int(re.findall(r"bytes=(\d+)-", request.headers.get("range", "bytes=0-"))[0])
            rest = PRINTED.encode()[start:]
            return Response(rest) if rest else refusal(416)
        return refusal(404)

    return answer


@pytest.mark.parametrize("status", FINAL)
@pytest.mark.parametrize("build", [BUILD, DESTROY, IMAGES, PROVISION_TRAINING, DESTROY_TRITON], ids=KINDS)
def test_gcloud_prints_what_the_steps_print_and_in_the_end_the_id_of_a_build_that_failed(
    gcloud: Gcloud, tmp_path: Path, build: dict[str, Any], status: str
) -> None:
    config = tmp_path / "cloudbuild.yaml"
    config.write_text(yaml.safe_dump(build))
    command = ("gcloud", "builds", "submit", "--no-source", "--project", "shop", "--gcs-log-dir", LOGS)
    with serving(cloud_build({}, status)) as url:
        done = gcloud.run(*command, "--config", str(config), url=url, environment={"GCLOUD_LOGS_AT": url})
    assert done.returncode == FINAL[status], done.stderr
    for line in PRINTED.splitlines():
        assert done.stdout.count(line) == 1
    if status == "FAILURE":
        assert "b-1" in done.stderr.splitlines()[-1]


def test_gcloud_prints_the_log_of_a_build_that_has_ended(gcloud: Gcloud) -> None:
    with serving(cloud_build({"options": BUILD["options"], "logsBucket": LOGS}, "FAILURE")) as url:
        command = ("gcloud", "builds", "log", "--project", "shop", "b-1")
        done = gcloud.run(*command, url=url, environment={"GCLOUD_LOGS_AT": url})
    assert PRINTED.strip() in done.stdout


def test_gcloud_prints_nothing_of_a_build_whose_log_goes_to_cloud_logging_alone(gcloud: Gcloud, tmp_path: Path) -> None:
    config = tmp_path / "cloudbuild.yaml"
    config.write_text(yaml.safe_dump(BUILD | {"options": BUILD["options"] | {"logging": "CLOUD_LOGGING_ONLY"}}))
    command = ("gcloud", "builds", "submit", "--no-source", "--project", "shop", "--config", str(config))
    with serving(cloud_build({}, "SUCCESS")) as url:
        done = gcloud.run(*command, url=url, environment={"GCLOUD_LOGS_AT": url})
    assert (done.returncode, "preflight" in done.stdout) == (0, False)
