import signal
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path

import psutil
import pytest

from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.ports import free_ports
from tpu_standins.prerequisites import Tools
from tpu_standins.processes import Asked, Child, Listens, Processes, Program, ProgramFailed, Says
from tpu_standins.testing.leftovers import running_in, start_module
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

SAYS_READY = Says("ready")
LISTENER = "import socket, sys, time; s = socket.create_server(('127.0.0.1', {port})); time.sleep(600)"


@pytest.fixture
def processes(tools: Tools, tmp_path: Path) -> Iterator[Processes]:
    environment = {"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path), "GOOGLE_APPLICATION_CREDENTIALS": "key.json"}
    with Processes(setpriv=tools.setpriv, logs=tmp_path / "logs", environment=environment) as started:
        yield started


def a_script(
    script: str,
    *,
    name: str = "script",
    ready: Listens | Says = SAYS_READY,
    hopeless: str | None = None,
) -> Program:
    return Program(
        name=name,
        command=("sh", "-c", script),
        ready=ready,
        folder=Path("/"),
        environment={"OWN": "yes"},
        hopeless=hopeless,
    )


def not_ready(processes: Processes, child: Child, said: str) -> None:
    """Expect that a program that has said something is given up when its patience is over."""
    until(lambda: said in child.output(), said)
    processes.clock = chain([0.0], repeat(2 * child.program.patience_seconds)).__next__
    with pytest.raises(ProgramFailed, match="not ready within"):
        processes.wait_until_ready(child)


def test_a_program_is_ready_when_it_listens(processes: Processes) -> None:
    (port,) = free_ports(1)
    command = (sys.executable, "-c", LISTENER.format(port=port))
    listener = Program(name="listener", command=command, ready=Listens(port), folder=Path("/"))
    processes.wait_until_ready(*processes.start(listener))
    socket.create_connection(("127.0.0.1", port)).close()


def test_a_port_that_another_listens_on_makes_no_program_ready(processes: Processes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as ours:
        port = ours.getsockname()[1]
        (child,) = processes.start(a_script("echo begun; sleep 600", ready=Listens(port)))
        not_ready(processes, child, "begun")


def test_a_program_is_ready_when_it_says_so_in_a_whole_line(processes: Processes) -> None:
    (child,) = processes.start(a_script("echo already; printf ready; sleep 600"))
    not_ready(processes, child, "already\nready")
    processes.wait_until_ready(*processes.start(a_script("echo x; echo ready; sleep 600", name="other")))


def test_a_program_that_dies_early_is_told_with_the_end_of_its_log(processes: Processes) -> None:
    children = processes.start(a_script("echo the reason >&2; exit 3"))
    with pytest.raises(ProgramFailed, match=r"(?s)script exited.*script\.log.*the reason"):
        processes.wait_until_ready(*children)


def test_a_death_is_noticed_while_another_is_waited_for(processes: Processes) -> None:
    children = processes.start(a_script("sleep 600", name="slow"), a_script("exit 1", name="dead"))
    with pytest.raises(ProgramFailed, match="dead exited"):
        processes.wait_until_ready(*children)


def test_a_program_that_runs_on_without_hope_is_not_waited_for(processes: Processes) -> None:
    children = processes.start(a_script("echo java.net.BindException: taken; sleep 600", hopeless="BindException.*"))
    with pytest.raises(ProgramFailed, match="printed 'BindException: taken'"):
        processes.wait_until_ready(*children)


def test_a_program_that_cannot_be_started_is_told(processes: Processes) -> None:
    nowhere = Program(name="nowhere", command=("/no/such/program",), ready=SAYS_READY, folder=Path("/"))
    children = processes.start(nowhere)
    with pytest.raises(ProgramFailed, match="no/such/program"):
        processes.wait_until_ready(*children)


def test_a_death_after_the_start_is_found(processes: Processes) -> None:
    (child,) = processes.start(a_script("echo ready; sleep 600"))
    processes.wait_until_ready(child)
    processes.check()
    child.process.send_signal(signal.SIGKILL)
    assert child.ended(within=PATIENCE_SECONDS)
    with pytest.raises(ProgramFailed, match="script exited"):
        processes.check()


def test_a_program_sees_its_own_environment_and_no_credentials(processes: Processes, tmp_path: Path) -> None:
    (child,) = processes.start(a_script("env; echo ready; sleep 600"))
    processes.wait_until_ready(child)
    seen = dict(line.split("=", 1) for line in child.output().splitlines() if "=" in line)
    assert seen["OWN"] == "yes"
    assert seen["TMPDIR"] == str(tmp_path)
    assert "GOOGLE_APPLICATION_CREDENTIALS" not in seen


def test_a_program_is_ready_when_its_question_is_answered_with_yes(processes: Processes, tmp_path: Path) -> None:
    asked = Program(
        name="asked",
        command=("sh", "-c", f"sleep 0.2; touch {tmp_path}/there; sleep 600"),
        ready=Asked((tmp_path / "there").exists),
        folder=Path("/"),
    )
    processes.wait_until_ready(*processes.start(asked))
    assert (tmp_path / "there").exists()


def test_a_program_that_takes_long_to_end_may_be_killed_at_once(processes: Processes, tmp_path: Path) -> None:
    processes.grace_seconds = PATIENCE_SECONDS
    stubborn = replace(a_script("trap '' TERM; echo ready; sleep 600"), ending=signal.SIGKILL)
    processes.wait_until_ready(*processes.start(stubborn))
    processes.stop()
    until(lambda: not running_in(tmp_path), "its end")


def test_what_was_started_last_is_ended_first(processes: Processes, tmp_path: Path) -> None:
    ends, processes.grace_seconds = tmp_path / "ends", PATIENCE_SECONDS
    for name in ("first", "second", "third"):
        script = f"trap 'echo {name} >> {ends}; exit 0' TERM; sleep 600 & echo ready; wait"
        processes.wait_until_ready(*processes.start(a_script(script, name=name)))
    processes.stop()
    assert ends.read_text().split() == ["third", "second", "first"]


def test_a_program_that_will_not_end_is_killed_with_all_it_started(processes: Processes, tmp_path: Path) -> None:
    processes.grace_seconds = 0
    script = "trap '' TERM; sleep 600 & sleep 601 & echo ready; wait; wait"
    processes.wait_until_ready(*processes.start(a_script(script)))
    until(lambda: len(running_in(tmp_path)) == 3, "all three")  # a process that is begun has no environment yet
    processes.stop()
    until(lambda: not running_in(tmp_path), "the end of all three")


def test_stopping_after_a_death_is_harmless(processes: Processes, tmp_path: Path) -> None:
    (child,) = processes.start(a_script("exit 0"))
    assert child.ended(within=PATIENCE_SECONDS)
    processes.stop()
    processes.stop()
    assert not running_in(tmp_path)


def test_only_the_main_thread_starts_programs(processes: Processes) -> None:
    problems: list[str] = []

    def start() -> None:
        try:
            processes.start(a_script("sleep 600"))
        except RuntimeError as problem:
            problems.append(str(problem))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert problems == ["programs would end together with the thread that starts them"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_is_left_of_a_parent_ended_while_it_starts_programs(tmp_path: Path, how: signal.Signals) -> None:
    parent = start_module("tpu_standins.tests.programs.parent", tmp_path)
    below = psutil.Process(parent.pid)
    until(lambda: len(below.children()) >= 2, "two children")
    parent.send_signal(how)
    parent.communicate()
    until(lambda: not running_in(tmp_path), "the end of the children")
