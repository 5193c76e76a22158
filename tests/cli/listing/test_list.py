"""`slices list` of names, sorted, without ended slices, and watched by machines."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import yaml

from tests.cli.stage import Stage, out_of_stock, serving
from tests.cli.test_people import SleepUntilInterrupted

HINT = "1 ended slice is not shown: --all shows them too.\n"


def jobs(listed: str) -> list[str]:
    return [line.split()[1] for line in listed.splitlines()[1:]]


def ended(stage: Stage) -> None:
    jobset = serving(stage)
    stage.world.ends(jobset)
    stage.world.settle(minutes=10)


# names


NAMES: dict[str, Callable[[Stage], str]] = {
    "workload": lambda _: "llama",
    "namespace and workload": lambda _: "research/llama",
    "kind too": lambda _: "JobSet/research/llama",
    "job": lambda _: "research/llama-slice-0",
    "slice": lambda stage: next(iter(stage.world.store.kept_slices(stage.world.settings.cluster))).value.name,
}


@pytest.mark.parametrize("name", [*NAMES.values()], ids=[*NAMES])
def test_slices_are_listed_by_each_of_their_names(stage: Stage, name: Callable[[Stage], str]) -> None:
    serving(stage)
    named = name(stage)
    out_of_stock(stage)
    assert jobs(stage.output_of("list", named)) == ["research/llama-slice-0"]


def test_those_of_several_names_are_listed_together(stage: Stage) -> None:
    serving(stage)
    out_of_stock(stage)
    assert jobs(stage.output_of("get", "llama", "gemma")) == ["research/gemma-slice-0", "research/llama-slice-0"]


def test_a_name_without_slices_is_an_error_beside_those_that_have_some(stage: Stage) -> None:
    serving(stage)
    result = stage.slices("list", "llama", "bert")
    assert (result.exit_code, jobs(result.stdout)) == (1, ["research/llama-slice-0"])
    assert result.stderr == "no slice of bert found in demo\n"


# namespaces


def test_all_namespaces_are_listed_by_default_and_with_the_word_of_kubectl(stage: Stage) -> None:
    serving(stage)
    assert stage.output_of("list", "-A") == stage.output_of("list")
    result = stage.slices("list", "-A", "-n", "research")
    assert (result.exit_code, "exclude each other" in result.stderr) == (2, True)


# ended ones


def test_a_list_says_that_ended_slices_are_left_out(stage: Stage) -> None:
    ended(stage)
    out_of_stock(stage)
    result = stage.slices("list")
    assert (jobs(result.stdout), result.stderr) == (["research/gemma-slice-0"], HINT)


@pytest.mark.parametrize("arguments", [[], ["-n", "research"], ["--owner", "llama"]], ids=" ".join)
def test_a_list_of_nothing_says_whether_anything_ended(stage: Stage, arguments: list[str]) -> None:
    ended(stage)
    result = stage.slices("list", *arguments)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"No slices found.\n{HINT}"


@pytest.mark.parametrize("arguments", [["--all"], ["--phase", "ready"], ["-n", "vision"]], ids=" ".join)
def test_nothing_is_said_of_ended_slices_that_were_not_asked_for(stage: Stage, arguments: list[str]) -> None:
    ended(stage)
    assert "ended" not in stage.slices("list", *arguments).stderr


# order


@pytest.mark.parametrize(
    ("by", "workloads"),
    [
        ("job", ["gemma", "llama", "small"]),
        ("phase", ["gemma", "llama", "small"]),
        ("since", ["llama", "small", "gemma"]),
        ("chips", ["gemma", "llama", "small"]),
    ],
)
def test_a_list_is_sorted_as_asked(stage: Stage, by: str, workloads: list[str]) -> None:
    serving(stage)
    serving(stage, "small")
    out_of_stock(stage)
    found = json.loads(stage.output_of("list", "--sort-by", by, "-o", "json"))["slices"]
    assert [each["owner"]["name"] for each in found] == workloads


# watching


def watched(stage: Stage, monkeypatch: pytest.MonkeyPatch, output: str) -> str:
    """Return what is printed of a slice from READY on until it has ended."""
    jobset = serving(stage)

    def ends() -> None:
        stage.world.ends(jobset)
        stage.world.deliver()

    later = SleepUntilInterrupted(lambda: None, ends, lambda: stage.world.settle(minutes=10), lambda: None)
    monkeypatch.setattr("tpu_slices_cli.listing.sleep", later)
    result = stage.slices("list", "--watch", "-o", output)
    assert (result.exit_code, result.stderr.strip()) == (130, "")
    return result.stdout


PHASES = ["READY", "RELEASING", "GONE"]


def test_watching_for_machines_prints_one_object_for_each_change(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [json.loads(line) for line in watched(stage, monkeypatch, "json").splitlines()]
    assert [each["phase"] for each in lines] == PHASES
    assert {each["owner"]["name"] for each in lines} == {"llama"}


def test_watching_for_machines_prints_one_document_for_each_change(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [each["phase"] for each in yaml.safe_load_all(watched(stage, monkeypatch, "yaml"))] == PHASES


def test_watching_tells_the_end_of_a_slice_that_the_list_leaves_out_then(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [line.split()[2] for line in watched(stage, monkeypatch, "table").splitlines()] == PHASES
