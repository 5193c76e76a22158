"""An HTTP server on loopback whose answers a test gives."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

OK, NOT_FOUND = 200, 404


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    """Without the query, decoded."""
    query: dict[str, str]
    data: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    """By their names in small letters."""

    @property
    def body(self) -> Any:
        return json.loads(self.data)


@dataclass(frozen=True, slots=True)
class Response:
    body: Any
    """A document, or bytes."""
    status: int = OK
    headers: Mapping[str, str] = field(default_factory=dict)


def refusal(status: int, message: str = "") -> Response:
    """Return an error as Google's APIs write it."""
    return Response({"error": {"code": status, "message": message or f"refused with {status}"}}, status)


def _handler(answer: Callable[[Request], Response]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _respond(self) -> None:
            data = self.rfile.read(int(self.headers.get("content-length") or 0))
            url = urlsplit(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            response = answer(Request(self.command, unquote(url.path), dict(parse_qsl(url.query)), data, headers))
            plain = isinstance(response.body, bytes)
            told = response.body if plain else json.dumps(response.body).encode()
            self.send_response(response.status)
            self.send_header("content-type", "application/octet-stream" if plain else "application/json")
            self.send_header("content-length", str(len(told)))
            for name, value in response.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(told)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _respond  # noqa: N815 - http.server's names

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its signature
            """Nothing is logged."""

    return Handler


@contextmanager
def serving(answer: Callable[[Request], Response]) -> Iterator[str]:
    """Serve, and return the URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(answer)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
