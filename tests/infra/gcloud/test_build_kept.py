"""What a build keeps beside Terraform's state, and what a later one takes from there, by the real gcloud."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.infra.builds.test_build_scripts import SUBSTITUTIONS
from tests.infra.gcloud.conftest import Gcloud
from tests.infra.gcloud.objects import Objects
from tests.infra.loopback import serving
from tests.infra.sources import STEPS

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

KEPT = "tpu-slice-provisioner"
LOCK = f"{KEPT}/terraform.lock.hcl"
WORKSPACE = {
    "pyproject.toml": "the sources",
    "infra/terraform/.terraform.lock.hcl": "checksums",
    "infra/terraform/provisioner.tfplan": "the plan",
    "build/functions/version.txt": "1.2.3\n",
    "build/functions.zip": "the functions",
    "build/plan.txt": "it adds 5",
}
LEFT_OUT = {
    ".venv/bin/python": "an interpreter",
    ".mypy_cache/x": "types",
    "infra/terraform/.terraform/providers/google": "a provider",
}


class Bed:
    """A bucket of the state, a workspace, and steps that are run in it."""

    def __init__(self, gcloud: Gcloud, objects: Objects, folder: Path) -> None:
        self._gcloud, self._objects, self.folder = gcloud, objects, folder

    @property
    def kept(self) -> dict[str, bytes]:
        return self._objects.buckets["state"]

    def run(self, step: str, **changes: str) -> CompletedProcess[str]:
        environment = {**SUBSTITUTIONS, **changes}
        script = STEPS[step]["script"]
        return self._gcloud.run(
            "bash", "-c", script, url=self._objects.url, environment=environment, folder=self.folder
        )

    def files(self) -> dict[str, str]:
        paths = [path for path in self.folder.rglob("*") if path.is_file()]
        return {path.relative_to(self.folder).as_posix(): path.read_text() for path in paths}

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text)


@pytest.fixture
def bed(gcloud: Gcloud, tmp_path: Path) -> Iterator[Bed]:
    objects = Objects({"state": {}, "elsewhere": {"f.zip": b"given"}})
    (tmp_path / "infra" / "terraform").mkdir(parents=True)
    with serving(objects.answer) as objects.url:
        yield Bed(gcloud, objects, tmp_path)


def test_a_plan_that_is_not_applied_can_be_taken_up_by_a_later_build_as_it_was(bed: Bed) -> None:
    bed.write({**WORKSPACE, **LEFT_OUT})
    kept = bed.run("keep", _APPLY="no")
    assert kept.returncode == 0, kept.stderr
    assert "_PLAN=b-1" in kept.stdout
    assert sorted(bed.kept) == [
        f"{KEPT}/functions/1.2.3/b-1.zip",
        f"{KEPT}/plans/b-1/plan.txt",
        f"{KEPT}/plans/b-1/workspace.tgz",
        LOCK,
    ]

    bed.write({"pyproject.toml": "other sources", "somebody.txt": "else"})
    other = bed.run("restore", _PLAN="b-1", _REGION="us-east5")
    assert other.returncode == 1
    assert "The plan of b-1 is for _REGION and _FIRESTORE_LOCATION us-central1 nam5." in other.stderr
    restored = bed.run("restore", _PLAN="b-1")
    assert restored.returncode == 0, restored.stderr
    assert bed.files() == {**WORKSPACE, "build/substitutions": "us-central1 nam5\n"}


def test_a_plan_that_is_applied_is_kept_as_text_only(bed: Bed) -> None:
    bed.write(WORKSPACE)
    kept = bed.run("keep")
    assert kept.returncode == 0, kept.stderr
    assert bed.kept[f"{KEPT}/plans/b-1/plan.txt"] == b"it adds 5"
    assert bed.kept[f"{KEPT}/functions/1.2.3/b-1.zip"] == b"the functions"
    assert f"{KEPT}/plans/b-1/workspace.tgz" not in bed.kept


def test_a_plan_that_nobody_kept_leaves_the_sources_alone(bed: Bed) -> None:
    bed.write(WORKSPACE)
    assert bed.run("restore", _PLAN="b-0").returncode != 0
    assert bed.files() == WORKSPACE


def test_the_first_build_has_no_checksums_and_each_later_one_those_of_the_last(bed: Bed) -> None:
    first = bed.run("fetch")
    assert first.returncode == 0, first.stderr
    assert bed.files() == {}

    bed.kept[LOCK] = b"checksums"
    later = bed.run("fetch", _SOURCE="gs://elsewhere/f.zip")
    assert later.returncode == 0, later.stderr
    assert bed.files() == {"infra/terraform/.terraform.lock.hcl": "checksums", "build/source.zip": "given"}


def test_a_source_that_is_not_there_ends_the_build(bed: Bed) -> None:
    assert bed.run("fetch", _SOURCE="gs://elsewhere/none.zip").returncode != 0
