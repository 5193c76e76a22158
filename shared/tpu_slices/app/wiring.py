"""Which adapter stands behind which port: the whole system on one page.

Vendors are imported where they are needed first: a function that does not touch GKE does not load its client.
"""

from __future__ import annotations

from tpu_slices.adapters.clock import SystemClock
from tpu_slices.app.settings import Settings
from tpu_slices.ports.deps import IntakeDeps, ReconcileDeps
from tpu_slices.ports.store import SettingsStore


def build_intake_deps(settings: Settings) -> IntakeDeps:
    """Wire what `receive` needs: records and messages."""
    from tpu_slices.adapters import firestore, pubsub

    return IntakeDeps(
        store=firestore.FirestoreStore(firestore.connect(settings.project)),
        publisher=pubsub.PubSubPublisher(pubsub.connect_publisher(), settings.project),
        clock=SystemClock(),
    )


def build_reconcile_deps(settings: Settings) -> ReconcileDeps:
    """Wire what `reconcile` and `sweep` need: the same, and GKE."""
    from tpu_slices.adapters import gke

    deps = build_intake_deps(settings)
    backend = gke.GkeBackend(gke.client(settings.gke_emulator))
    return ReconcileDeps(store=deps.store, publisher=deps.publisher, clock=deps.clock, backend=backend)


def build_settings_store(settings: Settings) -> SettingsStore:
    """Wire what the tools need by which people set a cluster."""
    from tpu_slices.adapters import firestore, firestore_settings

    return firestore_settings.FirestoreSettings(firestore.connect(settings.project))
