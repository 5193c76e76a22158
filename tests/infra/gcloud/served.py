"""Run by gcloud's own Python: loads gcloud once, then runs each command that is sent in a process forked from it.

    python served.py LIB/gcloud.py

A command of its own takes gcloud a second, most of it to load; this way it takes some 30 ms. It says on which port it
listens. A command is the id of the process that stands for it, whose arguments, environment and folder it has; the
answer is what that process says and how it ends (tests/infra/builds/played.py). It reads nothing. With
GCLOUD_ONLY_PARSES in its environment, a command is understood or refused as ever, and then does nothing. The logs of
builds, for whose address gcloud has no setting, are read at GCLOUD_LOGS_AT.
"""

import gc
import importlib
import os
import socket
import sys
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO, NoReturn

LIB = Path(sys.argv[1]).parent
sys.path[:0] = [str(LIB), str(LIB / "third_party")]

from googlecloudsdk import gcloud_main  # type: ignore[import-not-found]  # noqa: E402 - it is in gcloud's folder
from googlecloudsdk.api_lib.cloudbuild import logs  # type: ignore[import-not-found]  # noqa: E402 - as above
from googlecloudsdk.calliope import backend  # type: ignore[import-not-found]  # noqa: E402 - as above


def run(cli: Any, arguments: list[str], environment: dict[str, str], folder: Path) -> int:
    """Return the exit code of a command."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if "GCLOUD_ONLY_PARSES" in environment:
        backend.Command.Run = lambda *_, **__: None
    read, at = logs.RequestsLogTailer.Request, environment.get("GCLOUD_LOGS_AT", "http://localhost:1")
    logs.RequestsLogTailer.Request = lambda self, url, cursor: read(
        self, url.replace("https://storage.googleapis.com", at), cursor
    )
    try:
        cli.Execute(arguments)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


def text(file: Path) -> list[str]:
    """Return the strings of a file in /proc."""
    return file.read_bytes().decode().split("\0")[:-1]


def answer(cli: Any, connection: socket.socket) -> list[str]:
    """Answer the command of a connection, which a child runs; return the modules that it loaded."""
    process = Path("/proc") / connection.makefile().readline().strip()
    arguments = text(process / "cmdline")[2:]
    loaded, told = os.pipe()
    with TemporaryFile() as out, TemporaryFile() as error, os.fdopen(loaded) as pipe:
        gc.freeze()  # a collection in the child would write to each object, and so copy all that it shares
        child = os.fork()
        if child == 0:
            for number, stream in enumerate((os.open(os.devnull, os.O_RDONLY), out.fileno(), error.fileno())):
                os.dup2(stream, number)
            in_child(cli, process, arguments, told)
        os.close(told)
        names = pipe.read().split()
        _, status = os.waitpid(child, 0)
        connection.sendall(message(os.waitstatus_to_exitcode(status), out, error))
    load(cli, arguments)
    return names


def in_child(cli: Any, process: Path, arguments: list[str], told: int) -> NoReturn:
    """Run a command to its end, and tell which modules it loaded."""
    before = set(sys.modules)
    environment = dict(each.split("=", 1) for each in text(process / "environ"))
    code = run(cli, arguments, environment, (process / "cwd").readlink())
    sys.stdout.flush()
    sys.stderr.flush()
    with os.fdopen(told, "w") as pipe:
        pipe.write("\n".join(set(sys.modules) - before))
    os._exit(code)


def message(code: int, *streams: BinaryIO) -> bytes:
    """Return what the program of `played.py` hears."""
    for each in streams:
        each.seek(0)
    said = [each.read() for each in streams]
    return b"%d %d %d\n" % (code, *map(len, said)) + b"".join(said)


def load(cli: Any, arguments: list[str]) -> None:
    """Load the groups and the command that arguments begin with: the next child has them from the beginning."""
    element = cli.top_element
    for word in arguments:
        element = element.LoadSubElement(word)
        if not isinstance(element, backend.CommandGroup):
            return


def serve() -> None:
    cli = gcloud_main.CreateCLI([])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)  # noqa: T201 - whoever waits for it reads that
        while True:
            connection, _ = listening.accept()
            with connection:
                names = answer(cli, connection)
            for name in names:  # these, too
                try:
                    importlib.import_module(name)
                except Exception:  # noqa: BLE001 - it is only to be quicker
                    continue


serve()
