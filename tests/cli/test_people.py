"""`slices list`, `hold`, `release`, `pause` and `resume`, on a world in memory."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner

from tests.cli.stage import Stage, out_of_stock, serving
from tests.fakes.backend import Verb
from tpu_slices.domain.model.records import Phase
from tpu_slices_cli.app import main

# list


def test_slices_are_listed_with_their_phase_and_why(stage: Stage) -> None:
    serving(stage)
    out_of_stock(stage)
    gemma, llama = stage.said("list").splitlines()[1:]
    assert gemma.split()[:2] == ["demo", "research/gemma-slice-0"]
    assert "WAITING" in gemma
    assert "has no tpu-v5-lite-podslice 4x4 to give" in gemma
    assert ("READY" in llama, "4/4" in llama) == (True, True)


@pytest.mark.parametrize(
    ("arguments", "jobsets"),
    [
        ((), ["gemma", "llama"]),
        (("--phase", "waiting"), ["gemma"]),
        (("--phase", "WAITING", "--phase", "READY"), ["gemma", "llama"]),
        (("--jobset", "llama"), ["llama"]),
        (("--namespace", "nobody"), []),
        (("--cluster", "demo"), ["gemma", "llama"]),
    ],
)
def test_a_list_can_be_narrowed(stage: Stage, arguments: tuple[str, ...], jobsets: list[str]) -> None:
    serving(stage)
    out_of_stock(stage)
    listed = json.loads(stage.said("list", "-o", "json", *arguments))["slices"]
    assert [each["owner"]["name"] for each in listed] == jobsets


def test_what_is_gone_is_listed_when_asked_for(stage: Stage) -> None:
    jobset = serving(stage)
    stage.world.ends(jobset)
    stage.world.settle(minutes=10)
    assert json.loads(stage.said("list", "-o", "json"))["slices"] == []
    (gone,) = json.loads(stage.said("list", "--all", "-o", "json"))["slices"]
    assert gone["phase"] == "GONE"


class Patience:
    """Sleeps a few times while the world goes on, until Ctrl-C."""

    def __init__(self, *meanwhile: Callable[[], object]) -> None:
        self._meanwhile = list(meanwhile)

    def __call__(self, seconds: float) -> None:
        if not self._meanwhile:
            raise KeyboardInterrupt
        assert seconds == 5
        self._meanwhile.pop(0)()


def test_what_changes_is_shown_line_by_line_until_ctrl_c(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    jobset = serving(stage)

    def ends() -> None:
        stage.world.ends(jobset)
        stage.world.deliver()

    monkeypatch.setattr("tpu_slices_cli.listing.sleep", Patience(lambda: None, ends))
    result = stage.slices("list", "--watch")
    assert result.exit_code == 130
    ready, releasing = result.stdout.splitlines()
    assert "research/llama-slice-0 READY Ready: All 4 hosts" in ready
    assert "research/llama-slice-0 RELEASING DeletionStarted: Deleting: the JobSet completed." in releasing


# hold, release, resume


def test_what_is_held_stays_until_it_is_resumed(stage: Stage) -> None:
    jobset = serving(stage)
    record = stage.world.record(jobset)
    assert stage.said("hold", "research/llama", "--note", "ask Ada") == (
        f"{record.id} is held: `slices resume {record.id}` ends it.\n"
    )
    assert stage.said("hold", "research/llama") == f"{record.id} was held already.\n"
    stage.world.ends(jobset)
    stage.world.settle(minutes=5)
    assert stage.world.pools == [record.pool]
    assert stage.world.record(jobset).note == "ask Ada"
    assert stage.said("resume", record.id) == f"{record.id} goes on.\n"
    stage.world.settle(minutes=10)
    assert stage.world.pools == []


def test_what_is_released_is_deleted_though_its_jobset_wants_it(stage: Stage) -> None:
    record = stage.world.record(serving(stage))
    said = stage.said("release", record.pool, "--yes")
    assert said.splitlines() == [
        f"{record.id}: READY, research/llama-slice-0 runs on it",
        f"{record.id} is being released.",
    ]
    stage.world.deliver()
    assert stage.world.backend.ordered(Verb.DELETE) == [record.pool]


@pytest.mark.parametrize("verb", ["hold", "release"])
def test_about_what_is_gone_there_is_nothing_to_be_done(stage: Stage, verb: str) -> None:
    jobset = serving(stage)
    stage.world.ends(jobset)
    stage.world.settle(minutes=10)
    record = stage.world.record(jobset)
    assert stage.said(verb, record.id) == f"{record.id} is gone.\n"
    assert stage.world.record(jobset) == record


def test_nothing_is_released_without_somebody_who_says_so(stage: Stage) -> None:
    record = stage.world.record(serving(stage))
    result = stage.slices("release", record.id)
    assert (result.exit_code, "use --yes" in result.stderr) == (2, True)
    assert not stage.world.record(stage.world.workloads[record.owner.uid]).release_requested


# pause, resume


def test_a_paused_cluster_buys_nothing_and_tells_who_waits(stage: Stage) -> None:
    assert stage.said("pause", "--message", "upgrade until noon.").startswith("demo is paused")
    jobset = stage.world.jobset_appears()
    stage.world.settle(minutes=5)
    record = stage.world.record(jobset)
    assert (stage.world.pools, record.phase) == ([], Phase.BLOCKED)
    assert record.message.endswith("upgrade until noon.")
    assert stage.said("resume", "--cluster", "demo") == "demo goes on: 1 slices are looked at.\n"
    stage.world.settle(minutes=10, until=lambda: jobset.bound == {0})
    assert jobset.bound == {0}


def test_what_was_not_paused_is_said_so(stage: Stage) -> None:
    assert stage.said("resume") == "demo was not paused.\n"


# trouble


def test_when_the_records_are_out_of_reach_it_is_said_in_one_line(stage: Stage) -> None:
    stage.world.store.unavailable = True
    result = stage.slices("list")
    assert (result.exit_code, result.stderr) == (1, "the store is unavailable\n")


def test_without_a_project_it_says_how_to_name_one() -> None:
    result = CliRunner().invoke(main, ["list"], env={"GOOGLE_CLOUD_PROJECT": ""}, prog_name="slices")
    assert result.exit_code == 2
    assert "GOOGLE_CLOUD_PROJECT is not set" in result.stderr
    assert "--project" in result.stderr


@pytest.mark.parametrize(
    "command", [[], *([name] for name in main.commands)], ids=lambda words: " ".join(words) or "slices"
)
def test_every_command_teaches(command: list[str]) -> None:
    result = CliRunner().invoke(main, [*command, "--help"], prog_name="slices")
    assert result.exit_code == 0
    assert result.stdout.startswith("Usage: slices")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_learn_to_complete(shell: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell], prog_name="slices")
    assert result.exit_code == 0
    assert result.stdout.startswith("# ")
    assert "_SLICES_COMPLETE" in result.stdout
