"""The relay as a process: its log, its probes, and a gate in front of its servers."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from relay import probe
from tests.local.served import ROOT, Served
from tests.relay.objects import Json

DEADLINE = 120.0
PROMPTLY = 60.0


@dataclass
class Running:
    """A running relay, with the lines of its log so far."""

    process: subprocess.Popen[str]
    lines: list[Json] = field(default_factory=list)
    ready: bool = False
    changed: threading.Condition = field(default_factory=threading.Condition)

    def read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self.changed:
                if line == "ready\n":
                    self.ready = True
                elif line.startswith("{"):
                    self.lines.append(json.loads(line))
                self.changed.notify_all()

    def until(self, true: Callable[[], bool]) -> None:
        """Wait until the condition is true; it is checked after each line of the log."""
        with self.changed:
            assert self.changed.wait_for(true, DEADLINE), self.lines

    def logged(self, event: str) -> list[Json]:
        with self.changed:
            return [line for line in self.lines if line["event"] == event]

    def log(self, event: str) -> Json:
        """Return the first line with this event; wait for it."""
        self.until(lambda: any(line["event"] == event for line in self.lines))
        return self.logged(event)[0]

    def probe(self, name: str) -> list[str]:
        """Probe as the kubelet does; return the lines of the answer."""
        socket_name = self.log("probes.started")["socket"]
        return probe.ask(socket_name, name).splitlines()

    def until_probed(self, true: Callable[[list[str]], bool]) -> list[str]:
        """Ask whether the relay is ready until the condition is true of the answer; return its lines."""
        answers: list[list[str]] = []

        def answered() -> bool:
            answers.append(self.probe("readyz"))
            return true(answers[-1])

        self.until_true(answered)
        return answers[-1]

    def until_true(self, true: Callable[[], bool]) -> None:
        """Wait until the condition is true; it is checked every 0.1 s."""
        deadline = time.monotonic() + DEADLINE
        while not true():
            assert time.monotonic() < deadline, self.lines
            with self.changed:
                self.changed.wait(0.1)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PROMPTLY)


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the relay is run from, and the Python that runs it, with its arguments."""

    folder: Path
    python: tuple[str, ...]


HERE = Sources(ROOT, (sys.executable, "-m", "relay"))


@contextmanager
def running(served: Served, project: str, sources: Sources = HERE, /, **environment: str) -> Iterator[Running]:
    """Run the relay; at the end it must stop promptly and without an error, unless it was killed."""
    command = ["setpriv", "--pdeathsig", "TERM", *sources.python]
    variables: Mapping[str, str] = os.environ | {
        "CLUSTER": "demo",
        "GOOGLE_CLOUD_PROJECT": project,
        "KUBECONFIG": str(served.kubeconfig),
        "PROBE_SOCKET": f"relay-{uuid.uuid4()}",
        **environment,
    }
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=sources.folder, env=variables) as process:
        one = Running(process)
        reader = threading.Thread(target=one.read)
        reader.start()
        try:
            yield one
        finally:
            process.terminate()
            ended = process.wait(PROMPTLY)
            reader.join(PROMPTLY)
        assert ended in {0, -signal.SIGKILL}, one.lines


class Gate:
    """A TCP port that forwards to another while it is open; `close` refuses and cuts every connection."""

    def __init__(self, target: str) -> None:
        host, _, port = target.partition(":")
        self._target = (host, int(port))
        self._port = 0
        self._lock = threading.Lock()
        self._connections: list[socket.socket] = []
        self.open()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def open(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self._port))
        self._port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def close(self) -> None:
        with self._lock:
            _cut(self._listener, *self._connections)
            self._connections.clear()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(self._target)
                with self._lock:
                    if listener.fileno() < 0:  # closed since
                        return _cut(near, far)
                    self._connections += (near, far)
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=_carry, args=pair, daemon=True).start()


def _cut(*sockets: socket.socket) -> None:
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()


def _carry(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
