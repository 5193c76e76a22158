import socket
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
