"""Objects as JSON, and what controllers do with them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

import orjson

Object = dict[str, Any]
"""A Kubernetes object as JSON."""


def copied(obj: Object) -> Object:
    """Return a deep copy; several times faster than copy.deepcopy."""
    copy: Object = orjson.loads(orjson.dumps(obj))
    return copy


def timestamp(moment: datetime) -> str:
    """Format a metav1.Time: RFC 3339, UTC, whole seconds. `moment` is timezone-aware and in UTC."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def exact_timestamp(moment: datetime) -> str:
    """Format a metav1.MicroTime, as `timestamp`."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Objects(Protocol):
    """The objects of a cluster, as controllers see and change them. Kinds are named by their plural.

    All methods raise ApiError. What was written is seen by the reads that follow.
    """

    def stored(self, plural: str, namespace: str | None = None) -> Sequence[Object]:
        """Return all objects of a kind, or those of a namespace. They are for reading only."""
        ...

    def get(self, plural: str, namespace: str | None, name: str) -> Object:
        """Return a copy of an object. Raise ApiError 404."""
        ...

    def create(self, plural: str, obj: Object) -> Object: ...

    def update(self, plural: str, obj: Object, *, status: bool = False) -> Object:
        """Replace an object, or only its status, if it still has the same metadata.resourceVersion."""
        ...

    def patch(self, plural: str, namespace: str | None, name: str, change: Object, *, status: bool = False) -> Object:
        """Apply a JSON merge patch to an object, or to its status."""
        ...

    def delete(
        self,
        plural: str,
        namespace: str | None,
        name: str,
        *,
        grace_seconds: int | None = None,
        propagation: str = "Background",
    ) -> None:
        """Delete an object, or begin to; without `grace_seconds` with its own grace."""
        ...
