"""Free TCP ports of 127.0.0.1 for programs that are yet to start.

A port is free only until somebody takes it, and a program takes seconds to start. Who else could take it:

| who                                  | why it does not                                                              |
|--------------------------------------|------------------------------------------------------------------------------|
| a connection that a program opens    | its port is from 32768 to 60999 on Linux (`net.ipv4.ip_local_port_range`,    |
|                                      | ip(7)), from 49152 to 65535 elsewhere (RFC 6335); the ports here are lower   |
| this process                         | no port is given twice                                                       |
| another process that asks for ports  | a given port is locked until the process that got it ends: one byte for each |
|                                      | port of a file that the processes of a user share (fcntl(2), F_SETLK)        |
| a program that does not ask here     | it may: the order is random                                                  |
"""

import errno
import fcntl
import os
import random
import socket
from collections.abc import Iterator
from functools import cache
from pathlib import Path

NOT_EPHEMERAL = range(20_000, 32_768)


def _in_random_order() -> Iterator[int]:
    yield from random.SystemRandom().sample(NOT_EPHEMERAL, len(NOT_EPHEMERAL))


_candidates = _in_random_order()


def free_ports(count: int) -> tuple[int, ...]:
    """Return distinct ports on which nobody listens, and which no process that still runs was given here."""
    return tuple(_free_port() for _ in range(count))


def _free_port() -> int:
    for port in _candidates:
        if not _locked(port):
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError(errno.EADDRINUSE, f"no free port of 127.0.0.1 from {NOT_EPHEMERAL.start} to {NOT_EPHEMERAL.stop - 1}")


def _locked(port: int) -> bool:
    """Return whether the port is this process's now. Its end, however it comes, gives the port back."""
    try:
        fcntl.lockf(_file_of_locks(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            return False
        raise
    return True


@cache
def _file_of_locks() -> int:
    """Return the descriptor, which stays open: closing it would give back all ports of this process.

    The file is in no folder that an environment names: processes of other environments take ports beside this one.
    """
    path = Path("/tmp") / f"tpu-slice-provisioner-ports-{os.getuid()}"  # noqa: S108 - no links are followed
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
