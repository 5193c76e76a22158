"""The part of a Kubernetes API server that hosts need, in memory: nodes, their status, pods by node."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

from tpu_standins.patience import PATIENCE_SECONDS

Manifest = dict[str, Any]
_NODE = re.compile(r"/api/v1/nodes/([^/]+)(/status)?")
_POD = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/]+)(/eviction)?")


class NodeApi:
    """Nodes and pods by name; `refusing` makes every call fail with 503; `evictions`: whether it supports eviction."""

    def __init__(self) -> None:
        self.nodes: dict[str, Manifest] = {}
        self.pods: dict[str, Manifest] = {}
        self.deleted_pods: list[str] = []
        self.evictions = False
        self.evicted_pods: list[str] = []
        self.refusing = False

    def bind(self, pod: str, node: str, owner: str = "Job") -> None:
        self.pods[pod] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": pod,
                "namespace": "default",
                "ownerReferences": [{"kind": owner, "name": "owner", "controller": True}],
            },
            "spec": {"nodeName": node, "containers": [{"name": "main"}]},
        }

    def answer(self, method: str, target: str, body: Manifest) -> tuple[int, Manifest]:
        if self.refusing:
            return _status(503)
        url = urlparse(target)
        if (method, url.path) == ("POST", "/api/v1/nodes"):
            return self._create(body)
        if (method, url.path) == ("GET", "/api/v1/nodes"):
            return 200, self._labelled(parse_qs(url.query)["labelSelector"][0])
        if (method, url.path) == ("GET", "/api/v1/pods"):
            return 200, self._list(parse_qs(url.query)["fieldSelector"][0])
        if found := _NODE.fullmatch(url.path):
            return self._node(method, found[1], body)
        if found := _POD.fullmatch(url.path):
            return self._evict_pod(found[2]) if found[3] else self._delete_pod(found[2])
        return _status(501)

    def _create(self, node: Manifest) -> tuple[int, Manifest]:
        name = node["metadata"]["name"]
        if name in self.nodes:
            return _status(409)
        self.nodes[name] = node
        return 201, node

    def _node(self, method: str, name: str, body: Manifest) -> tuple[int, Manifest]:
        if name not in self.nodes:
            return _status(404)
        if method == "DELETE":
            del self.nodes[name]
            return _status(200)
        for part, value in body.items():
            self.nodes[name][part] = {**self.nodes[name].get(part, {}), **value}
        return 200, self.nodes[name]

    def _labelled(self, selector: str) -> Manifest:
        wanted = [term.partition("=") for term in selector.split(",")]
        items = [
            node
            for node in self.nodes.values()
            if all(
                key in node["metadata"]["labels"] and value in ("", node["metadata"]["labels"][key])
                for key, _, value in wanted
            )
        ]
        return {"apiVersion": "v1", "kind": "NodeList", "metadata": {}, "items": items}

    def _list(self, selector: str) -> Manifest:
        node = selector.removeprefix("spec.nodeName=")
        items = [pod for pod in self.pods.values() if pod["spec"]["nodeName"] == node]
        return {"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": items}

    def _evict_pod(self, name: str) -> tuple[int, Manifest]:
        if not self.evictions:
            return _status(501)
        del self.pods[name]
        self.evicted_pods.append(name)
        return _status(201)

    def _delete_pod(self, name: str) -> tuple[int, Manifest]:
        if name not in self.pods:
            return _status(404)
        self.deleted_pods.append(name)
        return 200, self.pods.pop(name)


def _status(code: int) -> tuple[int, Manifest]:
    return code, {"apiVersion": "v1", "kind": "Status", "code": code}


def kubeconfig(url: str, path: Path) -> Path:
    """Write a kubeconfig for the API."""
    one = {
        "clusters": [{"name": "local", "cluster": {"server": url}}],
        "users": [{"name": "nobody", "user": {}}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": "nobody"}}],
    }
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "local", **one}))
    return path


@contextmanager
def serving(api: NodeApi) -> Iterator[str]:
    """Serve the API; yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        wbufsize = -1
        timeout = PATIENCE_SECONDS

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, reply = api.answer(self.command, self.path, json.loads(body or b"{}"))
            data = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815 - BaseHTTPRequestHandler names them so

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
