"""The webhooks' HTTPS server on loopback, in threads of its own."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from typing import Any
from urllib.parse import urlsplit

import orjson

Answer = Callable[[str, dict[str, Any]], dict[str, Any] | None]
"""From a path and an AdmissionReview to the AdmissionReview that answers it; None for an unknown path."""

HOST = "127.0.0.1"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, context: ssl.SSLContext, answer: Answer) -> None:
        self.answer = answer
        self._context = context
        super().__init__((HOST, port), _Handler)

    def get_request(self) -> tuple[socket, Any]:
        """Accept a connection; its thread, not this one, does the handshake."""
        connection, address = super().get_request()
        return self._context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Leave out what the API server did not wait for: it tells its caller."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # headers and body leave together
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            answer = self.server.answer(urlsplit(self.path).path, orjson.loads(body))
        except (orjson.JSONDecodeError, KeyError, TypeError):
            self.send_error(400)
            return
        if answer is None:
            self.send_error(404)
            return
        data = orjson.dumps(answer)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - the name that http.server has
        """Log nothing: requests are many."""


@contextmanager
def serving(port: int, context: ssl.SSLContext, answer: Answer) -> Iterator[str]:
    """Serve on this port (0: any free one) within the block; yield the address, `https://127.0.0.1:PORT`."""
    server = _Server(port, context, answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"https://{HOST}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
