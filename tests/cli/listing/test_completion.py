"""TAB completes the names that are on record, and is silent and quick where it cannot know them."""

from __future__ import annotations

import threading

import pytest
from click.shell_completion import BashComplete

from tests.cli.stage import Stage, StageSession, serving
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices_cli import completion
from tpu_slices_cli.app import main


def completed(stage: Stage, *words: str, incomplete: str = "") -> list[str]:
    """Return what a shell offers after these words."""
    shell = BashComplete(main, {"obj": StageSession(stage.world)}, "slices", "_SLICES_COMPLETE")
    return [item.value for item in shell.get_completions([*words], incomplete)]


@pytest.mark.parametrize("command", ["list", "explain", "hold", "release", "resume", "timeline"])
def test_workloads_are_completed_where_a_name_is_expected(stage: Stage, command: str) -> None:
    serving(stage)
    serving(stage, "gemma")
    assert completed(stage, command) == ["research/gemma", "research/llama"]
    assert completed(stage, command, incomplete="research/l") == ["research/llama"]


def test_slices_are_completed_once_their_names_begin(stage: Stage) -> None:
    record = stage.world.record(serving(stage))
    assert completed(stage, "explain", incomplete="tpu-") == [record.name]


def test_clusters_and_namespaces_are_completed_in_their_options(stage: Stage) -> None:
    serving(stage)
    for command in ("list", "explain", "doctor", "adopt", "pause"):
        assert completed(stage, command, "--cluster") == ["demo"]
    assert completed(stage, "retire") == ["demo"]
    assert completed(stage, "list", "-n", incomplete="r") == ["research"]


def test_commands_are_completed_with_what_they_do(stage: Stage) -> None:
    assert completed(stage, incomplete="ex") == ["explain"]


def test_what_cannot_be_read_completes_nothing_and_says_nothing(
    stage: Stage, capfd: pytest.CaptureFixture[str]
) -> None:
    serving(stage)
    stage.world.store.unavailable = True
    assert completed(stage, "explain") == []
    assert capfd.readouterr() == ("", "")


class Unanswered(StageSession):
    """A session whose project does not answer."""

    @property
    def deps(self) -> ReconcileDeps:
        threading.Event().wait()
        raise AssertionError


def test_what_does_not_answer_is_not_waited_for(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "PATIENCE_SECONDS", 0.01)
    shell = BashComplete(main, {"obj": Unanswered(stage.world)}, "slices", "_SLICES_COMPLETE")
    assert shell.get_completions(["explain"], "") == []
