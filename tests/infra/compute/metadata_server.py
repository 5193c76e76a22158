"""A metadata server of one instance of Compute Engine, as far as the startup script asks it.

As Google's guide "About VM metadata" says: without the header `Metadata-Flavor: Google` it answers 403, what is not
there is 404, each answer has an ETag, and with `wait_for_change` it answers once the value differs from `last_etag`, or
after `timeout_sec`. Guest attributes can be written if `enable-guest-attributes` is TRUE; without it that is 403.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from tpu_standins.patience import PATIENCE_SECONDS

ATTRIBUTES = "instance/attributes/"
GUEST = "instance/guest-attributes/"
PREFIX = "/computeMetadata/v1/"
SECONDS = 0.02
"""How long a second of `timeout_sec` is."""


@dataclass
class Metadata:
    """What the server has, and what it was asked."""

    attributes: dict[str, str]
    fixed: dict[str, str]
    """Of the instance and its project, by path."""
    guest: dict[str, str] = field(default_factory=dict)
    told: list[tuple[str, str]] = field(default_factory=list)
    """Every guest attribute that was written, in order; an empty value: it was deleted."""
    refused: list[str] = field(default_factory=list)
    """Requests without the header."""
    away: bool = False
    """Whether it answers 503 to everything."""
    in_vain: threading.Event = field(default_factory=threading.Event)
    """Whether somebody who reads had that answer."""
    changed: threading.Condition = field(default_factory=threading.Condition)

    def set(self, **items: str | None) -> None:
        """Change attributes, whose keys have `_` for `-`; None: removed."""
        with self.changed:
            for key, value in items.items():
                if value is None:
                    self.attributes.pop(key.replace("_", "-"), None)
                else:
                    self.attributes[key.replace("_", "-")] = value
            self.changed.notify_all()

    def await_told(self, key: str, value: str) -> None:
        """Wait until a guest attribute was written with this value, or one that begins so."""
        with self.changed:
            found = self.changed.wait_for(
                lambda: any(told == key and text.startswith(value) for told, text in self.told), PATIENCE_SECONDS
            )
        assert found, f"{key} = {value} was not told, but {self.told}"

    def read(self, path: str) -> str | None:
        if path == ATTRIBUTES:
            return json.dumps(self.attributes)
        if path.startswith(ATTRIBUTES):
            return self.attributes.get(path.removeprefix(ATTRIBUTES))
        return self.fixed.get(path)

    def read_changed(self, path: str, last_etag: str, seconds: float) -> str | None:
        """Return what is there once its ETag is another one, or after so many seconds."""
        with self.changed:
            self.changed.wait_for(lambda: etag_of(self.read(path)) != last_etag, seconds * SECONDS)
            return self.read(path)

    def write(self, key: str, value: str) -> bool:
        if self.attributes.get("enable-guest-attributes") != "TRUE":
            return False
        with self.changed:
            self.told.append((key, value))
            if value:
                self.guest[key] = value
            else:
                self.guest.pop(key, None)
            self.changed.notify_all()
        return True


def etag_of(value: str | None) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


class _Handler(BaseHTTPRequestHandler):
    metadata: Metadata

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        path = url.path.removeprefix(PREFIX)
        if not self._admitted():
            return
        if query.get("wait_for_change") == "true":
            value = self.metadata.read_changed(path, query.get("last_etag", ""), float(query["timeout_sec"]))
        else:
            value = self.metadata.read(path)
        self._reply(404 if value is None else 200, value or "")

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self._written(body)

    def do_DELETE(self) -> None:
        self._written("")

    def _written(self, value: str) -> None:
        if self._admitted():
            key = self.path.removeprefix(PREFIX + GUEST)
            self._reply(200 if self.metadata.write(key, value) else 403, "")

    def _admitted(self) -> bool:
        if self.metadata.away:
            self._reply(503, "")
            if self.command == "GET":
                self.metadata.in_vain.set()
            return False
        if self.headers.get("Metadata-Flavor") != "Google":
            self.metadata.refused.append(self.path)
            self._reply(403, "")
            return False
        return True

    def _reply(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Metadata-Flavor", "Google")
        self.send_header("ETag", etag_of(text))
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - http.server calls it so
        """Keep quiet."""


@contextmanager
def serving(metadata: Metadata) -> Iterator[str]:
    """Serve it; yield host:port."""

    handler = type("Handler", (_Handler,), {"metadata": metadata})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
