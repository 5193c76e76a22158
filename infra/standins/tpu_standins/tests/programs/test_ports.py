import os
import socket
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

from tpu_standins import ports
from tpu_standins.ports import free_ports

pytestmark = pytest.mark.enable_socket  # a port is found by binding it


def test_no_port_is_given_twice() -> None:
    assert len({*free_ports(50), *free_ports(50)}) == 100


@pytest.mark.skipif(not Path("/proc/sys/net/ipv4").exists(), reason="the range is read from Linux")
def test_no_connection_of_another_program_takes_a_free_port_before_it_is_used() -> None:
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    assert not set(free_ports(50)) & set(range(first, last + 1))


def test_a_port_on_which_somebody_listens_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        taken = busy.getsockname()[1]
        monkeypatch.setattr("tpu_standins.ports._candidates", chain([taken], ports._candidates))
        assert taken not in free_ports(1)


def test_a_port_that_another_process_was_given_is_not_given_before_that_process_ends(tmp_path: Path) -> None:
    """The other process tries the same ports in the same order, and nobody listens on any; its folders are others."""
    given = free_ports(3)
    code = f"from tpu_standins import ports; ports._candidates = iter({[*given, *range(20_000, 32_768)]}); "
    code += "print(*ports.free_ports(3), flush=True); input()"
    elsewhere = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=elsewhere
    ) as other:
        assert other.stdin
        assert other.stdout
        theirs = {int(port) for port in other.stdout.readline().split()}
        assert len(theirs) == 3
        assert not theirs & set(given)
        assert not _given_of(theirs)
        other.stdin.write(b"\n")
    assert _given_of(theirs) == theirs


def _given_of(wanted: set[int]) -> set[int]:
    """Return the ports among these that a new process is given."""
    code = f"from tpu_standins import ports; ports._candidates = iter({[*wanted, *range(20_000, 32_768)]}); "
    code += f"print(*ports.free_ports({len(wanted)}))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    return {int(port) for port in said.stdout.split()} & wanted
