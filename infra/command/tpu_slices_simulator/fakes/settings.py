"""The settings of clusters, in memory: the same documents that the fake store reads."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.ports.errors import StaleRecord
from tpu_slices.ports.settings_store import Document, SettingsWritten
from tpu_slices.ports.store import Revision
from tpu_slices.wire.cluster_settings import accepted_key, pause_key, settings_key
from tpu_slices.wire.documents import COLLECTIONS
from tpu_slices_simulator.fakes.store import FakeStore

_LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class FakeSettings:
    """The port `SettingsStore`."""

    store: FakeStore

    def read(self, cluster: ClusterId) -> SettingsWritten:
        return SettingsWritten(
            document=self.store.document(settings_key(cluster)),
            revision=self.store.revision(settings_key(cluster)),
            accepted=self.store.document(accepted_key(cluster)),
        )

    def write(self, cluster: ClusterId, document: Document, before: Revision | None) -> None:
        if self.store.revision(settings_key(cluster)) != before:
            raise StaleRecord(f"clusters/{cluster} was written since it was read")
        for place in (settings_key(cluster), accepted_key(cluster)):
            self.store.put_document(place, dict(document))

    def paused(self, cluster: ClusterId) -> str | None:
        pause = self.store.document(pause_key(cluster))
        return pause["message"] if pause else None

    def pause(self, cluster: ClusterId, message: str) -> None:
        self.store.put_document(pause_key(cluster), {"message": message})

    def retire(self, cluster: ClusterId, message: str) -> None:
        self.store.put_document(pause_key(cluster), {"message": message, "retired_at": _LONG_AGO})

    def forget(self, cluster: ClusterId) -> int:
        own = {place(cluster) for place in (settings_key, accepted_key, pause_key)}
        own |= {
            place
            for place in self.store.places()
            if place.collection in COLLECTIONS.values() and (place.id == cluster or place.id.startswith(f"{cluster}."))
        }
        present = own & self.store.places()
        for place in present:
            self.store.remove_document(place)
        return len(present)

    def resume(self, cluster: ClusterId) -> None:
        self.store.remove_document(pause_key(cluster))
