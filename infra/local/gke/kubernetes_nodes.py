"""Node objects in the Kubernetes API, through the official client."""

import contextlib
from collections.abc import Iterator
from typing import Any, Self

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from infra.local.gke.hosts import TERMINATION, Manifest
from infra.local.gke.nodes import NodesUnavailableError

_NOT_FOUND = 404
_CONFLICT = 409
_NO_EVICTION = (404, 405, 501)
"""Codes of a server without the eviction subresource, or for a pod that is gone: then, like kubectl drain, delete."""

_TIMEOUT = (2.0, 5.0)
"""Connect and read timeouts in seconds."""


class KubernetesNodes:
    """Implements `nodes.Nodes`."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._core = client.CoreV1Api(connection)

    @classmethod
    def at(cls, url: str) -> Self:
        """Connect to an API server over plain HTTP, without authentication."""
        return cls(client.ApiClient(client.Configuration(host=url)))

    @classmethod
    def from_kubeconfig(cls, path: str) -> Self:
        loaded = client.Configuration()
        load: Any = config.load_kube_config
        load(config_file=path, client_configuration=loaded)
        return cls(client.ApiClient(loaded))

    def close(self) -> None:
        self._connection.close()
        self._connection.rest_client.pool_manager.clear()

    def register(self, node: Manifest) -> None:
        with _temporary():
            try:
                self._create(node)
            except ApiException as error:
                if error.status != _CONFLICT:
                    raise
                self._patch(node)

    def update(self, node: Manifest) -> None:
        with _temporary():
            try:
                self._patch(self._as_it_stands(node))
            except ApiException as error:
                if error.status != _NOT_FOUND:
                    raise
                self._create(node)

    def drain(self, name: str) -> None:
        with _temporary():
            for pod in self._pods_on(name):
                self._evict(pod.metadata.namespace, pod.metadata.name)

    def remove(self, name: str) -> None:
        with _temporary(), _gone_already():
            self._core.delete_node(name, _request_timeout=_TIMEOUT)

    def _evict(self, namespace: str, name: str) -> None:
        eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name=name, namespace=namespace))
        try:
            self._core.create_namespaced_pod_eviction(name, namespace, eviction, _request_timeout=_TIMEOUT)
        except ApiException as error:
            if error.status not in _NO_EVICTION:
                raise
            with _gone_already():
                self._core.delete_namespaced_pod(name, namespace, _request_timeout=_TIMEOUT)

    def _as_it_stands(self, node: Manifest) -> Manifest:
        """Return the Node with its current taints, but the given termination notice; concurrent changes conflict."""
        known = self._core.read_node(node["metadata"]["name"], _request_timeout=_TIMEOUT)
        standing = self._connection.sanitize_for_serialization(known)
        taints = [taint for taint in standing["spec"].get("taints") or () if taint["key"] != TERMINATION]
        taints += [taint for taint in node["spec"]["taints"] if taint["key"] == TERMINATION]
        version = {key: standing["metadata"][key] for key in ("resourceVersion",) if key in standing["metadata"]}
        return {**node, "metadata": {**node["metadata"], **version}, "spec": {**node["spec"], "taints": taints}}

    def _create(self, node: Manifest) -> None:
        self._core.create_node(client.V1Node.model_validate(node), _request_timeout=_TIMEOUT)

    def _patch(self, node: Manifest) -> None:
        name = node["metadata"]["name"]
        self._core.patch_node(name, {"metadata": node["metadata"], "spec": node["spec"]}, _request_timeout=_TIMEOUT)
        self._core.patch_node_status(name, {"status": node["status"]}, _request_timeout=_TIMEOUT)

    def _pods_on(self, name: str) -> list[Any]:
        selector = f"spec.nodeName={name}"
        found = self._core.list_pod_for_all_namespaces(field_selector=selector, _request_timeout=_TIMEOUT)
        return [pod for pod in found.items if pod.spec and pod.spec.node_name == name]


@contextlib.contextmanager
def _temporary() -> Iterator[None]:
    try:
        yield
    except (ApiException, HTTPError) as error:
        raise NodesUnavailableError(f"{type(error).__name__}: {error}") from error


@contextlib.contextmanager
def _gone_already() -> Iterator[None]:
    try:
        yield
    except ApiException as error:
        if error.status != _NOT_FOUND:
            raise
