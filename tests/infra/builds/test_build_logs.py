"""Every build is submitted in one form, by which gcloud prints its log: it goes to a bucket that bootstrap makes."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.infra.sources import ROOT

BUILDS = [
    *sorted(ROOT.glob("cloudbuild*.yaml")),
    *sorted((ROOT / "infra").rglob("cloudbuild*.yaml")),
    *sorted((ROOT / "examples").rglob("cloudbuild*.yaml")),
]
PAGES = [
    path
    for folder in (ROOT, ROOT / "docs", ROOT / "infra", ROOT / "examples")
    for path in sorted(folder.glob("*.md") if folder == ROOT else folder.rglob("*.md"))
]
TEXTS = [*BUILDS, *PAGES]
COMMAND = re.compile(r"^(?:#   | {4})(gcloud builds submit (?!…)(?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)
LOGS = "gs://{project}-tpu-build-logs"
BOOTSTRAPS = [("infra/bootstrap.sh", "--dry-run"), ("infra/environments/bootstrap.sh", "--check")]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def submits(text: str) -> list[list[str]]:
    """Return the commands of a text that submit a build, as words."""
    return [shlex.split(re.sub(r"\\\n#?", "", found)) for found in COMMAND.findall(text)]


def test_all_builds_are_looked_at() -> None:
    assert {name(path) for path in BUILDS} == {
        "cloudbuild.yaml",
        "infra/cloudbuild.destroy.yaml",
        "infra/environments/training/cloudbuild.destroy.yaml",
        "infra/environments/training/cloudbuild.provision.yaml",
        "infra/environments/triton/cloudbuild.destroy.yaml",
        "infra/environments/triton/cloudbuild.provision.yaml",
        "examples/training/cloudbuild.images.yaml",
    }
    shown = "".join(" ".join(command) for path in PAGES for command in submits(path.read_text()))
    missing = [path for path in BUILDS[1:] if name(path) not in shown]
    assert missing == [], "no page shows how it is submitted"


@pytest.mark.parametrize("path", BUILDS, ids=name)
def test_a_build_lets_its_log_go_to_the_bucket_that_the_command_names(path: Path) -> None:
    build: dict[str, Any] = yaml.safe_load(path.read_text())
    assert build["options"]["logging"] == "LEGACY", "Cloud Build refuses a bucket beside CLOUD_LOGGING_ONLY"
    assert "logsBucket" not in build, "gcloud reads what is written there before Cloud Build replaces substitutions"


@pytest.mark.parametrize("path", TEXTS, ids=name)
def test_every_command_names_the_bucket_and_every_text_tells_how_to_see_a_log_again(path: Path) -> None:
    text = path.read_text()
    commands = submits(text)
    for command in commands:
        assert command[command.index("--gcs-log-dir") + 1] == LOGS.format(project="PROJECT"), command
    assert not commands or re.search(r"gcloud builds log (?:--project PROJECT )?BUILD\b", text)
    assert commands or path not in BUILDS


def test_no_text_shows_a_command_in_another_form() -> None:
    """In a sentence or in part it tells no options, so that nobody copies it."""
    for path in TEXTS:
        rest = COMMAND.sub("", path.read_text())
        assert not re.search(r"gcloud (?:beta )?builds submit --", rest), path


@pytest.mark.parametrize(("script", "dry"), BOOTSTRAPS)
def test_bootstrap_makes_the_bucket_for_logs_alone(script: str, dry: str, tmp_path: Path) -> None:
    (tmp_path / "gcloud").write_text("#!/bin/sh\nexit 1\n")  # nothing is there
    (tmp_path / "gcloud").chmod(0o755)
    which = ["training"] if "environments" in script else []
    command = ["bash", script, *which, "--project", "shop", "--region", "us-central2", dry]
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    [made] = [
        shlex.split(line)
        for line in ran.stdout.splitlines()
        if f"buckets create {LOGS.format(project='shop')} " in line
    ]
    assert made[made.index("--location") + 1] == "us-central2"
    assert {"--uniform-bucket-level-access", "--public-access-prevention"} <= {*made}
    assert made[made.index("--soft-delete-duration") + 1] == "0", "each growth of a log would be kept for a week"


def test_bootstrap_prints_both_commands_also_for_a_private_pool() -> None:
    pool = "projects/shop/locations/us-east5/workerPools/w"
    command = ["bash", "infra/bootstrap.sh", "--project", "shop", "--region", "us-central1", "--dry-run"]
    for options, place in (([], []), (["--worker-pool", pool], ["--region", "us-east5"])):
        ran = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, check=True)
        printed = [shlex.split(line) for line in ran.stdout.splitlines() if line.startswith("  gcloud builds")]
        [submit, log] = printed
        assert submit[submit.index("--gcs-log-dir") + 1] == LOGS.format(project="shop")
        assert log == ["gcloud", "builds", "log", "--project", "shop", *place, "BUILD"]
        assert not place or submit[submit.index("--region") + 1] == place[1]
