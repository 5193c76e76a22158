"""Which adapter stands behind which port: the whole system on one page.

Vendors are imported where they are needed first: a function that does not touch GKE does not load its client.
"""

from __future__ import annotations

from shared.adapters.clock import SystemClock
from shared.ports import Desk, Ports
from shared.settings import Settings


def build_desk(settings: Settings) -> Desk:
    """Wire what `receive` needs: records and messages."""
    from google.cloud import firestore

    from shared.adapters.firestore import FirestoreStore
    from shared.adapters.pubsub import PubSubBus, publisher

    return Desk(
        store=FirestoreStore(firestore.Client(project=settings.project)),
        bus=PubSubBus(publisher(), settings.project),
        clock=SystemClock(),
    )


def build_ports(settings: Settings) -> Ports:
    """Wire what `reconcile` and `sweep` need: the same, and GKE."""
    from shared.adapters.gke import GkeBackend, client

    desk = build_desk(settings)
    backend = GkeBackend(client(settings.gke_emulator))
    return Ports(store=desk.store, bus=desk.bus, clock=desk.clock, backend=backend)
