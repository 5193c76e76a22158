"""An API server without a network, whose clock is advanced only by the test, and builders of its objects."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any

import orjson

from infra.local.cluster.api import Answer, Api, Call
from infra.local.cluster.objects import Object, Objects
from infra.local.cluster.watch import Watches

JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
PODS = "/api/v1/namespaces/default/pods"
EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
POOL = "cloud.google.com/gke-nodepool"


@dataclass
class World:
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    window: int = 2000
    bookmark_seconds: float = 60.0
    objects: Objects = field(init=False)
    watches: Watches = field(init=False)
    api: Api = field(init=False)

    def __post_init__(self) -> None:
        self.objects = Objects(lambda: self.now, random=Random(7), window=self.window)
        self.watches = Watches(self.objects)
        self.api = Api(self.objects, self.watches, lambda: self.now, self.bookmark_seconds)

    def answer(
        self, method: str, path: str, body: Any = None, *, kind: str = "application/json", **params: str
    ) -> Answer:
        """Send a request and return its response; `accept` and `agent` among the parameters are headers."""
        accept, agent = params.pop("accept", "application/json"), params.pop("agent", "")
        data = b"" if body is None else orjson.dumps(body)
        return self.api.serve(
            Call(method=method, path=path, params=params, content_type=kind, accept=accept, body=data, agent=agent)
        )

    def call(self, method: str, path: str, body: Any = None, **more: str) -> dict[str, Any]:
        """Send a request and return the JSON of the response."""
        found = self.answer(method, path, body, **more).body
        assert isinstance(found, dict)
        read: dict[str, Any] = orjson.loads(orjson.dumps(found))
        return read

    def watch(self, path: str, **params: str) -> AsyncIterator[dict[str, Any]]:
        """Open a watch and yield its events."""
        lines = self.answer("GET", path, watch="true", **params).body
        assert isinstance(lines, AsyncIterator)
        return _events(lines)


async def _events(lines: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any]]:
    async for line in lines:
        yield orjson.loads(line)


def metadata(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "namespace": "default"} | more


def pod(name: str = "one", *, node: str = "", **meta: Any) -> Object:
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": "python:3.12"}]}
    return {"metadata": metadata(name, **meta), "spec": spec | ({"nodeName": node} if node else {})}


def node(name: str = "host", **labels: str) -> Object:
    return {"metadata": {"name": name, "labels": labels}}


def job(name: str = "work", **meta: Any) -> Object:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "python:3.12"}]}}
    return {"metadata": metadata(name, **meta), "spec": {"template": template}}


def jobset(name: str = "train", *, replicas: int = 2, **spec: Any) -> Object:
    pods = {
        "nodeSelector": {"cloud.google.com/gke-tpu-topology": "4x4"},
        "containers": [{"name": "main", "image": "python:3.12", "resources": {"limits": {"google.com/tpu": 4}}}],
    }
    jobs = {"parallelism": 4, "completions": 4, "template": {"spec": pods}}
    replicated = {"name": "slice", "replicas": replicas, "template": {"spec": jobs}}
    return {"metadata": metadata(name), "spec": {"replicatedJobs": [replicated]} | spec}


def owned_by(owner: Object, *, blocks: bool = False) -> dict[str, Any]:
    """Return metadata with an owner reference."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": blocks,
    }
    return {"ownerReferences": [reference]}
