"""Node objects in the Kubernetes API."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from tpu_standins.clients.api import Api
from tpu_standins.clients.errors import ApiError, gone_already
from tpu_standins.clients.kinds import KINDS
from tpu_standins.clients.labels import HOSTS
from tpu_standins.clients.objects import Object
from tpu_standins.cloud.hosts import TERMINATION, Manifest, Readiness, ready_condition
from tpu_standins.cloud.nodes import NodesUnavailableError, with_labels_alone

_NOT_FOUND = 404
_CONFLICT = 409
_NO_EVICTION = (404, 405, 501)
"""Codes of a server without the eviction subresource, or for a pod that is gone: then, like kubectl drain, delete."""

_PODS = KINDS["pods"]


class KubernetesNodes:
    """Implements `nodes.Nodes`. After each failure the kubeconfig is read again: a new server has new certificates.

    `selector`: of the Nodes that are kept.
    """

    def __init__(self, kubeconfig: Path, selector: str = HOSTS) -> None:
        self._kubeconfig = kubeconfig
        self._selector = selector
        self._api = Api.of(kubeconfig)

    def close(self) -> None:
        self._api.close()

    @contextlib.contextmanager
    def _temporary(self) -> Iterator[None]:
        try:
            yield
        except ApiError as error:
            self._api.close()
            self._api = Api.of(self._kubeconfig)
            raise NodesUnavailableError(f"{error.code} {error.reason}: {error}") from error

    def standing(self) -> Mapping[str, str]:
        with self._temporary():
            found = self._api.list("nodes", labelSelector=self._selector)["items"]
        return {node["metadata"]["name"]: _ready(node) for node in found}

    def register(self, node: Manifest) -> None:
        with self._temporary():
            try:
                self._api.create("nodes", node)
            except ApiError as error:
                if error.code != _CONFLICT:
                    raise
                self._patch(node)

    def update(self, node: Manifest) -> None:
        with self._temporary():
            try:
                self._patch(self._as_it_stands(node))
            except ApiError as error:
                if error.code != _NOT_FOUND:
                    raise
                self._api.create("nodes", with_labels_alone(node))

    def drain(self, name: str) -> None:
        with self._temporary():
            for pod in self._pods_on(name):
                self._evict(pod["metadata"]["namespace"], pod["metadata"]["name"])

    def remove(self, name: str) -> None:
        with self._temporary(), gone_already():
            self._api.delete("nodes", None, name)

    def silence(self, name: str) -> None:
        status = {"status": {"conditions": [ready_condition(Readiness.SILENT)]}}
        with self._temporary(), gone_already():
            self._api.patch("nodes", None, name, status, status=True)

    def _evict(self, namespace: str, name: str) -> None:
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
        }
        try:
            self._api.call("POST", _PODS.path(namespace, name, "eviction"), eviction)
        except ApiError as error:
            if error.code not in _NO_EVICTION:
                raise
            with gone_already():
                self._api.delete("pods", namespace, name)

    def _as_it_stands(self, node: Manifest) -> Manifest:
        """Return the Node with its current taints, but the given termination notice; concurrent changes conflict."""
        standing = self._api.get("nodes", None, node["metadata"]["name"])
        taints = [taint for taint in standing["spec"].get("taints") or () if taint["key"] != TERMINATION]
        taints += [taint for taint in node["spec"]["taints"] if taint["key"] == TERMINATION]
        version = {key: standing["metadata"][key] for key in ("resourceVersion",) if key in standing["metadata"]}
        return {**node, "metadata": {**node["metadata"], **version}, "spec": {**node["spec"], "taints": taints}}

    def _patch(self, node: Manifest) -> None:
        name = node["metadata"]["name"]
        self._api.patch("nodes", None, name, {"metadata": node["metadata"], "spec": node["spec"]})
        self._api.patch("nodes", None, name, {"status": node["status"]}, status=True)

    def _pods_on(self, name: str) -> list[Object]:
        """Return the pods that are bound to a Node, but those of DaemonSets: they go with it, as with kubectl drain."""
        found = self._api.list("pods", fieldSelector=f"spec.nodeName={name}")["items"]
        return [pod for pod in found if pod["spec"].get("nodeName") == name and not _of_daemonset(pod)]


def _ready(node: Object) -> str:
    conditions = node.get("status", {}).get("conditions") or ()
    return next((str(each["status"]) for each in conditions if each["type"] == "Ready"), "Unknown")


def _of_daemonset(pod: Object) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(owner.get("controller") and owner["kind"] == "DaemonSet" for owner in owners)
