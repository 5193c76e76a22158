"""`slices configure` and `slices adopt`: what is written down, and for whom."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.builders import CLUSTER, settings
from tests.cli.conftest import ROOT
from tests.cli.stage import StageSession
from tests.world import World
from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.wire.cluster_settings import accepted_key, settings_key
from tpu_slices_cli.app import main

RESEARCH = ClusterId("research")


@pytest.fixture
def world() -> World:
    return World()


def slices(world: World, *arguments: object) -> Result:
    texts = [str(argument) for argument in arguments]
    return CliRunner().invoke(main, texts, obj=StageSession(world), prog_name="slices")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "research.yaml"
    path.write_text(yaml.safe_dump({"path": settings().path, "zone": "us-central2-b"}))
    return path


def rewrite(file: Path, **changes: Any) -> None:
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), **changes}))


def test_settings_are_checked_shown_and_written(world: World, file: Path) -> None:
    result = slices(world, "configure", file, "--yes")
    assert result.exit_code == 0, result.output
    assert "+zone: us-central2-b" in result.stdout
    assert "clusters/research is written." in result.stdout
    known = world.store.settings(RESEARCH)
    assert known is not None
    assert known.zone == "us-central2-b"


def test_what_is_so_already_is_not_written_again(world: World, file: Path) -> None:
    slices(world, "configure", file, "--yes")
    revision = world.store.revision(settings_key(RESEARCH))
    assert slices(world, "configure", file, "--yes").stdout == "clusters/research is so already.\n"
    assert world.store.revision(settings_key(RESEARCH)) == revision


def test_only_what_differs_is_shown(world: World, file: Path) -> None:
    slices(world, "configure", file, "--yes")
    rewrite(file, zone="us-central2-c")
    shown = slices(world, "configure", file, "--dry-run").stdout.splitlines()
    assert shown[-3:] == ["-zone: us-central2-b", "+zone: us-central2-c", "Nothing was written."]
    known = world.store.settings(RESEARCH)
    assert known is not None
    assert known.zone == "us-central2-b"


def test_what_somebody_edited_since_is_not_overwritten(world: World, file: Path) -> None:
    slices(world, "configure", file, "--yes")
    edited = {**(world.store.document(settings_key(RESEARCH)) or {}), "note": "careful, launch week"}
    world.store.put_document(settings_key(RESEARCH), edited)
    result = slices(world, "configure", file, "--yes")
    assert result.exit_code == 1
    assert "+note: careful, launch week" in result.stdout
    assert "was edited since" in result.stderr
    assert slices(world, "configure", file, "--yes", "--overwrite").exit_code == 0
    assert world.store.document(settings_key(RESEARCH)) == yaml.safe_load(file.read_text())


def test_a_document_that_was_written_by_hand_is_somebodys_edit(world: World, file: Path) -> None:
    world.store.put_document(settings_key(RESEARCH), {"path": settings().path})
    assert world.store.document(accepted_key(RESEARCH)) is None
    assert slices(world, "configure", file, "--yes").exit_code == 1


def test_a_file_that_is_wrong_is_told_by_field_and_nothing_is_written(world: World, file: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(yaml.safe_dump({"path": settings().path, "limits": {"operations": "many"}}))
    result = slices(world, "configure", file, wrong, "--yes")
    assert result.exit_code == 2
    assert result.stderr == f"{wrong}: limits.operations cannot be 'many': write a whole number from 1 to 100\n"
    assert world.store.document(settings_key(RESEARCH)) is None


def test_without_somebody_who_says_so_nothing_is_written(world: World, file: Path) -> None:
    result = slices(world, "configure", file)
    assert (result.exit_code, "use --yes" in result.stderr) == (2, True)
    assert world.store.document(settings_key(RESEARCH)) is None


@pytest.mark.parametrize("path", sorted((ROOT / "infra" / "clusters").glob("*/*.yaml")), ids=lambda path: path.stem)
def test_every_file_of_the_repository_can_be_configured(world: World, path: Path) -> None:
    assert slices(world, "configure", path, "--yes", "--overwrite").exit_code == 0


# adopt


def a_jobset_file(world: World, tmp_path: Path) -> Path:
    jobset = world.jobset_appears()
    jobset.bound.add(0)
    made = LegacyPool(name="llama-4f2a1", namespace="research", jobset="llama", job="llama-slice-0")
    world.backend.hold_legacy_pool(made)
    world.backend.hold_legacy_pool(LegacyPool(name="old-11111", namespace="research", jobset="old", job="old-slice-0"))
    manifest = yaml.safe_load((ROOT / "examples" / "v5e.yaml").read_text())
    manifest["metadata"] = {
        "name": "llama",
        "namespace": "research",
        "uid": jobset.ref.owner.uid,
        "resourceVersion": "7",
    }
    manifest["spec"]["replicatedJobs"][0]["name"] = "slice"
    path = tmp_path / "jobsets.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [manifest]}))
    return path


def test_pools_whose_jobsets_live_are_taken_over(world: World, tmp_path: Path) -> None:
    listed = a_jobset_file(world, tmp_path)
    shown = slices(world, "adopt", "-f", listed, "--dry-run")
    assert "1 to take over; nothing was changed." in shown.stdout
    assert "there is no JobSet research/old: delete the pool" in shown.stdout
    assert world.records == {}
    result = slices(world, "adopt", "-f", listed, "--yes")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "1 taken over: see them with `slices list`.")
    (record,) = world.records.values()
    assert (record.pool, record.attempt, record.cluster) == ("llama-4f2a1", 0, CLUSTER)


def test_jobsets_without_a_uid_are_no_list_of_a_cluster(world: World) -> None:
    result = slices(world, "adopt", "-f", ROOT / "examples" / "v5e.yaml", "--yes")
    assert result.exit_code == 2
    assert "kubectl get jobsets -A -o json" in result.stderr
