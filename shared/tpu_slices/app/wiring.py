"""Which adapter implements which port: the whole system on one page.

Vendors' clients are imported where they are first needed: a function that does not call GKE does not load its client.
"""

from __future__ import annotations

from tpu_slices.adapters.clock import SystemClock
from tpu_slices.app.settings import Settings
from tpu_slices.flows.mirror.telling import mirroring
from tpu_slices.ports.backend import Backend
from tpu_slices.ports.bookings import BookingAdviser
from tpu_slices.ports.clock import Clock
from tpu_slices.ports.deps import IntakeDeps, NotifyDeps, ReconcileDeps
from tpu_slices.ports.log_events import LogLines
from tpu_slices.ports.messaging import RUNS, Messaging
from tpu_slices.ports.reservations import ReservationReader
from tpu_slices.ports.settings_store import SettingsStore


def build_intake_deps(settings: Settings) -> IntakeDeps:
    """Return the dependencies of `receive`: store, publisher and clock."""
    from tpu_slices.adapters import firestore, pubsub

    publisher, clock = pubsub.PubSubPublisher(pubsub.connect_publisher(), settings.project), SystemClock()
    store = firestore.FirestoreStore(firestore.connect(settings.project))
    return IntakeDeps(store=mirroring(store, publisher, clock), publisher=publisher, clock=clock)


def build_reconcile_deps(settings: Settings) -> ReconcileDeps:
    """Return the dependencies of `reconcile` and `sweep`: those of `receive`, GKE and Compute Engine."""
    from tpu_slices.adapters import backends

    deps = build_intake_deps(settings)
    backend = backends.Backends(lambda: _gke_backend(settings), lambda: _compute_backend(settings, deps.clock))
    reservations = backends.LazyReservations(lambda: _reservations(settings))
    return ReconcileDeps(
        store=deps.store, publisher=deps.publisher, clock=deps.clock, backend=backend, reservations=reservations
    )


def build_notify_deps(settings: Settings) -> NotifyDeps:
    """Return the dependencies of `notify`: neither records nor topics."""
    from tpu_slices.adapters.delivery import delivering

    clock = SystemClock()
    return NotifyDeps(delivery=delivering.TargetDelivery(settings.targets, clock), clock=clock)


def build_settings_store(settings: Settings) -> SettingsStore:
    """Return the store by which the command line reads and writes settings and pauses."""
    from tpu_slices.adapters import firestore, firestore_settings

    return firestore_settings.FirestoreSettings(firestore.connect(settings.project))


def build_log_lines(settings: Settings) -> LogLines | None:
    """Return what reads the metrics of log lines; None: the functions run here, and write their lines elsewhere."""
    from tpu_slices.adapters import cloud_logging, rest

    return None if settings.emulated else cloud_logging.CloudLogging(rest.connect(), settings.project)


def build_messaging(settings: Settings) -> Messaging:
    """Return what looks at the topics and schedules of clusters. Temporary: there are no credentials."""
    from tpu_slices.adapters import messaging, rest

    def state(job: str) -> str | None:
        if settings.emulated:
            return RUNS  # by the local stack itself
        return messaging.CloudScheduler(rest.connect(), settings.project).state(job)

    return messaging.DeployedMessaging(*messaging.connect(), settings.project, state)


def _gke_backend(settings: Settings) -> Backend:
    from tpu_slices.adapters.gke import backend as gke

    return gke.GkeBackend(gke.client(settings.gke_emulator))


def _reservations(settings: Settings) -> ReservationReader | None:
    """Return what reads reservations; None: GKE runs here, and no Compute Engine beside it."""
    import requests

    from tpu_slices.adapters import reservations, rest

    if settings.compute_emulator is not None:
        return reservations.RestReservations(requests.Session(), f"http://{settings.compute_emulator}/compute/v1")
    return None if settings.gke_emulator is not None else reservations.RestReservations(rest.connect())


def build_booking_adviser(settings: Settings) -> BookingAdviser | None:
    """Return what knows when hosts could be booked; None: GKE runs here, and no Compute Engine beside it."""
    import requests

    from tpu_slices.adapters import bookings, rest

    if settings.compute_emulator is not None:
        return bookings.RestBookings(requests.Session(), f"http://{settings.compute_emulator}/compute/v1")
    return None if settings.gke_emulator is not None else bookings.RestBookings(rest.connect())


def _compute_backend(settings: Settings, clock: Clock) -> Backend:
    from tpu_slices.adapters.compute import api, backend

    return backend.ComputeBackend(api.clients(settings.compute_emulator), clock)
