"""Cloud Storage with memory: the objects of buckets, as far as gcloud asks for them to list, copy and delete."""

import base64
import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tests.infra.loopback import NOT_FOUND, Request, Response, refusal

_PATH = re.compile(
    r"/(?:download/|upload/|resumable/upload/)?storage/v1/b/(?P<bucket>[\w-]+)(?:/storageLayout|(?P<objects>/o(?:/(?P<name>.+))?)?)"
)

_COPY = re.compile(r"/storage/v1/b/(?P<source>[\w-]+)/o/(?P<old>.+)/rewriteTo/b/(?P<bucket>[\w-]+)/o/(?P<new>.+)")


@dataclass
class Objects:
    """By bucket, then by name."""

    buckets: dict[str, dict[str, bytes]]
    url: str = ""

    def answer(self, request: Request) -> Response:
        if copied := _COPY.fullmatch(request.path):
            return self._copy(**copied.groupdict())
        if request.path == "/storage/v1/b":
            return Response({"items": [{"kind": "storage#bucket", "name": name} for name in self.buckets]})
        match = _PATH.fullmatch(request.path)
        if match is None or match["bucket"] not in self.buckets:
            return refusal(NOT_FOUND)
        bucket, name, held = match["bucket"], match["name"], self.buckets[match["bucket"]]
        if "upload" in request.path:
            return self._upload(request, bucket)
        if match["objects"] is None:
            return Response({"name": bucket})
        if name is None:
            return Response(self._listed(bucket, **request.query))
        if name not in held:
            return refusal(NOT_FOUND)
        if request.method == "DELETE":
            del held[name]
            return Response(b"")
        return Response(held[name] if request.query.get("alt") == "media" else self._described(bucket, name))

    def _upload(self, request: Request, bucket: str) -> Response:
        name, data = _parts(request.data)
        self.buckets[bucket][name] = data
        return Response(self._described(bucket, name))

    def _copy(self, source: str, old: str, bucket: str, new: str) -> Response:
        if bucket not in self.buckets or old not in self.buckets.get(source, {}):
            return refusal(NOT_FOUND)
        self.buckets[bucket][new] = self.buckets[source][old]
        return Response({"done": True, "resource": self._described(bucket, new)})

    def _described(self, bucket: str, name: str) -> dict[str, Any]:
        data = self.buckets[bucket][name]
        return {
            "kind": "storage#object",
            "bucket": bucket,
            "name": name,
            "size": str(len(data)),
            "generation": "1",
            "etag": "CAE=",
            "metageneration": "1",
            "mediaLink": f"{self.url}/download/storage/v1/b/{bucket}/o/{quote(name, safe='')}?alt=media",
            "md5Hash": base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode(),
        }

    def _listed(self, bucket: str, prefix: str = "", delimiter: str = "", **_: str) -> dict[str, Any]:
        """Return the objects whose names begin so, and the folders that they are in below that."""
        items, folders = [], set()
        for name in sorted(self.buckets[bucket]):
            if name.startswith(prefix):
                folder, cut, _rest = name[len(prefix) :].partition(delimiter) if delimiter else (name, "", "")
                if cut:
                    folders.add(prefix + folder + delimiter)
                else:
                    items.append(self._described(bucket, name))
        return {"items": items, "prefixes": sorted(folders)}


def _parts(data: bytes) -> tuple[str, bytes]:
    """Return the name and the content of an object that is uploaded at once: its metadata, then itself, in MIME."""
    boundary = data.partition(b"\n")[0]
    _, metadata, content, _ = (part.partition(b"\n\n")[2].removesuffix(b"\n") for part in data.split(boundary))
    name: str = json.loads(metadata)["name"]
    return name, content
