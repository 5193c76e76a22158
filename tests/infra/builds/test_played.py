"""The programs whose parts a test plays, called by a shell."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.infra.builds.played import Call, Reply, Stage, played

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


def run(stage: Stage, script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{stage.folder}:{os.environ['PATH']}"}
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_a_part_remembers_what_it_was_told_before(tmp_path: Path) -> None:
    told: list[str] = []

    def remembers(call: Call) -> Reply:
        told.append(call.words[0])
        return Reply(out=f"{' then '.join(told)} in {call.folder.name}\n")

    with played(tmp_path / "tools", {"parrot": remembers}) as stage:
        done = run(stage, "parrot one && parrot 'two  words' && cd tools && parrot x", tmp_path)

    assert done.stdout.splitlines()[1] == f"one then two  words in {tmp_path.name}"
    assert done.stdout.splitlines()[2] == "one then two  words then x in tools"
    assert stage.called("parrot") == ["parrot one", "parrot two  words", "parrot x"]


def test_what_a_part_does_not_know_fails_and_is_said(tmp_path: Path) -> None:
    def knows_nothing(call: Call) -> Reply:
        raise KeyError(call.words[0])

    with played(tmp_path / "tools", {"parrot": knows_nothing, "says": lambda _: Reply("out", 3, "error")}) as stage:
        done = run(stage, "parrot sing || says", tmp_path)

    assert (done.returncode, done.stdout) == (3, "out")
    assert done.stderr == "parrot sing: KeyError('sing')\nerror"
