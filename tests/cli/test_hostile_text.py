"""What a tenant writes is text wherever it is shown: no markup, no control of the terminal, no other direction."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import CLUSTER, with_fields
from tests.cli.stage import Stage, serving
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.ports.store import Change

HOSTILE = "[/x] [red]READY[/red] :warning: \x1b[2J\x1b]0;owned\x07 \u202eydaer\u202c"
SHOWN = "[/x] [red]READY[/red] :warning: \ufffd[2J\ufffd]0;owned\ufffd \ufffdydaer\ufffd"


@pytest.fixture
def hostile(stage: Stage) -> Stage:
    """Return a stage with a slice whose message, history, note and occupants hold what a tenant wrote."""
    record = stage.world.record(serving(stage))
    (stored,) = stage.world.store.slices(CLUSTER, [record.id]).values()
    occupants = tuple(replace(each, replicated_job=HOSTILE) for each in record.current.hosts.occupants)
    refused = record.transitioned(record.since, Reason.NOT_ALLOWED, HOSTILE)
    hosts = replace(record.current.hosts, occupants=occupants)
    stage.world.store.commit(Change(stored, with_fields(refused, note=HOSTILE, hosts=hosts)))
    return stage


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("list",), id="list"),
        pytest.param(("list", "-o", "wide"), id="wide"),
        pytest.param(("explain", "research/llama-slice-0"), id="a slice"),
        pytest.param(("explain", "research/llama"), id="a JobSet"),
        pytest.param(("release", "research/llama", "--yes"), id="release"),
    ],
)
def test_a_tenants_text_is_shown_as_text(hostile: Stage, arguments: tuple[str, ...]) -> None:
    output = hostile.output_of(*arguments)
    assert SHOWN in " ".join(output.split())
    assert not {"\x1b", "\x07", "\u202e"} & {*output}


def test_a_watch_shows_it_as_text(hostile: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tpu_slices_cli.listing.sleep", interrupt)
    output = hostile.slices("list", "--watch").stdout
    assert SHOWN in output
    assert not {"\x1b", "\x07", "\u202e"} & {*output}


def test_a_file_with_a_hostile_name_is_named_as_text(stage: Stage) -> None:
    result = stage.slices("plan", "-f", f"{HOSTILE}.yaml", "--cluster", "examples/clusters/research.yaml")
    assert result.exit_code == 2
    assert not {"\x1b", "\x07", "\u202e"} & {*result.output}
