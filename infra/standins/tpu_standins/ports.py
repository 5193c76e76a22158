"""Free TCP ports of 127.0.0.1 for programs that are yet to start.

A port is free only until somebody takes it, and a program takes seconds to start. So the ports come from below the
range out of which the kernel gives every outgoing connection a port of its own: 32768 to 60999 on Linux
(`net.ipv4.ip_local_port_range`, ip(7)), 49152 to 65535 elsewhere (RFC 6335). The order is random, so that two stacks
that start at the same time seldom try the same one, and none is given twice.
"""

import errno
import random
import socket
from collections.abc import Iterator

NOT_EPHEMERAL = range(20_000, 32_768)


def _in_random_order() -> Iterator[int]:
    yield from random.SystemRandom().sample(NOT_EPHEMERAL, len(NOT_EPHEMERAL))


_candidates = _in_random_order()


def free_ports(count: int) -> tuple[int, ...]:
    """Return distinct ports on which nobody listens, none of which this process was given before."""
    return tuple(_free_port() for _ in range(count))


def _free_port() -> int:
    for port in _candidates:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError(errno.EADDRINUSE, f"no free port of 127.0.0.1 from {NOT_EPHEMERAL.start} to {NOT_EPHEMERAL.stop - 1}")
