"""The settings of clusters, in memory: the same documents that the fake store reads."""

from __future__ import annotations

from dataclasses import dataclass

from tests.fakes.store import FakeStore
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.ports.errors import StaleRecord
from tpu_slices.ports.store import Document, Revision, SettingsWritten
from tpu_slices.wire.cluster_settings import accepted_key, pause_key, settings_key


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

    def resume(self, cluster: ClusterId) -> None:
        self.store.remove_document(pause_key(cluster))
