"""Which adapter stands behind which port: the whole system on one page.

Vendors are imported where they are needed first: a function that does not touch GKE does not load its client.
"""

from __future__ import annotations

from tpu_slices.adapters.clock import SystemClock
from tpu_slices.app.settings import Settings
from tpu_slices.ports.deps import Desk, Ports
from tpu_slices.ports.store import SettingsStore


def build_desk(settings: Settings) -> Desk:
    """Wire what `receive` needs: records and messages."""
    from tpu_slices.adapters import firestore, pubsub

    return Desk(
        store=firestore.FirestoreStore(firestore.connect(settings.project)),
        bus=pubsub.PubSubBus(pubsub.connect_publisher(), settings.project),
        clock=SystemClock(),
    )


def build_ports(settings: Settings) -> Ports:
    """Wire what `reconcile` and `sweep` need: the same, and GKE."""
    from tpu_slices.adapters import gke

    desk = build_desk(settings)
    backend = gke.GkeBackend(gke.client(settings.gke_emulator))
    return Ports(store=desk.store, bus=desk.bus, clock=desk.clock, backend=backend)


def build_settings_store(settings: Settings) -> SettingsStore:
    """Wire what the tools need by which people set a cluster."""
    from tpu_slices.adapters import firestore, firestore_settings

    return firestore_settings.FirestoreSettings(firestore.connect(settings.project))
