"""The relay as a process: its log, its probes, and a gate in front of its servers."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from relay import probe
from tests.local.served import ROOT, Served
from tests.relay.objects import Json
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.ports import free_ports
from tpu_standins.testing.waiting import until


@dataclass
class Running:
    """A running program of the cluster, with the lines of its log so far, and what it printed beside it."""

    process: subprocess.Popen[str]
    lines: list[Json] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self.changed:
                if line.startswith("{"):
                    self.lines.append(json.loads(line))
                else:
                    self.printed.append(line.rstrip("\n"))
                self.changed.notify_all()

    @property
    def ready(self) -> bool:
        return self.said("ready")

    def said(self, line: str) -> bool:
        return line in self.printed

    def until(self, true: Callable[[], bool]) -> None:
        """Wait until the condition is true; it is checked after each line of the log."""
        with self.changed:
            assert self.changed.wait_for(true, PATIENCE_SECONDS), self.lines

    def logged(self, event: str) -> list[Json]:
        with self.changed:
            return [line for line in self.lines if line["event"] == event]

    def log(self, event: str, *, times: int = 1) -> Json:
        """Return the first line with this event; wait for so many of them."""
        self.until(lambda: sum(line["event"] == event for line in self.lines) >= times)
        return self.logged(event)[0]

    def probe(self, name: str) -> list[str]:
        """Probe as the kubelet does, again while the answer comes too late; return its lines."""
        socket_name = self.log("probes.started")["socket"]

        def asked() -> list[str]:
            try:
                return probe.ask(socket_name, name).splitlines()
            except OSError:
                return []

        return until(asked, f"an answer of {name}")

    def until_probed(self, true: Callable[[list[str]], bool]) -> list[str]:
        """Ask whether the relay is ready until the condition is true of the answer; return its lines."""
        answers: list[list[str]] = []

        def answered() -> list[str]:
            answers.append(self.probe("readyz"))
            return answers[-1] if true(answers[-1]) else []

        return until(answered, lambda: f"another answer than {answers[-1:]}: {self.lines}")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_SECONDS)


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the relay is run from, and the Python that runs it, with its arguments."""

    folder: Path
    python: tuple[str, ...]


HERE = Sources(ROOT, (sys.executable, "-m", "relay"))


@contextmanager
def running(served: Served, project: str, sources: Sources = HERE, /, **environment: str) -> Iterator[Running]:
    """Run the relay; at the end it must stop without an error, unless it was killed."""
    variables = {
        "CLUSTER": "demo",
        "GOOGLE_CLOUD_PROJECT": project,
        "KUBECONFIG": str(served.kubeconfig),
        "PROBE_SOCKET": f"relay-{uuid.uuid4()}",
        **environment,
    }
    with running_program(sources, variables) as relay:
        yield relay


@contextmanager
def running_program(sources: Sources, environment: Mapping[str, str]) -> Iterator[Running]:
    """Run a program; at the end it must stop without an error, unless it was killed."""
    command = ["setpriv", "--pdeathsig", "TERM", *sources.python]
    variables = os.environ | environment
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=sources.folder, env=variables) as process:
        one = Running(process)
        reader = threading.Thread(target=one.read)
        reader.start()
        try:
            yield one
        finally:
            process.terminate()
            ended = process.wait(PATIENCE_SECONDS)
            reader.join(PATIENCE_SECONDS)
        assert ended in {0, -signal.SIGKILL}, one.lines


class Gate:
    """A TCP port that forwards to another while it is open; `close` refuses and cuts every connection."""

    def __init__(self, target: str) -> None:
        host, _, port = target.partition(":")
        self._target = (host, int(port))
        (self._port,) = free_ports(1)
        self._lock = threading.Lock()
        self._connections: list[socket.socket] = []
        self.open()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def open(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self._port))
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def close(self) -> None:
        with self._lock:
            _cut(self._listener, *self._connections)
            self._connections.clear()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                try:
                    far = socket.create_connection(self._target)
                except OSError:
                    _cut(near)
                    continue
                with self._lock:
                    if listener.fileno() < 0:  # closed since
                        return _cut(near, far)
                    self._connections += (near, far)
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=carry, args=pair, daemon=True).start()


def _cut(*sockets: socket.socket) -> None:
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()


def carry(source: socket.socket, sink: socket.socket) -> None:
    """Pass on what one socket says to another, until either ends."""
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
