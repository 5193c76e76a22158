"""Programs on a PATH whose parts a test plays: each call is answered by a function, which may remember earlier ones."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

SHIM = f"""#!{shutil.which("bash")}
LC_ALL=C
exec 3<>/dev/tcp/127.0.0.1/PORT || exit 99
echo $$ >&3
read -r code out error <&3
read -r -N $out -u 3 text
printf %s "$text"
read -r -N $error -u 3 text
printf %s "$text" >&2
exit $code
"""
"""What is on the PATH: tells which process it is, and says what it hears. It starts in a tenth of Python's time."""


@dataclass(frozen=True, slots=True)
class Reply:
    out: str = ""
    code: int = 0
    error: str = ""

    @property
    def message(self) -> bytes:
        """What the program hears."""
        out, error = self.out.encode(), self.error.encode()
        return b"%d %d %d\n" % (self.code, len(out), len(error)) + out + error


@dataclass(frozen=True, slots=True)
class Call:
    program: str
    words: tuple[str, ...]
    """The arguments."""
    folder: Path
    """Where it was called."""

    def __str__(self) -> str:
        return " ".join((self.program, *self.words))

    @classmethod
    def of(cls, process: Path) -> Call:
        """Return the call of a process, whose folder in /proc this is."""
        _, program, *words = (process / "cmdline").read_bytes().decode().split("\0")[:-1]
        return cls(Path(program).name, tuple(words), (process / "cwd").readlink())


Part = Callable[[Call], Reply]


@dataclass
class Stage:
    """A folder of programs, to be the first of a PATH."""

    folder: Path
    calls: list[Call] = field(default_factory=list)

    def called(self, *programs: str) -> list[str]:
        """Return the calls of these programs, in order; without any, all."""
        return [str(call) for call in self.calls if not programs or call.program in programs]


def write_shim(program: Path, port: str) -> None:
    """Write a program whose calls are answered by whoever listens on this port, which may be a variable."""
    program.write_text(SHIM.replace("PORT", port))
    program.chmod(0o755)


@contextmanager
def played(folder: Path, parts: Mapping[str, Part]) -> Iterator[Stage]:
    """Write the programs into a new folder, and answer their calls one after another.

    A part that raises fails the call, with what it says: that is how it refuses what it does not know.
    """
    folder.mkdir()
    stage = Stage(folder)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        for name in parts:
            write_shim(folder / name, str(listening.getsockname()[1]))
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
            call = Call.of(Path("/proc") / connection.makefile().readline().strip())
            stage.calls.append(call)
            try:
                reply = parts[call.program](call)
            except Exception as refused:  # noqa: BLE001 - whatever it is, the script hears of it
                reply = Reply(code=99, error=f"{call}: {refused!r}\n")
            connection.sendall(reply.message)
