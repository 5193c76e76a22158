"""A replica of the webhook in this process, whose certificates are renewed by a clock of the test."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from infra.kubernetes.overlay import NAMESPACE
from infra.local.webhook import HOST
from relay.connection import Connection
from relay.webhook.authorities import LIFE, Authority
from relay.webhook.calls import Calls
from relay.webhook.certificates import Certificates
from relay.webhook.placing import Options
from relay.webhook.server import Server, Webhook
from tests.relay.webhook.process import Site
from tpu_slices_simulator.fakes.clock import FakeClock
from tpu_standins.patience import PATIENCE_SECONDS


def a_clock() -> FakeClock:
    """Return one that is far behind: what is made by it, and renewed twice, is valid now for the API server."""
    return FakeClock(datetime.now(UTC) - 0.9 * LIFE)


TO_RENEW: timedelta = 0.7 * LIFE
"""Until a new authority is made."""
TO_SIGN: timedelta = 0.1 * LIFE
"""From then until it signs."""


@dataclass(frozen=True)
class Replica:
    certificates: Certificates
    port: int

    @property
    def signer(self) -> Authority:
        assert self.certificates.identity is not None
        return self.certificates.identity.signer


@contextmanager
def replica(where: Site, clock: FakeClock) -> Iterator[Replica]:
    """Serve until the block is left; the test makes each step of its certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server = Server(Webhook(Options()), (HOST, 0), context)
    thread = threading.Thread(target=server.run)
    with closing(Connection({"KUBECONFIG": str(where.own)})) as connection:
        certificates = Certificates(Calls(connection, NAMESPACE), (HOST,), clock.now, context)
        certificates.step()
        thread.start()
        try:
            yield Replica(certificates, server.port)
        finally:
            server.stop()
            thread.join(PATIENCE_SECONDS)
            connection.rest_client.pool_manager.clear()
