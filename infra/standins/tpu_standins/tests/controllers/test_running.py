"""When a controller counts as ready: its webhooks are served, not only its port."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tpu_standins.certificates import Certificates, certificates
from tpu_standins.controllers.manifests import HOST, Place
from tpu_standins.controllers.running import is_ready

pytestmark = pytest.mark.enable_socket

PATHS = ("/mutate", "/validate")
QUESTION = {"kind": "AdmissionReview"}


@contextmanager
def answering(*known: str, own: Certificates | None = None) -> Iterator[int]:
    """Serve these paths, and 404 for any other; yield the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path in known else 404)
            self.end_headers()

        def do_POST(self) -> None:
            said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200 if self.path in known and said == QUESTION else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Write no log."""

    server = ThreadingHTTPServer((HOST, 0), Handler)
    if own is not None:
        server.socket = own.context().wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("healthy", "served", "ready"),
    [
        (("/readyz",), PATHS, True),
        (("/readyz",), ("/mutate",), False),
        (("/readyz",), (), False),
        ((), PATHS, False),
    ],
    ids=["all", "a webhook is not registered yet", "none is", "it says that it is not"],
)
def test_it_is_ready_once_it_says_so_and_serves_each_webhook(
    tmp_path: Path, healthy: tuple[str, ...], served: tuple[str, ...], *, ready: bool
) -> None:
    own = certificates(HOST, datetime.now(UTC))
    with answering(*healthy) as health_port, answering(*served, own=own) as webhook_port:
        place = Place(folder=tmp_path, webhook_port=webhook_port, health_port=health_port)
        asked = is_ready(place, dict.fromkeys(PATHS, QUESTION))
        place.authority.write_bytes(own.authority)
        assert asked() is ready
