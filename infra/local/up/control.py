"""The control endpoint of a running stack: HTTP on loopback.

GET  /            {"parts": {NAME: status}}
POST /NAME/stop   /NAME/start   /NAME/kill
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from infra.local.up.keeper import Keeper, Order, UnknownPart
from tpu_standins.patience import PATIENCE_SECONDS


@contextmanager
def listening(keeper: Keeper) -> Iterator[str]:
    """Serve orders until the block is left; yield the URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(keeper))
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="control", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def answer(keeper: Keeper, method: str, path: str) -> tuple[int, dict[str, Any]]:
    """Return the HTTP status and the JSON response."""
    if (method, path) == ("GET", "/"):
        return 200, {"parts": keeper.statuses()}
    _, name, verb, *rest = (*path.split("/"), "", "")
    try:
        order = Order(verb)
        if method != "POST" or any(rest):
            raise UnknownPart(f"no such order: {method} {path}")
        return 200, {"done": keeper.ask(order, name).result(PATIENCE_SECONDS)}
    except ValueError as error:
        return 404, {"error": str(error)}
    except TimeoutError:
        return 500, {"error": "no response in time"}


def _handler(keeper: Keeper) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        wbufsize = -1  # headers and body in one segment: a second one would wait for a delayed ACK
        timeout = PATIENCE_SECONDS

        def _answer(self) -> None:
            status, reply = answer(keeper, self.command, self.path)
            data = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _answer  # noqa: N815 - BaseHTTPRequestHandler names them so

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
            """Log nothing here: the keeper reports each order."""

    return Handler
