"""The store of settings and pauses: its protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.ports.store import Revision

Document = Mapping[str, Any]
"""A settings document as operators write it: see `tpu_slices.wire.cluster_settings`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsWritten:
    """The current settings document of a cluster, and the last one that `SettingsStore.write` wrote."""

    document: Document | None
    revision: Revision | None
    accepted: Document | None


class SettingsStore(Protocol):
    """Settings and pauses, for the command line. Every method raises Temporary if the store cannot be reached."""

    def read(self, cluster: ClusterId) -> SettingsWritten: ...

    def write(self, cluster: ClusterId, document: Document, before: Revision | None) -> None:
        """Write the document to `clusters/{cluster}` and `accepted/{cluster}`, both or neither.

        Raise StaleRecord if the document was written or created since it was read at revision `before`.
        """

    def paused(self, cluster: ClusterId) -> str | None:
        """Return why the cluster is paused or retired, or None if it is neither."""

    def pause(self, cluster: ClusterId, message: str) -> None:
        """Pause the cluster, so that nothing is created or deleted: write `pauses/{cluster}`, untouched by builds."""

    def retire(self, cluster: ClusterId, message: str) -> None:
        """Retire the cluster, so that nothing is created in it: the same document; a pause ends."""

    def resume(self, cluster: ClusterId) -> None:
        """End the pause or the retirement of the cluster."""

    def forget(self, cluster: ClusterId) -> int:
        """Delete every document of the cluster: its records, and last its settings; return how many.

        Rejected messages stay until they expire. Idempotent: what an interrupted call left is deleted by the next.
        """
