"""The port `SettingsStore` on Firestore: settings and pauses, for the command line."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from google.api_core.exceptions import AlreadyExists, FailedPrecondition, NotFound
from google.cloud.firestore import SERVER_TIMESTAMP, Client, DocumentReference

from tpu_slices.adapters.firestore_documents import classified_errors
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.ports.errors import StaleRecord
from tpu_slices.ports.store import Document, Revision, SettingsWritten
from tpu_slices.wire.cluster_settings import accepted_key, pause_key, settings_key
from tpu_slices.wire.documents import Key

_SECONDS = 10.0
"""The timeout of a call."""


class FirestoreSettings:
    """Firestore in native mode."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def read(self, cluster: ClusterId) -> SettingsWritten:
        with classified_errors():
            written = self._at(settings_key(cluster)).get(timeout=_SECONDS)
            accepted = self._at(accepted_key(cluster)).get(timeout=_SECONDS)
        return SettingsWritten(
            document=written.to_dict(),
            revision=Revision(written.update_time.isoformat()) if written.exists else None,
            accepted=accepted.to_dict(),
        )

    def write(self, cluster: ClusterId, document: Document, before: Revision | None) -> None:
        """Replace the whole document: stored fields that the new document lacks are removed."""
        batch = self._client.batch()
        place = self._at(settings_key(cluster))
        if before is not None:
            unchanged: Any = self._client.write_option(last_update_time=datetime.fromisoformat(before))
            batch.delete(place, option=unchanged)
        with classified_errors():
            batch.create(place, dict(document))
            batch.set(self._at(accepted_key(cluster)), dict(document))
            try:
                batch.commit(timeout=_SECONDS)
            except (AlreadyExists, FailedPrecondition, NotFound) as stale:
                raise StaleRecord(stale.message) from stale

    def paused(self, cluster: ClusterId) -> str | None:
        with classified_errors():
            pause = self._at(pause_key(cluster)).get(timeout=_SECONDS)
        return str(pause.get("message")) if pause.exists else None

    def pause(self, cluster: ClusterId, message: str) -> None:
        with classified_errors():
            self._at(pause_key(cluster)).set({"message": message, "paused_at": SERVER_TIMESTAMP}, timeout=_SECONDS)

    def resume(self, cluster: ClusterId) -> None:
        with classified_errors():
            self._at(pause_key(cluster)).delete(timeout=_SECONDS)

    def _at(self, place: Key) -> DocumentReference:
        return self._client.document(place.collection, place.id)
