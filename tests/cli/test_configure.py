"""`slices configure` and `slices adopt`: what is shown, confirmed and written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.builders import CLUSTER, leaders_wait, settings
from tests.cli.conftest import ROOT
from tests.cli.stage import FakeMessaging, StageSession
from tests.world import World
from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.cluster_settings import accepted_key, settings_key
from tpu_slices.wire.workloads import requests_of
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
    assert "clusters/research is configured." in result.stdout
    known = world.store.settings(RESEARCH)
    assert known is not None
    assert known.zone == "us-central2-b"


def test_a_day_in_a_row_of_the_catalogue_is_written_as_text_which_firestore_stores(world: World, file: Path) -> None:
    row = "{accelerator: tpu7, region: us-east5, kind: spot, usd_per_chip_hour: 3, read: 2026-11-30, source: contract}"
    file.write_text(f"{file.read_text()}catalogue:\n  prices:\n  - {row}\n")
    result = slices(world, "configure", file, "--yes")
    assert result.exit_code == 0, result.output
    written = world.store.document(settings_key(RESEARCH))
    assert written is not None
    assert written["catalogue"]["prices"][0]["read"] == "2026-11-30"
    assert "is up to date" in slices(world, "configure", file).stdout


def test_unchanged_settings_are_not_written_again(world: World, file: Path) -> None:
    slices(world, "configure", file, "--yes")
    revision = world.store.revision(settings_key(RESEARCH))
    assert slices(world, "configure", file, "--yes").stdout == "clusters/research is up to date.\n"
    assert world.store.revision(settings_key(RESEARCH)) == revision


def test_only_the_difference_is_shown_and_a_dry_run_writes_nothing(world: World, file: Path) -> None:
    slices(world, "configure", file, "--yes")
    rewrite(file, zone="us-central2-c")
    shown = slices(world, "configure", file, "--dry-run").stdout.splitlines()
    assert shown[-3:] == ["-zone: us-central2-b", "+zone: us-central2-c", "Nothing was changed."]
    known = world.store.settings(RESEARCH)
    assert known is not None
    assert known.zone == "us-central2-b"


def test_a_manual_edit_is_overwritten_only_with_the_option(world: World, file: Path) -> None:
    slices(world, "configure", file, "--yes")
    edited = {**(world.store.document(settings_key(RESEARCH)) or {}), "note": "careful, launch week"}
    world.store.put_document(settings_key(RESEARCH), edited)
    result = slices(world, "configure", file, "--yes")
    assert result.exit_code == 1
    assert "+note: careful, launch week" in result.stdout
    assert "was edited since" in result.stderr
    assert slices(world, "configure", file, "--yes", "--overwrite").exit_code == 0
    assert world.store.document(settings_key(RESEARCH)) == yaml.safe_load(file.read_text())


def test_a_document_without_an_accepted_copy_counts_as_a_manual_edit(world: World, file: Path) -> None:
    world.store.put_document(settings_key(RESEARCH), {"path": settings().path})
    assert world.store.document(accepted_key(RESEARCH)) is None
    assert slices(world, "configure", file, "--yes").exit_code == 1


def test_an_invalid_file_is_refused_by_field_and_nothing_is_written(world: World, file: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(yaml.safe_dump({"path": settings().path, "limits": {"operations": "many"}}))
    result = slices(world, "configure", file, wrong, "--yes")
    assert result.exit_code == 2
    assert result.stderr == f"{wrong}: limits.operations: Invalid value: 'many': must be a whole number from 1 to 100\n"
    assert world.store.document(settings_key(RESEARCH)) is None


def test_a_zone_that_the_cluster_cannot_have_is_refused_by_configure_plan_and_the_functions_alike(
    world: World, file: Path
) -> None:
    rewrite(file, zone="europe-west4-b")
    result = slices(world, "configure", file, "--yes")
    where = "where this cluster can have no slices: it can have them in any zone of us-central2"
    assert (result.exit_code, result.stderr) == (
        2,
        f'{file}: zone: the cluster\'s settings have "europe-west4-b", {where}\n',
    )
    planned = slices(world, "plan", "-f", ROOT / "examples" / "v5e.yaml", "--cluster", file)
    assert (planned.exit_code, planned.stderr) == (result.exit_code, result.stderr)
    world.store.put_document(settings_key(RESEARCH), yaml.safe_load(file.read_text()))
    with pytest.raises(Permanent, match=f'zone: the cluster\'s settings have "europe-west4-b", {where}'):
        world.store.settings(RESEARCH)


def test_a_pod_that_selects_a_zone_that_the_cluster_cannot_have_is_refused_by_plan_and_the_functions_alike(
    world: World, file: Path, tmp_path: Path
) -> None:
    slices(world, "configure", file, "--yes")
    jobset = yaml.safe_load((ROOT / "examples" / "v5e.yaml").read_text())
    jobset["spec"]["replicatedJobs"][0]["name"] = "slice"
    pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pod["nodeSelector"]["topology.kubernetes.io/zone"] = "europe-west4-b"
    manifest = tmp_path / "jobset.yaml"
    manifest.write_text(yaml.safe_dump(jobset))
    planned = slices(world, "plan", "-f", manifest, "--cluster", file, "-o", "json")
    (refused,) = [each["refused"] for each in json.loads(planned.stdout)["slices"]]
    assert planned.exit_code == 3
    world.publish(leaders_wait(requests=requests_of(jobset)))
    world.deliver()
    (record,) = world.records.values()
    assert (record.phase, record.reason, record.message) == (Phase.REFUSED, refused["reason"], refused["message"])
    assert record.message == (
        'replicatedJob slice: topology.kubernetes.io/zone: the pod selects "europe-west4-b", where this cluster can '
        "have no slices: it can have them in any zone of us-central2."
    )
    assert world.backend.pools == {}


def test_nothing_is_written_without_confirmation(world: World, file: Path) -> None:
    result = slices(world, "configure", file)
    assert (result.exit_code, "use --yes" in result.stderr) == (2, True)
    assert world.store.document(settings_key(RESEARCH)) is None


def deployed(missing: tuple[str, ...] = (), trouble: Exception | None = None) -> FakeMessaging:
    made = FakeMessaging()
    made.missed[RESEARCH], made.trouble = missing, trouble
    return made


def test_a_cluster_whose_topics_are_missing_is_not_configured_and_is_told_what_to_do(world: World, file: Path) -> None:
    session = StageSession(world, deployed=deployed(("topic requests-research",)))
    result = CliRunner().invoke(main, ["configure", str(file), "--yes"], obj=session)
    assert result.exit_code == 3
    assert "research is not served yet, and nothing was written. Missing: topic requests-research." in result.stderr
    assert "Write infra/clusters/PROJECT/research.yaml, if it is not there, and submit the build" in result.stderr
    assert world.store.document(settings_key(RESEARCH)) is None


def test_whoever_may_not_look_at_topics_configures_all_the_same(world: World, file: Path) -> None:
    session = StageSession(world, deployed=deployed(trouble=Permanent("Pub/Sub: 403 no")))
    result = CliRunner().invoke(main, ["configure", str(file), "--yes"], obj=session)
    assert (result.exit_code, "is not known: Pub/Sub: 403 no" in result.stderr) == (0, True)
    assert world.store.settings(RESEARCH) is not None


@pytest.mark.parametrize("option", ["--dry-run", "--yes"])
def test_what_writes_nothing_or_is_on_the_local_stack_needs_no_topics(
    world: World, file: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    if option == "--yes":
        monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", "127.0.0.1:1")
    session = StageSession(world, deployed=deployed(("topic requests-research",)))
    assert CliRunner().invoke(main, ["configure", str(file), option], obj=session).exit_code == 0


@pytest.mark.parametrize("path", sorted((ROOT / "infra" / "clusters").glob("*/*.yaml")), ids=lambda path: path.stem)
def test_every_settings_file_of_the_repository_can_be_configured(world: World, path: Path) -> None:
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


def test_legacy_pools_of_live_jobsets_are_adopted(world: World, tmp_path: Path) -> None:
    listed = a_jobset_file(world, tmp_path)
    shown = slices(world, "adopt", "-f", listed, "--dry-run")
    assert "1 of 2 node pools can be adopted. Nothing was changed." in shown.stdout
    assert "there is no JobSet research/old: delete the pool" in shown.stdout
    assert world.records == {}
    result = slices(world, "adopt", "-f", listed, "--yes")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (
        0,
        "1 of 2 node pools adopted; `slices list` shows them.",
    )
    (record,) = world.records.values()
    assert (record.pool, record.attempt, record.cluster) == ("llama-4f2a1", 0, CLUSTER)


def test_jobsets_without_a_uid_are_refused(world: World) -> None:
    result = slices(world, "adopt", "-f", ROOT / "examples" / "v5e.yaml", "--yes")
    assert result.exit_code == 2
    assert "kubectl get jobsets -A -o json" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("path: " + "[" * 5000, id="nested too deeply"),
        pytest.param("path: " + "9" * 5000, id="a number of thousands of digits"),
    ],
)
def test_a_file_that_no_parser_takes_is_an_error_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "research.yaml"
    path.write_text(text)
    result = slices(World(), "configure", path)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert result.stderr.startswith(f"{path}: cannot be parsed: ")
