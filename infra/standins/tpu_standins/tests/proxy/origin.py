"""An API server in memory behind a proxy: it remembers what it was asked, and its watches say what a test says."""

import json
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from tpu_standins.patience import PATIENCE_SECONDS

Json = dict[str, Any]
LISTED = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": []}


@dataclass
class Origin:
    """`asked` are the requests; every watch begins with `first`, and then says what is put into `later`."""

    asked: list[tuple[str, str, str, bytes]] = field(default_factory=list)
    first: tuple[Json, ...] = ()
    later: queue.SimpleQueue[Json | None] = field(default_factory=queue.SimpleQueue)
    port: int = 0

    def forget(self) -> None:
        """Begin anew; watches that are open say nothing more."""
        self.asked.clear()
        self.first, self.later = (), queue.SimpleQueue()

    def kubeconfig(self, path: Path, **user: str) -> Path:
        """Write a kubeconfig for it; without credentials with the token `own`."""
        cluster = {"name": "it", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}
        context = {"name": "it", "context": {"cluster": "it", "user": "me"}}
        one = {
            "clusters": [cluster],
            "contexts": [context],
            "users": [{"name": "me", "user": user or {"token": "own"}}],
        }
        path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "current-context": "it", **one}))
        return path


class Handler(BaseHTTPRequestHandler):
    """Answers for the origin of the server that it belongs to."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    timeout = PATIENCE_SECONDS
    server: "Server"

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.origin.asked.append((self.command, self.path, self.headers.get("Authorization", ""), body))
        if "watch=true" in self.path:
            self._watch()
        else:
            self._say(201 if self.command == "POST" else 200, json.dumps(LISTED).encode())

    def _say(self, code: int, data: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _watch(self) -> None:
        origin = self.server.origin
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        for event in origin.first:
            self._chunk(json.dumps(event).encode() + b"\n")
        while (news := origin.later.get()) is not None:
            self._chunk(json.dumps(news).encode() + b"\n")
        self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    do_GET = do_POST = do_PATCH = _answer  # noqa: N815 - BaseHTTPRequestHandler names them so

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Log nothing."""


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        super().__init__(("127.0.0.1", origin.port), Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients go whenever they like."""


@contextmanager
def serving(origin: Origin) -> Iterator[None]:
    """Serve on the port it had before, or on any."""
    server = Server(origin)
    origin.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
