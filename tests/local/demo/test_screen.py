import io

import pytest
from rich.console import Console

from infra.local.demo.screen import LiveScreen, PlainScreen, drawn, opened
from infra.local.demo.table import rows
from tests.builders import NOW
from tests.local.demo.moments import a_progress, a_slice, a_view, after, slices_are_seen
from tpu_slices.domain.model.reasons import Phase

STEPS = (a_progress(slices_are_seen(1)),)
CREATING = a_view(a_slice("llama", Phase.PROVISIONING))


def console(width: int, *, terminal: bool) -> Console:
    return Console(file=io.StringIO(), width=width, force_terminal=terminal)


def written(console_: Console) -> str:
    assert isinstance(console_.file, io.StringIO)
    return console_.file.getvalue()


def test_where_no_terminal_is_each_change_is_one_plain_line(capsys: pytest.CaptureFixture[str]) -> None:
    with opened(console(80, terminal=False)) as screen:
        assert isinstance(screen, PlainScreen)
        for seconds in range(3):
            screen.show(CREATING, STEPS, NOW + after(seconds))
        screen.show(a_view(a_slice("llama", Phase.PROVISIONING, Phase.READY)), STEPS, NOW)
    lines = capsys.readouterr().out.splitlines()
    assert ["PROVISIONING" in line for line in lines] == [True, False]
    assert not any("\x1b" in line for line in lines)


def test_on_a_terminal_the_table_and_the_steps_are_drawn_below_what_was_said() -> None:
    terminal = console(150, terminal=True)
    with opened(terminal) as screen:
        assert isinstance(screen, LiveScreen)
        screen.show(CREATING, STEPS, NOW)
        screen.say("kubectl apply")
    said = written(terminal)
    assert "PROVISIONING" in said
    assert "waiting until 1 slices" in said
    assert said.index("kubectl apply") < said.rindex("PROVISIONING")


def test_a_narrow_terminal_shows_every_phase_and_reason_whole() -> None:
    narrow = console(80, terminal=False)
    narrow.print(drawn(rows(CREATING, NOW)))
    said = written(narrow)
    assert "PROVISIONING" in said
    assert "Creating" in said
