"""The calls to the API server that keep the mirror."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from relay.cluster import FORBIDDEN, NOT_FOUND, TIMEOUTS, converted_errors, is_namespace_gone, raw
from relay.mirror.objects import GROUP, MIRRORS, NAME, PLURALS, VERSION, Json
from tpu_slices.domain.records.mirror import MirrorKind

_PAGE = 500
_APPLY = "application/apply-patch+yaml"
_METADATA_ALONE = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


class NotInstalled(Exception):
    """The kinds of the mirror are not installed, or the relay has no right to write them."""


class MirrorCalls:
    """Single calls. They raise Temporary and Permanent as those of `relay.cluster.Cluster` do."""

    def __init__(self, api: client.ApiClient) -> None:
        self._custom: Any = client.CustomObjectsApi(api)

    def objects(self, kind: MirrorKind) -> Iterator[Json]:
        """Yield the metadata of all objects of a kind, read in pages; raise NotInstalled."""
        read = partial(self._custom.list_cluster_custom_object, GROUP, VERSION, PLURALS[kind], limit=_PAGE)
        following = ""
        while True:
            with converted_errors():
                try:
                    headers = {"Accept": _METADATA_ALONE}
                    page = raw(partial(read, _continue=following, _headers=headers), seconds=TIMEOUTS)
                except ApiException as error:
                    if error.status in {NOT_FOUND, FORBIDDEN}:
                        raise NotInstalled(f"{PLURALS[kind]}.{GROUP}: {error.status} {error.reason}") from error
                    raise
            yield from (each["metadata"] for each in page["items"] or ())  # null: there are none
            following = page["metadata"].get("continue") or ""
            if not following:
                return

    def apply(self, kind: MirrorKind, obj: Json) -> bool:
        """Create an object, or make it what it is to be; return False if its namespace is gone, or is going."""
        write = self._custom.patch_namespaced_custom_object
        with converted_errors():
            try:
                self._apply(partial(write, GROUP, VERSION, obj["metadata"]["namespace"], PLURALS[kind]), obj)
            except ApiException as error:
                if is_namespace_gone(error):
                    return False
                raise
        return True

    def confirm(self, obj: Json) -> None:
        """Write the TPUMirror."""
        with converted_errors():
            self._apply(partial(self._custom.patch_cluster_custom_object, GROUP, VERSION, MIRRORS), obj)

    def remove(self, kind: MirrorKind, namespace: str, name: str) -> None:
        """Delete an object, if it is there."""
        delete = partial(self._custom.delete_namespaced_custom_object, GROUP, VERSION, namespace, PLURALS[kind])
        with converted_errors(NOT_FOUND):
            delete(name, _request_timeout=TIMEOUTS, _preload_content=False)

    def _apply(self, write: Any, obj: Json) -> None:
        """Write an object by server-side apply, which takes every field back that somebody edited."""
        write(
            obj["metadata"]["name"],
            dict(obj),
            field_manager=NAME,
            force=True,
            _content_type=_APPLY,
            _request_timeout=TIMEOUTS,
            _preload_content=False,
        )
