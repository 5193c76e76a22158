"""The metadata server of Google Cloud, as far as a token of the own service account needs it, and who asks it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

from tpu_standins.patience import PATIENCE_SECONDS

TOKEN = "t-1"
GET_TOKEN = """
import google.auth
from google.auth.transport.requests import Request
credentials, _ = google.auth.default()
credentials.refresh(Request())
print(credentials.token)
"""


class _Metadata(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        account = {"email": "own", "scopes": ["all"], "aliases": ["default"]}
        token = {"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"}
        found = token if "service-accounts/default/token" in self.path else account
        text = "shop" if self.path.endswith("project-id") else json.dumps(found)
        self.send_response(200)
        self.send_header("Metadata-Flavor", "Google")
        self.send_header("Content-Type", "text/plain" if text == "shop" else "application/json")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - http.server calls it so
        """Keep quiet."""


@contextmanager
def metadata() -> Iterator[str]:
    """Serve it; yield host:port."""
    with HTTPServer(("127.0.0.1", 0), _Metadata) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def asking(server: str) -> dict[str, str]:
    """Return the environment of a program that finds this server, however slow that is, and no other credentials."""
    return {
        "GCE_METADATA_HOST": server,
        "GCE_METADATA_IP": server,
        "GCE_METADATA_TIMEOUT": f"{PATIENCE_SECONDS:.0f}",
        "HOME": "/nowhere",
    }
