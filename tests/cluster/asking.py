"""Requests to an API server as they go over the wire, and what comes back; nothing is hidden by a client library."""

from __future__ import annotations

import base64
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson
import pytest
import urllib3
import yaml

from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.testing.waiting import until

Json = dict[str, Any]
LIVE = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.real]
"""The marks of every file here."""
TOO_MANY = 429
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

GROUPS = {
    "/apis/apps/v1": ("deployments", "daemonsets", "replicasets"),
    "/apis/batch/v1": ("jobs",),
    "/apis/coordination.k8s.io/v1": ("leases",),
    "/apis/jobset.x-k8s.io/v1alpha2": ("jobsets",),
    "/apis/rbac.authorization.k8s.io/v1": ("roles", "rolebindings", "clusterroles", "clusterrolebindings"),
    "/apis/scheduling.k8s.io/v1": ("priorityclasses",),
    "/apis/apiextensions.k8s.io/v1": ("customresourcedefinitions",),
}
"""Which kinds are served where; the others are core kinds."""
_ROOTS = {plural: root for root, plurals in GROUPS.items() for plural in plurals}


def path(plural: str, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Return the path of a collection, of an object in it, or of an object's subresource."""
    within = f"namespaces/{namespace}" if namespace else ""
    return "/".join(filter(None, [_ROOTS.get(plural, "/api/v1"), within, plural, name, subresource]))


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API server answered: a status code, a body, and the texts of its Warning headers."""

    code: int
    body: Any
    warnings: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """Return the reason of a refusal, a metav1.Status."""
        return str(self.body.get("reason", ""))

    @property
    def refusal(self) -> tuple[int, str]:
        """Return what clients go by: the code and the reason."""
        return self.code, self.reason

    @property
    def fields(self) -> set[str]:
        """Return the fields that the causes of a refusal name."""
        return {cause.get("field", "") for cause in (self.body.get("details") or {}).get("causes") or ()}


@dataclass(slots=True)
class Events:
    """The events of a watch, each waited for up to a deadline."""

    response: urllib3.BaseHTTPResponse
    _begun: bytes = b""
    _lines: deque[bytes] = field(default_factory=deque)

    def __iter__(self) -> Iterator[Json]:
        return self

    def __next__(self) -> Json:
        """Return the next event; raise StopIteration when the server ends the watch."""
        while not self._lines:
            chunk = self.response.read1(1 << 16)
            if not chunk:
                raise StopIteration
            *lines, self._begun = (self._begun + chunk).split(b"\n")
            self._lines.extend(lines)
        event: Json = orjson.loads(self._lines.popleft())
        return event

    def until(self, wanted: Callable[[Json], bool]) -> list[Json]:
        """Return the events up to the first that is wanted."""
        seen: list[Json] = []
        for event in self:
            seen.append(event)
            if wanted(event):
                return seen
        raise AssertionError(f"the watch ended: {[(each['type'], version_of(each)) for each in seen]}")

    def changes(self, count: int) -> list[Json]:
        """Return the next events that are no bookmarks."""
        seen: list[Json] = []
        while len(seen) < count:
            seen += [event for event in [next(self)] if event["type"] != "BOOKMARK"]
        return seen


def version_of(event: Json) -> str:
    return str(event["object"]["metadata"].get("resourceVersion", ""))


class Api:
    """An API server, asked as the user of a kubeconfig, or with another token, or with none (an empty one)."""

    def __init__(self, kubeconfig: Path, token: str | None = None) -> None:
        document = yaml.safe_load(kubeconfig.read_text())
        cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
        trusted = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self.address: str = cluster["server"]
        self.token: str = user["token"] if token is None else token
        self._pool = urllib3.PoolManager(ca_cert_data=trusted, retries=False)
        self._kubeconfig = kubeconfig

    def with_token(self, token: str) -> Api:
        return Api(self._kubeconfig, token)

    def close(self) -> None:
        self._pool.clear()

    def ask(self, method: str, where: str, body: Any = None, **params: Any) -> Answer:
        """Send one request, again while the server asks to come back later, as it does if it is busy or a kind changes.

        The parameters `kind` and `accept` are the headers Content-Type and Accept.
        """
        response = until(lambda: self._answered(method, where, body, params), f"an answer to {method} {where}")
        assert response is not None
        found = orjson.loads(response.data) if response.data[:1] in (b"{", b"[") else response.data.decode()
        return Answer(
            response.status, found, tuple(each.replace('\\"', '"') for each in response.headers.getlist("Warning"))
        )

    def _answered(self, method: str, where: str, body: Any, params: dict[str, Any]) -> urllib3.BaseHTTPResponse | None:
        response = self._send(method, where, body, dict(params), preload=True)
        return None if response.status == TOO_MANY and "Retry-After" in response.headers else response

    def get(self, where: str, **params: Any) -> Answer:
        return self.ask("GET", where, **params)

    def put(self, where: str, body: Any, **params: Any) -> Answer:
        return self.ask("PUT", where, body, **params)

    def post(self, where: str, body: Any, **params: Any) -> Answer:
        return self.ask("POST", where, body, **params)

    def patch(self, where: str, body: Any, kind: str = MERGE, **params: Any) -> Answer:
        return self.ask("PATCH", where, body, kind=kind, **params)

    def delete(self, where: str, body: Any = None, **params: Any) -> Answer:
        return self.ask("DELETE", where, body, **params)

    def read(self, where: str, **params: Any) -> Json:
        """Return an object or a list that is there."""
        return done(self.get(where, **params))

    def create(self, where: str, body: Any) -> Json:
        """Create an object that is not refused."""
        return done(self.post(where, body))

    @contextmanager
    def watch(self, where: str, **params: Any) -> Iterator[Events]:
        """Open a watch; leaving the block ends it."""
        response = self._send("GET", where, None, {"watch": "true", **params}, preload=False)
        try:
            assert response.status == 200, response.read()
            yield Events(response)
        finally:
            response.close()

    def _send(
        self, method: str, where: str, body: Any, params: dict[str, Any], *, preload: bool
    ) -> urllib3.BaseHTTPResponse:
        kind, accept = params.pop("kind", "application/json"), params.pop("accept", "application/json")
        headers = {"Accept": accept, "User-Agent": "conformance/1"}
        headers |= {"Authorization": f"Bearer {self.token}"} if self.token else {}
        headers |= {"Content-Type": kind} if body is not None else {}
        query = urlencode({name: str(value) for name, value in params.items()})
        return self._pool.request(
            method,
            f"{self.address}{where}" + (f"?{query}" if query else ""),
            body=body if isinstance(body, bytes | None) else orjson.dumps(body),
            headers=headers,
            preload_content=preload,
            timeout=urllib3.Timeout(connect=PATIENCE_SECONDS, read=PATIENCE_SECONDS),
        )


def done(answer: Answer) -> Json:
    """Return the body of an answer that is no refusal."""
    assert answer.code < 300, answer
    body: Json = answer.body
    return body
