"""How long the API server waits for the webhook, one pod after the other on one connection.

The floor is a server that reads the review and answers the same bytes at once: what TLS and HTTP cost by themselves.
"""

from __future__ import annotations

import http.client
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime

import orjson

from relay.webhook.authorities import Authority, bundle_of, identity_of
from relay.webhook.certificates import load
from relay.webhook.placing import Options
from relay.webhook.reviews import answer
from relay.webhook.server import Server, Webhook
from tests.bench.measures import RUNS, Measure, measure
from tests.infra.admission.pods import of_jobset
from tests.relay.webhook.test_reviews import asked
from tpu_standins.clients.serving import HOST, serving
from tpu_standins.patience import PATIENCE_SECONDS

EACH = 200
_REVIEW = asked(of_jobset())


def rows() -> Iterator[Measure]:
    """Yield milliseconds of a clock per pod."""
    authority = Authority.make(datetime.now(UTC))
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load(own, identity_of(authority, (HOST,)).chain)
    said = orjson.loads(answer(_REVIEW, Options()))
    trust = ssl.create_default_context(cadata=bundle_of([authority]).decode())
    with _webhook(own) as port, serving(0, own, lambda *_: said) as address:
        judged, floor = (
            [_milliseconds(each, trust) for _ in range(RUNS)] for each in (port, int(address.rpartition(":")[2]))
        )
    yield measure("webhook: a pod on one connection", "ms", judged, floor)


@contextmanager
def _webhook(context: ssl.SSLContext) -> Iterator[int]:
    server = Server(Webhook(Options()), (HOST, 0), context)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server.port
    finally:
        server.stop()
        thread.join(PATIENCE_SECONDS)


def _milliseconds(port: int, trust: ssl.SSLContext) -> float:
    with closing(http.client.HTTPSConnection(HOST, port, timeout=PATIENCE_SECONDS, context=trust)) as connection:
        began = time.perf_counter()
        for _ in range(EACH):
            connection.request("POST", "/pods", _REVIEW)
            connection.getresponse().read()
        return 1000 * (time.perf_counter() - began) / EACH
