"""Run by gcloud's own Python: loads gcloud once, then runs each command that is sent in a process forked from it.

    python served.py LIB/gcloud.py SOCKET

A command of its own takes gcloud a second, most of it to load; this way it takes some 100 ms. A command is a line of
JSON, `[arguments, environment, folder]`, with the three standard streams; the answer is its exit code. With
GCLOUD_ONLY_PARSES in its environment, a command is understood or refused as ever, and then does nothing.
"""

import importlib
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

LIB = Path(sys.argv[1]).parent
sys.path[:0] = [str(LIB), str(LIB / "third_party")]

from googlecloudsdk import gcloud_main  # type: ignore[import-not-found]  # noqa: E402 - it is in gcloud's folder
from googlecloudsdk.calliope import backend  # type: ignore[import-not-found]  # noqa: E402 - as above


def run(cli: Any, arguments: list[str], environment: dict[str, str], folder: str) -> int:
    """Return the exit code of a command."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if "GCLOUD_ONLY_PARSES" in environment:
        backend.Command.Run = lambda *_, **__: None
    try:
        cli.Execute(arguments)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


def in_child(cli: Any, connection: socket.socket) -> list[str]:
    """Run the command of a connection in a child; return the modules that it loaded."""
    data, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    while not data.endswith(b"\n"):
        data += connection.recv(1 << 20)
    loaded, told = os.pipe()
    before = set(sys.modules)
    child = os.fork()
    if child == 0:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        code = run(cli, *json.loads(data))
        sys.stdout.flush()
        sys.stderr.flush()
        with os.fdopen(told, "w") as pipe:
            pipe.write("\n".join(set(sys.modules) - before))
        os._exit(code)
    for each in (told, *streams):
        os.close(each)
    with os.fdopen(loaded) as pipe:
        names = pipe.read().split()
    _, status = os.waitpid(child, 0)
    connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    return names


def serve(path: str) -> None:
    cli = gcloud_main.CreateCLI([])
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        print("ready", flush=True)  # noqa: T201 - whoever waits for it reads that
        while True:
            connection, _ = listening.accept()
            with connection:
                names = in_child(cli, connection)
            for name in names:  # the next child has them from the beginning
                try:
                    importlib.import_module(name)
                except Exception:  # noqa: BLE001 - it is only to be quicker
                    continue


serve(sys.argv[2])
