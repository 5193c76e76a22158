"""Google's REST APIs and an API server on loopback: they answer what a test has put there, and 404 to all else."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

SERVICES = (
    "artifactregistry", "cloudresourcemanager", "compute", "container", "firestore", "iam", "serviceusage", "storage",
)  # fmt: skip


@dataclass
class Cloud:
    """`documents` by path, without the query; a whole number instead of a document is a status to refuse with."""

    url: str
    documents: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    @property
    def hosts(self) -> dict[str, str]:
        return dict.fromkeys(SERVICES, self.url)


def _handler(cloud: Cloud) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            path = urlsplit(self.path).path
            cloud.asked.append(f"{self.command} {path}")
            document = cloud.documents.get(path, 404)
            refused = isinstance(document, int)
            body = {"error": {"message": f"refused with {document}"}} if refused else document
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(document if refused else 200)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _answer  # noqa: N815 - http.server's names

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its signature
            """Nothing is logged."""

    return Handler


@contextmanager
def serving() -> Iterator[Cloud]:
    cloud = Cloud("")
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(cloud)) as server:
        cloud.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield cloud
        finally:
            server.shutdown()
            thread.join()
