"""A bucket of Cloud Storage on loopback, as far as the trainer's libraries use its JSON API.

Facts: https://docs.cloud.google.com/storage/docs/json_api/v1/objects, and multipart uploads in docs/uploading-objects.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import md5
from threading import Event
from typing import Any

from tests.infra.loopback import Request, Response, refusal, serving

Json = dict[str, Any]


@dataclass(slots=True)
class Bucket:
    """Objects by name. Who asks may read and write them, and nothing else, not even look at the bucket itself."""

    objects: dict[str, bytes] = field(default_factory=dict)
    held: str = ""
    """What is moved to this name stays: the request waits until it is let go, and is refused then."""
    waiting: Event = field(default_factory=Event)
    let_go: Event = field(default_factory=Event)

    def answer(self, request: Request) -> Response:
        path = re.fullmatch(r"(/upload|/download|)/storage/v1/b/runs/o/?(.*)", request.path)
        if path is None:
            return refusal(403)
        kind, name = path.groups()
        match kind, request.method:
            case "/upload", "POST":
                return self._written(request)
            case "", "GET" if not name:
                return self._listed(request.query.get("prefix", ""))
            case "", "POST" if "/moveTo/o/" in name:
                return self._moved(*name.split("/moveTo/o/"))
            case _, _ if name not in self.objects:
                return refusal(404)
            case "/download", _:
                return Response(self.objects[name])
            case _:
                return Response(self._described(name))

    def _written(self, request: Request) -> Response:
        boundary, _, _ = request.data.lstrip().partition(b"\n")
        _, described, content, _ = request.data.split(boundary.rstrip())
        name = json.loads(_body(described))["name"]
        self.objects[name] = _body(content)
        return Response(self._described(name))

    def _moved(self, source: str, target: str) -> Response:
        if target == self.held:
            self.waiting.set()
            self.let_go.wait()
            return refusal(503)
        self.objects[target] = self.objects.pop(source)
        return Response(self._described(target))

    def _listed(self, prefix: str) -> Response:
        return Response({"items": [self._described(name) for name in self.objects if name.startswith(prefix)]})

    def _described(self, name: str) -> Json:
        content = self.objects[name]
        checksum = base64.b64encode(md5(content, usedforsecurity=False).digest()).decode()
        return {"name": name, "bucket": "runs", "size": str(len(content)), "generation": "1", "md5Hash": checksum}


def _body(part: bytes) -> bytes:
    """Return the content of a part of a multipart upload, whose lines end as its writer likes."""
    _, content = re.split(rb"\r?\n\r?\n", part, maxsplit=1)
    return re.sub(rb"\r?\n$", b"", content)


@contextmanager
def bucket() -> Iterator[tuple[Bucket, str]]:
    """Serve an empty bucket named `runs`, and yield it with its URL."""
    made = Bucket()
    with serving(made.answer) as url:
        yield made, url
