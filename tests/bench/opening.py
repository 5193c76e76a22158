"""From the last host of a gang that the relay sees to the last of its pods whose gate is off: the relay as it runs.

The API server is one that answers each patch at once. The floor is the same patches, sent by the same client to that
by as many threads as the relay uses: what is beyond it is judging, and the relay's threads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue

from kubernetes import client
from structlog.testing import capture_logs

from relay.cluster import Cluster
from relay.fact_queue import FactQueue
from relay.gangs.gates import PAUSE
from relay.gangs.opener import AT_ONCE, Opener
from relay.health import Health
from relay.objects import Kind, Known, Listed, Saw
from relay.relay import Relay
from tests.bench.measures import Measure, measure
from tests.bench.path import quantile
from tests.builders import CLUSTER
from tests.relay.gangs.objects import gang, gated, hosts
from tests.relay.watched import nothing_found, read
from tpu_standins.patience import PATIENCE_SECONDS

SAMPLES = 50
SLICES = (8, 64)


def rows() -> Iterator[Measure]:
    """Yield the percentiles of the time that gangs of few and of many slices take, each with that of the floor."""
    with _api_server() as (calls, patched), ThreadPoolExecutor(AT_ONCE) as threads:
        for slices in SLICES:
            names = [read(gated(index)).pod for index in range(slices)]  # type: ignore[union-attr]
            floor = [_patches(names, calls, patched, threads) for _ in range(SAMPLES)]
            with capture_logs():
                found = [_opened(slices, calls, patched) for _ in range(SAMPLES)]
            for percent in (50, 99):
                name = f"last host to {slices} gates off, p{percent}"
                yield measure(name, "ms", [quantile(found, percent / 100)], [quantile(floor, percent / 100)])


def _patches(names: Sequence[str], calls: Cluster, patched: Queue[str], threads: ThreadPoolExecutor) -> float:
    began = time.perf_counter()
    all_ = threads.map(lambda name: calls.open_pod("research", name, "u"), names)
    ended = _all_are(patched, len(names))
    assert len([*all_]) == len(names)
    return 1000 * (ended - began)


def _opened(slices: int, calls: Cluster, patched: Queue[str]) -> float:
    """Return the milliseconds that a gang takes whose slices stand, but for one host."""
    clock = lambda: datetime.now(UTC)  # noqa: E731
    health = Health(clock)
    opener = Opener(calls, clock, health)
    relay = Relay(FactQueue(CLUSTER), clock, lambda due, done: done(nothing_found(due)), lambda _: None, health)
    relay.gates.open = opener.want
    *most, last = (read(each) for index in range(slices) for each in hosts(index))
    there: dict[Kind, Sequence[Known]] = {
        Kind.JOBSETS: [read(gang(replicas=slices))],  # type: ignore[list-item]
        Kind.LEADERS: [read(gated(index)) for index in range(slices)],  # type: ignore[misc]
        Kind.HOSTS: most,  # type: ignore[dict-item]
    }
    for kind in Kind:
        relay.put(Listed(kind, there.get(kind, []), "1"))
    threads = [threading.Thread(target=each.run) for each in (relay, opener)]
    for each in threads:
        each.start()
    try:
        relay.wait_until_complete()
        time.sleep(2 * PAUSE.total_seconds())  # it was judged moments ago: hosts come minutes apart
        assert patched.empty()
        began = time.perf_counter()
        relay.put(Saw(Kind.HOSTS, last, "2"))
        return 1000 * (_all_are(patched, slices) - began)
    finally:
        relay.stop()
        opener.stop()
        for each in threads:
            each.join(PATIENCE_SECONDS)


def _all_are(patched: Queue[str], count: int) -> float:
    """Wait until so many pods are patched, and return when that was."""
    paths = {patched.get(timeout=PATIENCE_SECONDS) for _ in range(count)}
    assert len(paths) == count
    return time.perf_counter()


@contextmanager
def _api_server() -> Iterator[tuple[Cluster, Queue[str]]]:
    """Yield the relay's calls of a server, and the paths that it was asked to patch."""
    patched: Queue[str] = Queue()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def do_PATCH(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")
            patched.put(self.path)

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - the name that http.server has
            """Log nothing: requests are many."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    host = client.Configuration(host=f"http://127.0.0.1:{server.server_port}")
    try:
        with client.ApiClient(host, pool_threads=1) as api:
            yield Cluster(api), patched
    finally:
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE_SECONDS)
