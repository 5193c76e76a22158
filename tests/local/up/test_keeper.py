"""The keeper, which keeps the parts of a stack running, tested with small programs."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from infra.local.up.control import answer
from infra.local.up.keeper import LARGEST_LOG, Keeper, NotYet, Order, UnknownPart
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.prerequisites import Tools
from tpu_standins.processes import Processes, Program, Says
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

PATH = {"PATH": "/usr/bin:/bin"}


class Kept:
    """A keeper of programs that print `ready` and wait. `refusals`: what the relay lacks after a restart, in turn."""

    def __init__(self, processes: Processes, *programs: Program) -> None:
        self.said: list[str] = []
        self.refusals: list[str] = []
        self.told_anew = 0
        self.now = 0.0
        self.keeper = Keeper(
            processes=processes,
            afterwards={"relay": self._tell},
            say=self.said.append,
            clock=lambda: self.now,
            round_seconds=0,
        )
        processes.wait_until_ready(*processes.start(*programs))
        self.keeper.take_over()

    def _tell(self) -> None:
        if self.refusals:
            raise NotYet(self.refusals.pop(0))
        self.told_anew += 1

    def once(self) -> None:
        """Run an iteration; then it is when the next part is due."""
        self.keeper.keep(iter((None,)))
        self.now = min((part.due for part in self.keeper.parts.values() if part.due is not None), default=self.now)

    def until(self, happened: Callable[[], bool], what: str) -> None:
        """Run iterations until it happened."""

        def look() -> bool:
            self.once()
            return happened()

        until(look, lambda: f"{what}: {self.said}, {self.keeper.statuses()}")

    def until_all_run(self) -> None:
        self.until(lambda: all(each.startswith("running") for each in self.keeper.statuses().values()), "all parts")

    def kill(self, *parts: str) -> None:
        """Let parts die at once."""
        for part in parts:
            child = self.keeper.parts[part].child
            assert child is not None
            child.process.kill()
            child.ended(within=PATIENCE_SECONDS)

    def pid(self, part: str) -> int | None:
        child = self.keeper.parts[part].child
        return child.process.pid if child else None


def program(name: str, script: str) -> Program:
    return Program(name=name, command=("sh", "-c", script), ready=Says("ready"), folder=Path("/"))


def waiting(name: str) -> Program:
    return program(name, "echo ready; sleep 600")


@pytest.fixture
def kept(tools: Tools, tmp_path: Path) -> Iterator[Kept]:
    with Processes(setpriv=tools.setpriv, logs=tmp_path / "logs", environment=PATH) as processes:
        yield Kept(processes, waiting("relay"), waiting("function-sweep"))


def test_a_part_that_dies_is_started_again_and_told_what_it_forgot(kept: Kept) -> None:
    before = kept.pid("relay")
    asked = kept.keeper.ask(Order.KILL, "relay")
    kept.until(lambda: kept.pid("relay") not in {None, before}, "another relay")
    assert asked.result() == "relay was killed and will be restarted"
    kept.until_all_run()
    assert kept.told_anew == 1
    assert "relay is running again" in kept.said[-1]


def test_a_part_starts_again_although_what_it_needs_is_started_after_it(tools: Tools, tmp_path: Path) -> None:
    there = tmp_path / "there"
    needy = program("needy", f"until [ -e {there} ]; do sleep 0.01; done; echo ready; sleep 600")
    needed = program("needed", f"touch {there}; echo ready; sleep 600")
    with Processes(setpriv=tools.setpriv, logs=tmp_path / "logs", environment=PATH) as processes:
        kept = Kept(processes, needy, needed)
        kept.kill("needy")
        there.unlink()
        kept.until(lambda: kept.keeper.statuses()["needy"].startswith("starting"), "the one that needs the other")
        kept.kill("needed")
        kept.until_all_run()


def test_a_part_runs_again_once_it_has_what_it_forgot(kept: Kept) -> None:
    kept.refusals = ["the API server does not answer", "the API server is too busy"]
    kept.kill("relay")
    kept.until(lambda: not kept.refusals, "the relay is told again")
    kept.until_all_run()
    assert (kept.told_anew, kept.said.count("relay is running again")) == (1, 1)


def test_a_part_that_is_not_ready_in_time_is_started_once_more(kept: Kept) -> None:
    kept.refusals = ["the API server does not answer"] * 1000
    kept.kill("relay")
    kept.until(lambda: len(kept.refusals) < 1000, "the relay is told again")
    kept.now += PATIENCE_SECONDS + 1
    kept.once()
    assert "relay was not running again within 600 s (the API server does not answer)" in kept.said[-1]
    kept.refusals = []
    kept.until_all_run()


def test_a_part_that_was_stopped_stays_down_until_it_is_started(kept: Kept) -> None:
    stopped = kept.keeper.ask(Order.STOP, "relay")
    kept.until(stopped.done, "an answer")
    assert stopped.result() == "relay: stopped"
    kept.once()
    assert kept.pid("relay") is None
    started = kept.keeper.ask(Order.START, "relay")
    kept.until(started.done, "an answer")
    assert started.result() == f"relay: starting, pid {kept.pid('relay')}"
    kept.until_all_run()


def test_the_log_of_what_died_is_kept_beside_the_new_one(kept: Kept) -> None:
    child = kept.keeper.parts["relay"].child
    assert child is not None
    kept.keeper.ask(Order.KILL, "relay")
    kept.until(lambda: kept.told_anew == 1, "another relay")
    assert Path(f"{child.log}.1").read_text() == "ready\n"
    assert child.log.read_text() == "ready\n"


def test_the_rest_goes_on_while_one_part_dies(kept: Kept) -> None:
    sweep = kept.pid("function-sweep")
    kept.keeper.ask(Order.KILL, "relay")
    kept.until(lambda: kept.told_anew == 1, "another relay")
    assert kept.pid("function-sweep") == sweep


def test_what_dies_again_and_again_is_started_with_rising_pauses(kept: Kept) -> None:
    part = kept.keeper.parts["relay"]
    for deaths in itertools.count(1):
        kept.kill("relay")
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
    kept.until(asked.done, "an answer")
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
