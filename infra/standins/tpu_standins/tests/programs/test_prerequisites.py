import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tpu_standins.prerequisites import Prerequisite, PrerequisitesMissing, find, main, missing, require

EVERYTHING: Mapping[Prerequisite, Path | None] = {each: Path("/somewhere") / each.name for each in Prerequisite}


def a_program(folder: Path, name: str, script: str = "exit 1") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def an_sdk(root: Path) -> Path:
    for jar in (
        "pubsub-emulator/lib/cloud-pubsub-emulator-1.2.3-all.jar",
        "cloud-firestore-emulator/cloud-firestore-emulator.jar",
    ):
        file = root / "platform" / jar
        file.parent.mkdir(parents=True)
        file.touch()
    return root


def test_nothing_is_missing_when_everything_is_found() -> None:
    assert missing(EVERYTHING) == []
    assert require(EVERYTHING).pubsub_jar == Path("/somewhere/PUBSUB_JAR")


@pytest.mark.parametrize("one", Prerequisite, ids=lambda each: each.name.lower())
def test_what_is_missing_is_named_with_its_remedy(one: Prerequisite) -> None:
    with pytest.raises(PrerequisitesMissing) as problem:
        require({**EVERYTHING, one: None})
    name, remedy = one.value
    assert str(problem.value).splitlines()[1:] == [f"  {name}: {remedy}"]


def test_all_that_is_missing_is_named_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CLOUDSDK_ROOT_DIR", raising=False)
    assert main() == 2
    said = capsys.readouterr().err
    assert all(remedy in said for _, remedy in (each.value for each in Prerequisite))


def test_the_emulators_are_found_whatever_their_version(tmp_path: Path) -> None:
    sdk = an_sdk(tmp_path / "sdk")
    found = find({"PATH": "/nowhere", "CLOUDSDK_ROOT_DIR": str(sdk)})
    assert found[Prerequisite.PUBSUB_JAR] == (sdk / "platform/pubsub-emulator/lib/cloud-pubsub-emulator-1.2.3-all.jar")
    assert found[Prerequisite.FIRESTORE_JAR] == (sdk / "platform/cloud-firestore-emulator/cloud-firestore-emulator.jar")


def test_of_two_versions_the_one_installed_last_is_taken(tmp_path: Path) -> None:
    sdk = an_sdk(tmp_path / "sdk")
    older = sdk / "platform/pubsub-emulator/lib/cloud-pubsub-emulator-9.0.0-all.jar"
    older.touch()
    os.utime(older, (0, 0))
    found = find({"PATH": "/nowhere", "CLOUDSDK_ROOT_DIR": str(sdk)})
    assert found[Prerequisite.PUBSUB_JAR] != older


def test_the_sdk_is_found_behind_a_link_to_gcloud(tmp_path: Path) -> None:
    sdk = an_sdk(tmp_path / "sdk")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gcloud").symlink_to(a_program(sdk / "bin", "gcloud"))
    assert find({"PATH": str(tmp_path / "bin")})[Prerequisite.GCLOUD] == sdk


def test_gcloud_is_asked_when_its_place_does_not_tell(tmp_path: Path) -> None:
    sdk = an_sdk(tmp_path / "sdk")
    a_program(tmp_path / "bin", "gcloud", script=f"[ $1 = info ] && echo {sdk}")
    assert find({"PATH": str(tmp_path / "bin")})[Prerequisite.GCLOUD] == sdk


def test_a_gcloud_that_cannot_tell_is_no_sdk(tmp_path: Path) -> None:
    a_program(tmp_path / "bin", "gcloud")
    found = find({"PATH": str(tmp_path / "bin")})
    assert found[Prerequisite.GCLOUD] is None
    assert found[Prerequisite.PUBSUB_JAR] is None
