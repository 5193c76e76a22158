"""Programs on a PATH whose parts a test plays: each call is answered by a function, which may remember earlier ones."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

SHIM = """#!{python} -SE
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect({path!r})
    call = [os.path.basename(sys.argv[0]), sys.argv[1:], os.getcwd()]
    connection.sendall(json.dumps(call).encode() + b"\\n")
    code, out, error = json.loads(connection.makefile().readline())
sys.stdout.write(out)
sys.stderr.write(error)
sys.exit(code)
"""


@dataclass(frozen=True, slots=True)
class Reply:
    out: str = ""
    code: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    program: str
    words: tuple[str, ...]
    """The arguments."""
    folder: Path
    """Where it was called."""

    def __str__(self) -> str:
        return " ".join((self.program, *self.words))


Part = Callable[[Call], Reply]


@dataclass
class Stage:
    """A folder of programs, to be the first of a PATH."""

    folder: Path
    calls: list[Call] = field(default_factory=list)

    def called(self, *programs: str) -> list[str]:
        """Return the calls of these programs, in order; without any, all."""
        return [str(call) for call in self.calls if not programs or call.program in programs]


@contextmanager
def played(folder: Path, parts: Mapping[str, Part]) -> Iterator[Stage]:
    """Write the programs into a new folder, and answer their calls one after another.

    A part that raises fails the call, with what it says: that is how it refuses what it does not know.
    """
    folder.mkdir()
    stage, path = Stage(folder), str(folder / "socket")
    for name in parts:
        (folder / name).write_text(SHIM.format(python=sys.executable, path=path))
        (folder / name).chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        thread = threading.Thread(target=_answer, args=(listening, stage, parts))
        thread.start()
        try:
            yield stage
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def _answer(listening: socket.socket, stage: Stage, parts: Mapping[str, Part]) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:  # it was shut down
            return
        with connection:
            program, words, where = json.loads(connection.makefile().readline())
            call = Call(program, tuple(words), Path(where))
            stage.calls.append(call)
            try:
                reply = parts[program](call)
            except Exception as refused:  # noqa: BLE001 - whatever it is, the script hears of it
                reply = Reply(code=99, error=f"{call}: {refused!r}\n")
            connection.sendall(json.dumps([reply.code, reply.out, reply.error]).encode() + b"\n")
