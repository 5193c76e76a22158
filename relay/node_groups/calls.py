"""What the relay reads and writes beyond `relay.cluster` in a self-managed cluster, through the official client."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from kubernetes import client

from relay.cluster import LIST_TIMEOUTS, NOT_FOUND, PLURALS, TIMEOUTS, Cluster, converted_errors, raw
from relay.joining.authorities import ca_hashes
from tpu_slices.domain.model.slices import ClaimId, Owner
from tpu_slices.domain.planning.pool_labels import ATTEMPT_LABEL, SLICE_ID_LABEL
from tpu_slices.ports.errors import Temporary

TOO_MANY_REQUESTS = 429
TOKENS_NAMESPACE = "kube-system"
"""Where Kubernetes looks for bootstrap tokens."""
ROOT_AUTHORITIES = "kube-root-ca.crt"


class SelfManagedCluster(Cluster):
    """Single calls; they raise as those of `Cluster` do."""

    def ca_hashes(self) -> tuple[str, ...]:
        """Return what proves the API server to hosts that join; see `relay.joining.authorities`."""
        with converted_errors():
            read = partial(self._core.read_namespaced_config_map, ROOT_AUTHORITIES)
            found = raw(read, TOKENS_NAMESPACE, seconds=TIMEOUTS)
        try:
            return ca_hashes(found["data"]["ca.crt"])
        except (KeyError, TypeError, ValueError) as error:
            raise Temporary(f"ConfigMap {TOKENS_NAMESPACE}/{ROOT_AUTHORITIES}: ca.crt has no certificates") from error

    def create_token(self, secret: Mapping[str, Any]) -> None:
        """Create a bootstrap token; one of that name is Temporary: another name is drawn the next time."""
        with converted_errors():
            self._core.create_namespaced_secret(
                TOKENS_NAMESPACE, dict(secret), _request_timeout=TIMEOUTS, _preload_content=False
            )

    def delete_tokens(self, selector: str) -> None:
        """Delete the bootstrap tokens with these labels."""
        with converted_errors():
            self._core.delete_collection_namespaced_secret(
                TOKENS_NAMESPACE, label_selector=selector, _request_timeout=TIMEOUTS, _preload_content=False
            )

    def patch_group(self, owner: Owner, patch: Mapping[str, Any]) -> None:
        """Send a JSON merge patch of a TPUNodeGroup. One that is gone is ignored; a conflict is Temporary."""
        self._patch_group(self._custom.patch_namespaced_custom_object, owner, patch)

    def patch_group_status(self, owner: Owner, patch: Mapping[str, Any]) -> None:
        """Send a JSON merge patch of a TPUNodeGroup's status, as `patch_group` does."""
        self._patch_group(self._custom.patch_namespaced_custom_object_status, owner, patch)

    def _patch_group(self, send: Callable[..., Any], owner: Owner, patch: Mapping[str, Any]) -> None:
        group, _, version = owner.kind.api_version.partition("/")
        with converted_errors(NOT_FOUND):
            send(
                group,
                version,
                owner.namespace,
                PLURALS[owner.kind],
                owner.name,
                dict(patch),
                _content_type="application/merge-patch+json",
                _request_timeout=TIMEOUTS,
                _preload_content=False,
            )

    def nodes_of_slice(self, slice_id: ClaimId) -> Mapping[str, int | None]:
        """Return the nodes of all pools of a slice, by name, each with its attempt; None: its label names none."""
        with converted_errors():
            selector = f"{SLICE_ID_LABEL}={slice_id}"
            nodes = raw(partial(self._core.list_node, label_selector=selector), seconds=LIST_TIMEOUTS)
        found = (node["metadata"] for node in nodes["items"])
        attempts = {node["name"]: node["labels"].get(ATTEMPT_LABEL, "") for node in found}
        return {name: int(text) if text.isdecimal() else None for name, text in attempts.items()}

    def nodes(self) -> Sequence[Mapping[str, Any]]:
        """Return all v1 Nodes; listed as `nodes_of` does."""
        with converted_errors():
            listed: Sequence[Mapping[str, Any]] = raw(partial(self._core.list_node), seconds=LIST_TIMEOUTS)["items"]
        return listed

    def delete_node(self, node: str) -> None:
        """Delete a Node object, whose machine is gone; one that is gone itself is ignored."""
        with converted_errors(NOT_FOUND):
            self._core.delete_node(node, _request_timeout=TIMEOUTS, _preload_content=False)

    def pods_on(self, node: str) -> Sequence[Mapping[str, Any]]:
        """Return the v1 Pods on a node; listed as `nodes_of` does."""
        pods = partial(self._core.list_pod_for_all_namespaces, field_selector=f"spec.nodeName={node}")
        with converted_errors():
            listed: Sequence[Mapping[str, Any]] = raw(pods, seconds=LIST_TIMEOUTS)["items"]
        return listed

    def evict(self, namespace: str, pod: str) -> None:
        """Ask for a pod's eviction; that it is gone, or that a disruption budget does not allow it yet, is ignored."""
        body = client.V1Eviction(metadata=client.V1ObjectMeta(namespace=namespace, name=pod))
        with converted_errors(NOT_FOUND, TOO_MANY_REQUESTS):
            self._core.create_namespaced_pod_eviction(
                pod, namespace, body, _request_timeout=TIMEOUTS, _preload_content=False
            )
