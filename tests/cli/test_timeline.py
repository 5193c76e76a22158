"""`slices timeline`: which slices are on the page, and where it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.stories import an_afternoon, world_of
from tests.cli.reading import Reader
from tests.cli.stage import Stage, serving
from tpu_slices.domain.records.slices import SliceRecord


def written(stage: Stage, *arguments: str) -> Reader:
    return Reader(stage.output_of("timeline", "-f", "-", *arguments))


def a_stage(records: list[SliceRecord]) -> Stage:
    return Stage(world_of(records))


# which slices are on it


def test_a_slices_transitions_are_on_the_page(stage: Stage) -> None:
    serving(stage)
    text = written(stage).text
    assert "research/llama" in text
    assert "PROVISIONING, CreationStarted: Creating node pool" in text
    assert "READY, Ready: All 4 hosts are ready and offer their chips" in text


EVERY = ["research/bert", "research/gemma", "research/llama", "vision/mixtral"]


@pytest.mark.parametrize(
    ("arguments", "jobsets"),
    [
        ((), EVERY),
        (("llama",), ["research/llama"]),
        (("research/llama",), ["research/llama"]),
        (("vision/llama",), []),
        (("-n", "vision"), ["vision/mixtral"]),
        (("--namespace", "research", "gemma"), ["research/gemma"]),
        (("--cluster", "demo"), EVERY),
    ],
)
def test_a_page_can_be_filtered(arguments: tuple[str, ...], jobsets: list[str]) -> None:
    assert written(a_stage(an_afternoon()), *arguments).jobsets == jobsets


def test_slices_gone_before_the_window_are_left_out() -> None:
    assert "slice-1: " in written(a_stage(an_afternoon()), "gemma").text
    assert "slice-1: " not in written(a_stage(an_afternoon()), "gemma", "--since", "1h").text


def test_a_namespace_that_contradicts_the_name_is_refused(stage: Stage) -> None:
    result = stage.slices("timeline", "research/llama", "-n", "vision")
    assert (result.exit_code, "not in the namespace vision" in result.stderr) == (2, True)


@pytest.mark.parametrize("since", ["", "0h", "6", "h", "-6h", "6h30m", "99999999d", "1.5h", "٦h"])
def test_an_invalid_duration_is_refused(stage: Stage, since: str) -> None:
    result = stage.slices("timeline", "--since", since, "-f", "-")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "write 90m, 6h or 2d" in result.stderr


@pytest.mark.parametrize("since", ["30s", "90m", "90 min", "6h", "99999d"])
def test_usual_forms_of_a_duration_are_accepted(stage: Stage, since: str) -> None:
    assert stage.slices("timeline", "--since", since, "-f", "-").exit_code == 0


# where it is written


def test_the_page_is_written_to_a_file_whose_name_is_printed(stage: Stage, tmp_path: Path) -> None:
    serving(stage)
    file = tmp_path / "page.html"
    result = stage.slices("timeline", "--output", str(file), "--since", "6h")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"{file}: 1 slice in the last 6 h, all clusters\n"
    assert file.read_text().startswith("<!DOCTYPE html>\n<html")


def test_without_a_slice_the_page_says_so(stage: Stage) -> None:
    result = stage.slices("timeline", "nobody", "-f", "-")
    assert (result.exit_code, result.stderr) == (0, "no slices in the last 1 d, workload nobody\n")
    assert "No slices found: workload nobody." in Reader(result.stdout).text
    assert "script" not in Reader(result.stdout).elements


def test_a_file_that_cannot_be_written_is_an_error_without_a_traceback(stage: Stage, tmp_path: Path) -> None:
    result = stage.slices("timeline", "-f", str(tmp_path / "none" / "page.html"))
    assert result.exit_code == 1
    assert "No such file or directory" in result.stderr
    assert "Traceback" not in result.output
