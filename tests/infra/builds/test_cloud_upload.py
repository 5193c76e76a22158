"""What `gcloud builds submit` uploads, as gcloud itself lists it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.infra.sources import ROOT

pytestmark = [
    pytest.mark.real,
    pytest.mark.emulators,
    pytest.mark.enable_socket,
    pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not installed"),
]

NOT_DEPLOYED = (".ci/", ".github/", ".gitignore", ".gcloudignore", ".pre-commit-config.yaml")


def uploaded(folder: Path, home: Path) -> set[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "CLOUDSDK_CONFIG": str(home)}
    command = ["setpriv", "--pdeathsig", "TERM", "gcloud", "meta", "list-files-for-upload", str(folder)]
    listed = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return set(listed.stdout.splitlines())


def test_everything_that_is_tracked_is_uploaded_but_what_no_build_reads(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    tracked = {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}
    for name in {*tracked, ".gcloudignore"}:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)

    assert uploaded(copy, tmp_path) == {name for name in tracked if not name.startswith(NOT_DEPLOYED)}


def test_what_is_made_in_a_working_tree_stays_there(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    made = {
        ".git/HEAD", ".venv/bin/python", ".local/log", "build/functions.zip", "relay/__pycache__/relay.pyc",
        "infra/terraform/.terraform/providers/google", "infra/terraform/.terraform.lock.hcl",
        "infra/terraform/provisioner.tfplan", "infra/terraform/terraform.tfstate",
    }  # fmt: skip
    wanted = {"infra/terraform/terraform.tfvars", "infra/clusters/shop/blue.yaml"}
    for name in made | wanted:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text("")
    for name in (".gitignore", ".gcloudignore"):
        shutil.copy(ROOT / name, copy)

    assert uploaded(copy, tmp_path) == wanted
