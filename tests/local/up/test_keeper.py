"""The keeper, which keeps the parts of a stack running, tested with small programs."""

import itertools
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from infra.local.patience import PATIENCE_SECONDS
from infra.local.prerequisites import Tools
from infra.local.processes import Processes, Program, Says
from infra.local.up.control import answer
from infra.local.up.keeper import LARGEST_LOG, Keeper, Order, UnknownPart

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

ROUNDS = 120
"""Within which something must have happened."""
PATH = {"PATH": "/usr/bin:/bin"}


class Kept:
    """A keeper of programs that print `ready` and wait."""

    def __init__(self, processes: Processes) -> None:
        self.said: list[str] = []
        self.told_anew = 0
        self.now = 0.0
        self.keeper = Keeper(
            processes=processes,
            afterwards={"relay": self._tell},
            say=self.said.append,
            clock=lambda: self.now,
            round_seconds=0,
        )
        children = processes.start(waiting("relay"), waiting("function-sweep"))
        processes.wait_until_ready(*children)
        self.keeper.take_over()

    def _tell(self) -> None:
        self.told_anew += 1

    def until(self, happened: Callable[[], bool]) -> None:
        """Run iterations, advancing the clock by an hour each, until it happened."""
        for _ in range(ROUNDS):
            self.keeper.keep(iter((None,)))
            self.now += 3600
            if happened():
                return
        raise AssertionError(f"it never happened: {self.said}, {self.keeper.statuses()}")

    def pid(self, part: str) -> int | None:
        child = self.keeper.parts[part].child
        return child.process.pid if child else None


def waiting(name: str) -> Program:
    return Program(name=name, command=("sh", "-c", "echo ready; sleep 600"), ready=Says("ready"), folder=Path("/"))


@pytest.fixture
def kept(tools: Tools, tmp_path: Path) -> Iterator[Kept]:
    with Processes(setpriv=tools.setpriv, logs=tmp_path / "logs", environment=PATH) as processes:
        yield Kept(processes)


def test_a_part_that_dies_is_started_again_and_told_what_it_forgot(kept: Kept) -> None:
    before = kept.pid("relay")
    asked = kept.keeper.ask(Order.KILL, "relay")
    kept.until(lambda: kept.pid("relay") not in {None, before})
    assert asked.result() == "relay was killed and will be restarted"
    assert kept.told_anew == 1
    assert "relay is running again" in kept.said[-1]


def test_a_part_that_was_stopped_stays_down_until_it_is_started(kept: Kept) -> None:
    stopped = kept.keeper.ask(Order.STOP, "relay")
    kept.until(stopped.done)
    assert stopped.result() == "relay: stopped"
    kept.until(lambda: True)
    assert kept.pid("relay") is None
    started = kept.keeper.ask(Order.START, "relay")
    kept.until(started.done)
    assert kept.pid("relay") is not None


def test_the_log_of_what_died_is_kept_beside_the_new_one(kept: Kept) -> None:
    child = kept.keeper.parts["relay"].child
    assert child is not None
    kept.keeper.ask(Order.KILL, "relay")
    kept.until(lambda: kept.told_anew == 1)
    assert Path(f"{child.log}.1").read_text() == "ready\n"
    assert child.log.read_text() == "ready\n"


def test_the_rest_goes_on_while_one_part_dies(kept: Kept) -> None:
    sweep = kept.pid("function-sweep")
    kept.keeper.ask(Order.KILL, "relay")
    kept.until(lambda: kept.told_anew == 1)
    assert kept.pid("function-sweep") == sweep


def test_what_dies_again_and_again_is_started_with_rising_pauses(kept: Kept) -> None:
    part = kept.keeper.parts["relay"]
    for deaths in itertools.count(1):
        child = part.child
        assert child is not None
        child.process.send_signal(signal.SIGKILL)
        child.ended(within=PATIENCE_SECONDS)
        kept.keeper.keep(iter((None,)))
        assert part.due is not None
        pause = part.due - kept.now
        assert pause == min(30, 0.5 * 2 ** (deaths - 1))
        if pause == 30:
            return
        kept.now = part.due
        kept.keeper.keep(iter((None,)))


def test_a_log_that_grew_too_large_is_emptied(kept: Kept) -> None:
    child = kept.keeper.parts["relay"].child
    assert child is not None
    with child.log.open("ab") as log:
        log.truncate(LARGEST_LOG + 1)
    kept.keeper.keep(iter((None,)))
    assert child.log.stat().st_size == 0


def test_functions_go_by_their_short_names_and_unknown_names_are_answered_with_the_known(kept: Kept) -> None:
    asked = kept.keeper.ask(Order.STOP, "sweep")
    kept.until(asked.done)
    assert asked.result() == "function-sweep: stopped"
    with pytest.raises(UnknownPart, match=r'no part "swep": relay, function-sweep'):
        kept.keeper.ask(Order.STOP, "swep")


@pytest.mark.parametrize(
    ("method", "path", "says"),
    [
        ("POST", "/nobody/kill", "no part"),
        ("POST", "/relay/burn", "burn"),
        ("GET", "/relay/kill", "no such order"),
        ("POST", "/", "''"),
    ],
)
def test_an_order_that_makes_no_sense_is_answered(kept: Kept, method: str, path: str, says: str) -> None:
    status, reply = answer(kept.keeper, method, path)
    assert (status, says in reply["error"]) == (404, True)
