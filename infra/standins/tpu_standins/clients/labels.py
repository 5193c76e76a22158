"""Labels by which local programs know what is theirs, in a cluster that may have other users."""

from collections.abc import Mapping
from types import MappingProxyType

from tpu_standins.clients.objects import Object

OURS: Mapping[str, str] = MappingProxyType({"app.kubernetes.io/managed-by": "tpu-slices-local"})
"""Of what local programs make and remove again."""

HOST = "tpu-slices.local/host"
"""With the value `true`, of the Nodes of local hosts. All other Nodes are somebody's."""

HOSTS = f"{HOST}=true,cloud.google.com/gke-nodepool"
"""The selector of these Nodes."""


def selector(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in labels.items())


def marked(obj: Object) -> Object:
    """Return the object with the labels of what is ours."""
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **OURS}}}
