"""`slices list`, `hold`, `release`, `pause` and `resume`, on a world in memory."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner

from tests.builders import CLUSTER, MINUTE, NOW, settings
from tests.cli.stage import Stage, out_of_stock, serving
from tpu_slices.domain.model.clusters import CatalogueSettings
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.reconciling.brake import stops_told
from tpu_slices.domain.records.brakes import Brake, Stop
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices_cli.app import ALIASES, COMMANDS, main
from tpu_slices_simulator.fakes.backend import Verb

# list


def test_slices_are_listed_with_phase_and_message(stage: Stage) -> None:
    serving(stage)
    out_of_stock(stage)
    gemma, llama = stage.output_of("list").splitlines()[1:]
    assert gemma.split()[:2] == ["demo", "research/gemma-slice-0"]
    assert "WAITING" in gemma
    assert "is out of tpu-v6e-slice 4x4" in gemma
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
def test_a_list_can_be_filtered(stage: Stage, arguments: tuple[str, ...], jobsets: list[str]) -> None:
    serving(stage)
    out_of_stock(stage)
    listed = json.loads(stage.output_of("list", "-o", "json", *arguments))["slices"]
    assert [each["owner"]["name"] for each in listed] == jobsets


def test_gone_slices_are_listed_with_the_option_all(stage: Stage) -> None:
    jobset = serving(stage)
    stage.world.ends(jobset)
    stage.world.settle(minutes=10)
    assert json.loads(stage.output_of("list", "-o", "json"))["slices"] == []
    (gone,) = json.loads(stage.output_of("list", "--all", "-o", "json"))["slices"]
    assert gone["phase"] == "GONE"


class SleepUntilInterrupted:
    """A sleep during which the world goes on; after the last step, Ctrl-C."""

    def __init__(self, *meanwhile: Callable[[], object]) -> None:
        self._meanwhile = list(meanwhile)

    def __call__(self, seconds: float) -> None:
        if not self._meanwhile:
            raise KeyboardInterrupt
        assert seconds == 5
        self._meanwhile.pop(0)()


def test_watching_prints_a_line_per_change_until_ctrl_c(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    jobset = serving(stage)

    def ends() -> None:
        stage.world.ends(jobset)
        stage.world.deliver()

    monkeypatch.setattr("tpu_slices_cli.listing.sleep", SleepUntilInterrupted(lambda: None, ends))
    result = stage.slices("list", "--watch")
    assert result.exit_code == 130
    ready, releasing = result.stdout.splitlines()
    assert "research/llama-slice-0 READY Ready: All 4 hosts" in ready
    assert "llama-slice-0 RELEASING ClosingHosts: Releasing (the JobSet completed): its hosts" in releasing


# hold, release, resume


BY_ADA = "held by ada@example.com since 2026-03-01 12:"


def test_a_held_slice_stays_until_it_is_resumed(stage: Stage) -> None:
    jobset = serving(stage)
    record = stage.world.record(jobset)
    said = stage.output_of("hold", "research/llama", "--note", "ask Ada")
    assert said.startswith(f"{record.name} is {BY_ADA}")
    assert said.endswith(
        f" UTC; `slices resume {record.name}` ends it, while 16 chips are billed at an unknown price.\n"
    )
    assert stage.output_of("hold", "research/llama").startswith(f"{record.name} was already {BY_ADA}")
    stage.world.ends(jobset)
    stage.world.settle(minutes=5)
    assert stage.world.pools == [record.pool]
    assert stage.world.record(jobset).note == "ask Ada"
    assert stage.output_of("resume", record.name) == f"{record.name} is no longer on hold.\n"
    stage.world.settle(minutes=10)
    assert stage.world.pools == []


def held(stage: Stage, *, ends: bool, vanishes: bool) -> SliceRecord:
    """Hold the slice of a JobSet that runs; let the JobSet end then, or the pool vanish."""
    jobset = serving(stage)
    stage.output_of("hold", "research/llama")
    stage.world.steps()
    if ends:
        stage.world.ends(jobset)
    if vanishes:
        stage.world.backend.vanish(stage.world.record(jobset).pool)
        stage.world.publisher.request_reconcile(CLUSTER, [stage.world.record(jobset).maker])
    stage.world.settle(minutes=3)
    return stage.world.record(jobset)


V6E = {
    "accelerator": "tpu-v6e-slice",
    "region": "us-central2",
    "kind": "on_demand",
    "read": "2026-11-30",
    "source": "us",
}


@pytest.mark.parametrize("price", ["2.7", None], ids=["priced", "price unknown"])
@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("", "All 4 hosts are ready"),
        ("ends", "It is not needed: the JobSet completed. There is node pool"),
        ("ends, vanishes", "It is not needed: the JobSet completed. No node pool of it stands"),
        ("vanishes", "No node pool of it stands"),
    ],
    ids=["in use", "its JobSet is over", "its pool is gone, too", "its pool is gone"],
)
def test_a_held_slice_says_so_in_list_and_explain_with_what_it_costs(
    stage: Stage, price: str | None, what: str, told: str
) -> None:
    """By the prices of the settings, as the catalogue has none there."""
    rows = ((*V6E.items(), ("usd_per_chip_hour", price)),) if price else ()
    stage.world.store.put_settings(settings(catalogue=CatalogueSettings(prices=rows)))
    record = held(stage, ends="ends" in what, vanishes="vanishes" in what)
    assert record.phase is (Phase.BLOCKED if what else Phase.READY)
    row, explained = (" ".join(stage.output_of(*words).split()) for words in (["list"], ["explain", record.name]))
    billed = "vanishes" not in what
    for text in (row, explained):
        assert BY_ADA in text.lower()
        assert told in text
        assert ("16 chips are billed" in text) is billed
        assert ("43.20 USD per hour by list price" in text) is (billed and price is not None)
    assert ("BLOCKED" if what else "Held (Ready)") in row
    (document,) = json.loads(stage.output_of("list", "-o", "json"))["slices"]
    assert (document["held_by"], document["hold"]) == ("ada@example.com", True)


def test_a_released_slice_is_deleted_though_it_is_in_demand(stage: Stage) -> None:
    record = stage.world.record(serving(stage))
    output = stage.output_of("release", record.pool, "--yes")
    assert output.splitlines() == [
        f"{record.name}: READY, occupied by research/llama-slice-0",
        f"{record.name} is being released.",
    ]
    stage.world.deliver()
    stage.world.steps()
    assert stage.world.backend.ordered(Verb.DELETE) == [record.pool]


def test_a_release_can_be_forced_while_the_relay_is_dead_and_the_note_says_so(stage: Stage) -> None:
    record = stage.world.record(serving(stage))
    stage.world.relay_is_dead = True
    stage.output_of("release", record.pool, "--force", "--yes")
    stage.world.deliver()
    assert stage.world.backend.ordered(Verb.DELETE) == [record.pool]
    assert "Release forced at" in stage.output_of("explain", record.name)


def test_stopped_releases_are_shown_and_go_on_when_they_are_confirmed(stage: Stage) -> None:
    assert stage.output_of("confirm-deletions") == "No releases are stopped in demo.\n"
    stop = Stop(since=NOW, stopped_at=NOW, ended=12, live=3, chips=240)
    brake = Brake(cluster=CLUSTER, whole=stop, namespaces={"loops": stop})
    stage.world.store.put(brake)
    stage.world.clock.advance(MINUTE)
    told = [f"{message}." for message in stops_told(brake)]
    assert [len(told), *("namespace loops" in each for each in told)] == [2, False, True]
    assert stage.output_of("confirm-deletions", "--yes").splitlines() == [*told, "The releases in demo go on."]
    assert stage.output_of("confirm-deletions") == "No releases are stopped in demo.\n"


def test_those_of_one_namespace_are_confirmed_by_themselves(stage: Stage) -> None:
    stop = Stop(since=NOW, stopped_at=NOW, ended=12, live=3, chips=240)
    stage.world.store.put(Brake(cluster=CLUSTER, namespaces={"loops": stop, "others": stop}))
    stage.world.clock.advance(MINUTE)
    first, last = stage.output_of("confirm-deletions", "--namespace", "loops", "--yes").splitlines()
    assert "12 of 15 slices in the namespace loops" in first
    assert last == "The releases in namespace loops of demo go on."
    nothing = "No releases are stopped in namespace loops of demo.\n"
    assert stage.output_of("confirm-deletions", "--namespace", "loops") == nothing
    assert "the namespace others" in stage.output_of("confirm-deletions", "--yes")


@pytest.mark.parametrize("verb", ["hold", "release"])
def test_hold_and_release_leave_a_gone_slice_as_it_is(stage: Stage, verb: str) -> None:
    jobset = serving(stage)
    stage.world.ends(jobset)
    stage.world.settle(minutes=10)
    record = stage.world.record(jobset)
    assert stage.output_of(verb, record.name) == f"{record.name} is already gone.\n"
    assert stage.world.record(jobset) == record


def test_nothing_is_released_without_confirmation(stage: Stage) -> None:
    record = stage.world.record(serving(stage))
    result = stage.slices("release", record.name)
    assert (result.exit_code, "use --yes" in result.stderr) == (2, True)
    assert not stage.world.record(stage.world.workloads[record.owner.uid]).release_requested


# pause, resume


def test_a_paused_cluster_creates_nothing_and_its_slices_say_why(stage: Stage) -> None:
    assert stage.output_of("pause", "--message", "upgrade until noon.").startswith("demo is paused")
    jobset = stage.world.jobset_appears()
    stage.world.settle(minutes=5)
    record = stage.world.record(jobset)
    assert (stage.world.pools, record.phase) == ([], Phase.BLOCKED)
    assert record.message.endswith("upgrade until noon.")
    assert stage.output_of("resume", "--cluster", "demo") == "demo is resumed. Slices to be reconciled: 1.\n"
    stage.world.settle(minutes=10, until=lambda: jobset.bound == {0})
    assert jobset.bound == {0}


def test_resuming_a_cluster_that_was_not_paused_says_so(stage: Stage) -> None:
    assert stage.output_of("resume") == "demo was not paused.\n"


# errors and help

ASKED = "project demo-project (by --project), Firestore database (default)"


def test_an_unavailable_store_is_an_error_of_one_line(stage: Stage) -> None:
    stage.world.store.unavailable = True
    result = stage.slices("list")
    assert (result.exit_code, result.stderr) == (1, f"the store is unavailable; asked was {ASKED}\n")


@pytest.mark.parametrize(
    "command", [[], *([name] for name in [*COMMANDS, *ALIASES])], ids=lambda words: " ".join(words) or "slices"
)
def test_every_command_has_help(command: list[str]) -> None:
    result = CliRunner().invoke(main, [*command, "--help"], prog_name="slices")
    assert result.exit_code == 0
    assert result.stdout.startswith("Usage: slices")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_its_completion_script(shell: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell], prog_name="slices")
    assert result.exit_code == 0
    assert result.stdout.startswith("# ")
    assert "_SLICES_COMPLETE" in result.stdout
