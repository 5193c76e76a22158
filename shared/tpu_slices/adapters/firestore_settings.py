"""The port `SettingsStore` on Firestore: settings and pauses, for the command line."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from google.api_core.exceptions import AlreadyExists, FailedPrecondition, NotFound
from google.cloud.firestore import SERVER_TIMESTAMP, Client, DocumentReference, FieldFilter

from tpu_slices.adapters.firestore_documents import classified_errors
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.ports.errors import StaleRecord
from tpu_slices.ports.settings_store import Document, SettingsWritten
from tpu_slices.ports.store import Revision
from tpu_slices.wire.cluster_settings import accepted_key, pause_key, settings_key
from tpu_slices.wire.documents import COLLECTIONS, Key

_SECONDS = 10.0
"""The timeout of a call."""
_AT_ONCE = 400
_LAST = "\uf8ff"
"""After every character of an id."""


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

    def retire(self, cluster: ClusterId, message: str) -> None:
        with classified_errors():
            self._at(pause_key(cluster)).set({"message": message, "retired_at": SERVER_TIMESTAMP}, timeout=_SECONDS)

    def resume(self, cluster: ClusterId) -> None:
        with classified_errors():
            self._at(pause_key(cluster)).delete(timeout=_SECONDS)

    def forget(self, cluster: ClusterId) -> int:
        """Delete the settings first: facts that arrive meanwhile make no new records then."""
        own = [self._at(place(cluster)) for place in (settings_key, accepted_key, pause_key)]
        with classified_errors():
            forgotten = self._delete([found.reference for found in self._client.get_all(own) if found.exists])
            for collection in COLLECTIONS.values():
                while some := self._records_in(collection, cluster):
                    forgotten += self._delete(some)
        return forgotten

    def _records_in(self, collection: str, cluster: ClusterId) -> list[DocumentReference]:
        """Return some documents of a collection whose ids are those of the cluster, as `documents.key` makes them."""
        places = self._client.collection(collection)
        first, last = places.document(f"{cluster}."), places.document(f"{cluster}.{_LAST}")
        asked = places.where(filter=FieldFilter("__name__", ">=", first)).where(
            filter=FieldFilter("__name__", "<=", last)
        )
        found = [each.reference for each in asked.select([]).limit(_AT_ONCE).stream(timeout=_SECONDS)]
        single = places.document(cluster)
        return [*found, single] if single.get([], timeout=_SECONDS).exists else found

    def _delete(self, some: Sequence[DocumentReference]) -> int:
        batch = self._client.batch()
        for each in some:
            batch.delete(each)
        batch.commit(timeout=_SECONDS)
        return len(some)

    def _at(self, place: Key) -> DocumentReference:
        return self._client.document(place.collection, place.id)
