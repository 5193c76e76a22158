"""A small HTTP server on loopback, one connection per request, in threads of its own."""

import json
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tpu_standins.patience import PATIENCE_SECONDS

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request. `target` is its path with the query; the names of `headers` are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Answered:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


Answer = Callable[[Asked], Answered]
Press = Callable[[str, str, bytes], tuple[int, Mapping[str, Any]]]
"""From a method, a path and a body to a status and the JSON that answers."""


def as_json(status: int, reply: Mapping[str, Any]) -> Answered:
    data = json.dumps(reply, default=_jsonable).encode()
    return Answered(status, data, {"Content-Type": "application/json; charset=UTF-8"})


def _jsonable(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    raise TypeError(f"no JSON for {type(value).__name__}")


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # with the default of five, a sixth of a burst would be sent again after a second

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that did not wait for its answer."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class LoopbackServer:
    """Listens from its construction on; `url` has the actual port."""

    def __init__(self, answer: Answer, port: int = 0, name: str = "http") -> None:
        self._server = _Server((HOST, port), _handler(answer))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name=name)
        self.url = f"http://{HOST}:{self._server.server_port}"
        self._thread.start()

    def stop(self) -> None:
        """Answer what was asked, and nothing else."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class ButtonServer(LoopbackServer):
    """Buttons for people and demos: JSON in, JSON out."""

    def __init__(self, press: Press, port: int = 0) -> None:
        super().__init__(lambda asked: as_json(*press(asked.method, asked.target, asked.body)), port, "buttons")


def _handler(answer: Answer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        wbufsize = -1  # headers and body in one segment: a second one would wait for a delayed ACK
        timeout = PATIENCE_SECONDS

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            answered = answer(Asked(self.command, self.path, headers, body))
            self.send_response(answered.status)
            for name, value in answered.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answered.body)))
            self.end_headers()
            self.wfile.write(answered.body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - BaseHTTPRequestHandler names them so

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
            """Log nothing: requests are many."""

    return Handler
