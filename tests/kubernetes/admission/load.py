"""Pods that are created one after the other on the API server, in several threads, and what becomes of them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from tests.infra.admission.pods import IDLE, a_pod, of_jobset
from tests.kubernetes.admission.created import created, placement_of
from tests.kubernetes.cluster import Cluster
from tests.relay.attack.stage import carry
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.testing.waiting import until

HOST = "127.0.0.1"
WITH_CHIPS, WITHOUT = of_jobset(), a_pod(IDLE)
PLACED, UNPLACED, REFUSED, OTHERS, OTHERS_REFUSED = "placed", "unplaced", "refused", "others", "others refused"


@dataclass
class Load:
    """Creates pods with chips and as many without; counts what becomes of them."""

    cluster: Cluster
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys((PLACED, REFUSED, OTHERS), 0))
    refusals: set[str] = field(default_factory=set)
    _over: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> None:
        while not self._over.is_set():
            self._create()

    def _create(self) -> None:
        judged, other = created(self.cluster, WITH_CHIPS), created(self.cluster, WITHOUT)
        with self._lock:
            if judged.object is None:
                self.refusals.add(judged.refused)
                self._count(REFUSED)
            else:
                self._count(UNPLACED if placement_of(judged.object) == placement_of(WITH_CHIPS) else PLACED)
            self._count(OTHERS if other.object else OTHERS_REFUSED)

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def more(self, what: str, number: int = 50) -> None:
        """Wait until so many more pods have become so."""
        before = self.counts.get(what, 0)
        until(lambda: self.counts.get(what, 0) >= before + number, lambda: f"{number} more {what}: {self.counts}")

    def end(self) -> None:
        self._over.set()


@contextmanager
def loaded(cluster: Cluster, threads: int = 6) -> Iterator[Load]:
    load = Load(cluster)
    running = [threading.Thread(target=load.run) for _ in range(threads)]
    for each in running:
        each.start()
    try:
        yield load
    finally:
        load.end()
        for each in running:
            each.join(PATIENCE_SECONDS)


class Balancer:
    """A Service: a port whose connections go to one of several others, by turns, and on once they are made."""

    def __init__(self) -> None:
        self._listener = socket.create_server((HOST, 0), backlog=256)
        self.port: int = self._listener.getsockname()[1]
        self.ports: Sequence[int] = ()
        self._turn = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._connect, args=(near,), daemon=True).start()

    def _connect(self, near: socket.socket) -> None:
        ports = self.ports
        self._turn += 1
        with near, suppress(OSError), socket.create_connection((HOST, ports[self._turn % len(ports)])) as far:
            back = threading.Thread(target=carry, args=(far, near), daemon=True)
            back.start()
            carry(near, far)
            back.join()
