"""The embedded API server without a network, asked as its administrator, whose clock only the test advances."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from tpu_standins.embedded.http.requests import Answer, read
from tpu_standins.embedded.http.verbs import Verbs
from tpu_standins.embedded.store.objects import Objects

PODS = "/api/v1/namespaces/default/pods"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SPEC: dict[str, Any] = {"containers": [{"name": "main", "image": "python:3.12"}]}


@dataclass
class World:
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    window: int = 2000
    verbs: Verbs = field(init=False)

    def __post_init__(self) -> None:
        self.objects = Objects(lambda: self.now, window=self.window)
        self.verbs = Verbs(self.objects, lambda: self.now, 60.0, "")
        asyncio.run(self.verbs.begin())

    def answer(self, method: str, path: str, body: Any = None, kind: str = "application/json", **params: str) -> Answer:
        data = b"" if body is None else orjson.dumps(body)
        return asyncio.run(self.verbs.serve(read(method, path, params, {"content-type": kind}, data)))

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json", **params: str) -> Any:
        """Send a request and return the JSON of the answer."""
        return orjson.loads(orjson.dumps(self.answer(method, path, body, kind, **params).body))

    def seen(self, path: str, events: int, **params: str) -> list[dict[str, Any]]:
        """Return the first events of a watch."""

        async def collect() -> list[dict[str, Any]]:
            asked = read("GET", path, {"watch": "true", **params}, {}, b"")
            lines = (await self.verbs.serve(asked)).body
            assert isinstance(lines, AsyncGenerator)
            async with aclosing(lines):
                return [orjson.loads(await anext(lines)) for _ in range(events)]

        return asyncio.run(collect())


def pod(name: str = "one", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": SPEC | spec}


def definition(plural: str = "toys", kind: str = "Toy") -> dict[str, Any]:
    column = {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
    version = {"name": "v1", "served": True, "storage": True, "additionalPrinterColumns": [column]}
    spec = {"group": "example.com", "scope": "Namespaced", "versions": [version | {"subresources": {"status": {}}}]}
    return {"metadata": {"name": f"{plural}.example.com"}, "spec": spec | {"names": {"plural": plural, "kind": kind}}}
