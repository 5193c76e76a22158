"""A server of a target on this machine, over TLS, that keeps what it got and answers as it is told."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import StreamRequestHandler, ThreadingTCPServer

from tpu_standins.certificates import Certificates, certificates

CERTIFICATES: Certificates = certificates("127.0.0.1", datetime.now(UTC))


def trusting() -> ssl.SSLContext:
    """Return the context of a client that trusts these servers alone."""
    return ssl.create_default_context(cadata=CERTIFICATES.authority.decode())


@dataclass
class Got:
    """What a server got; `answers`: the status of the next answers, 200 afterwards."""

    port: int = 0
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    """Of a mail server: the commands."""


@contextmanager
def web_server(*answers: int) -> Iterator[Got]:
    got = Got(answers=[*answers])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.paths.append(self.path)
            got.headers.append({name.lower(): value for name, value in self.headers.items()})
            got.bodies.append(self.rfile.read(int(self.headers["content-length"])))
            status = got.answers.pop(0) if got.answers else 200
            self.send_response(status)
            if status in range(300, 400):
                self.send_header("location", f"https://127.0.0.1:{got.port}/elsewhere")
            self.send_header("content-length", "6")
            self.end_headers()
            self.wfile.write(b"secret")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = CERTIFICATES.context().wrap_socket(server.socket, server_side=True)
    got.port = server.server_address[1]
    with _serving(server):
        yield got


ANSWERS = {
    "EHLO": "250-hello\r\n250-STARTTLS\r\n250 AUTH PLAIN",
    "STARTTLS": "220 go",
    "AUTH": "235 welcome",
    "DATA": "354 go",
    "QUIT": "221 bye",
}
"""Of a mail server, by command; to others it answers 250."""


class _MailServer(ThreadingTCPServer):
    def __init__(self, got: Got, refuses: str, refusal: str, *, implicit: bool) -> None:
        super().__init__(("127.0.0.1", 0), _MailHandler)
        self.got, self.refuses, self.refusal, self.implicit = got, refuses, refusal, implicit


class _MailHandler(StreamRequestHandler):
    server: _MailServer

    def handle(self) -> None:
        if self.server.implicit:
            self._secured()
        self._says("220 ready")
        while line := self.rfile.readline().decode().strip():
            self.server.got.lines.append(line)
            verb = line.split(" ", 1)[0].upper()
            self._says(self.server.refusal if verb == self.server.refuses else ANSWERS.get(verb, "250 fine"))
            if verb == "STARTTLS":
                self._secured()
            if verb == "DATA" != self.server.refuses:
                self.server.got.bodies.append(b"".join(iter(self.rfile.readline, b".\r\n")))
                self._says("250 taken")

    def finish(self) -> None:
        super().finish()
        self.connection.close()

    def _secured(self) -> None:
        self.connection = CERTIFICATES.context().wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb")

    def _says(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())
        self.wfile.flush()


@contextmanager
def mail_server(*, implicit: bool, refuses: str = "", refused_with: int = 550) -> Iterator[Got]:
    """`refuses`: the command that is refused."""
    got = Got()
    server = _MailServer(got, refuses, f"{refused_with} no: secret", implicit=implicit)
    got.port = server.server_address[1]
    with _serving(server):
        yield got


@contextmanager
def _serving(server: ThreadingTCPServer | ThreadingHTTPServer) -> Iterator[None]:
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
