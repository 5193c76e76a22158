"""What the build does in the cloud for clusters that are configured beside the stack's own: topics and ticks."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

from google.cloud import firestore

from infra.local import messaging
from infra.local.addresses import Addresses
from infra.local.scheduler import repeated, scheduled
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.wire.cluster_settings import settings_key
from tpu_standins.patience import ATTEMPT_SECONDS

LOOK_SECONDS = 1.0
"""How soon a cluster is served once it is configured, and is not any more once it is retired."""
_EMULATOR = "FIRESTORE_EMULATOR_HOST"


@contextmanager
def further(addresses: Addresses, sweep_seconds: float) -> Iterator[None]:
    """Serve each cluster that is configured beside the stack's own, as long as it is, until the block is left."""
    ticks: dict[str, ExitStack] = {}

    def look() -> None:
        wanted = configured(database) - {addresses.cluster_id}
        for cluster in wanted - ticks.keys():
            messaging.create(messaging.read().of_cluster(cluster), addresses)
            ticks[cluster] = _ticking(cluster, addresses, sweep_seconds)
        for cluster in ticks.keys() - wanted:
            ticks.pop(cluster).close()
            messaging.remove(messaging.read().own_of(cluster), addresses)

    with closing(connected(addresses)) as database:
        try:
            with repeated(look, LOOK_SECONDS):
                yield
        finally:
            for each in ticks.values():
                each.close()


def create_all(addresses: Addresses) -> None:
    """Create what the Pub/Sub emulator lacks of all clusters: one that is started again has lost everything."""
    with closing(connected(addresses)) as database:
        clusters = configured(database)
    for cluster in sorted({*clusters, addresses.cluster_id}):
        messaging.create(messaging.read().of_cluster(cluster), addresses)


def configured(database: firestore.Client) -> set[str]:
    """Return the ids of all clusters that have settings."""
    place = settings_key(ClusterId("any")).collection
    return {each.id for each in database.collection(place).list_documents(retry=None, timeout=ATTEMPT_SECONDS)}


def connected(addresses: Addresses) -> firestore.Client:
    """Return a client of the emulator, whose address it reads from the environment while it is constructed."""
    before = os.environ.get(_EMULATOR)
    os.environ[_EMULATOR] = addresses.firestore
    try:
        return firestore.Client(project=addresses.project)
    finally:
        if before is None:
            del os.environ[_EMULATOR]
        else:
            os.environ[_EMULATOR] = before


def _ticking(cluster: str, addresses: Addresses, sweep_seconds: float) -> ExitStack:
    """Let the ticks of a cluster come; return what ends them."""
    with ExitStack() as held:
        for each in messaging.read().own_of(cluster).schedules:
            held.enter_context(scheduled(each, addresses, sweep_seconds * each.minutes))
        return held.pop_all()
