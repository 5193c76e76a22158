"""The whole system in memory behind a meter: it counts what Google Cloud would bill, on a clock that only it advances.

Facts, requests, ticks and audit log entries go through the functions' real handlers, as Pub/Sub delivers them: each
once. What is counted is named by the constants; `docs/cost.md` has their prices.
"""

from __future__ import annotations

import base64
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any, cast

import structlog

from infra.local import messaging
from tests.bench.counted.counters import (
    BILLED_BYTES,
    DELETES,
    GKE_CHANGES,
    LINES,
    LOG_BYTES,
    MESSAGE_BYTES,
    RECEIVE,
    RECONCILE,
    SWEEP,
    UPDATES,
    WRITES,
    Counts,
)
from tests.bench.counted.metered import MeteredBackend, MeteredPublisher, MeteredStore
from tests.builders import CLUSTER, MINUTE
from tests.world import World
from tpu_slices.adapters import logs
from tpu_slices.app import handlers
from tpu_slices.app.handlers import Event
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import Fact, HostsChanged
from tpu_slices.domain.model.observations import Failure
from tpu_slices.domain.model.slices import ClaimId, ClusterId, PoolName, SliceId
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.wire.messages import (
    Message,
    encode_answer,
    encode_fact,
    encode_question,
    encode_reconcile_request,
    encode_report,
    encode_update,
)
from tpu_slices.wire.topics import Topic
from tpu_slices_simulator.fakes.gke import FakeOperation

LEAST_BYTES = 1_000
"""Of a request to publish or to deliver, as Pub/Sub bills it."""
FUNCTIONS: dict[str, tuple[str, Callable[[Event, ReconcileDeps], None]]] = {
    "receive": (RECEIVE, handlers.handle_receive),
    "reconcile": (RECONCILE, handlers.handle_reconcile),
    "sweep": (SWEEP, handlers.handle_sweep),
}
STEP = timedelta(seconds=15)
MOMENT = timedelta(microseconds=1)
ENTRIES = Path(__file__).parents[2] / "events" / "audit_log"
CREATED, CREATION_FAILED, DELETED = (
    json.loads((ENTRIES / f"{name}.json").read_text()) for name in ("create_ended", "create_failed", "delete_ended")
)
"""Entries of GKE's audit log."""


class MeteredWorld(World):
    """`minutes` lets time pass; `counts` is what was used so far."""

    def __init__(self, of_cluster: ClusterSettings | None = None) -> None:
        super().__init__(of_cluster=of_cluster)
        self.counts: Counts = Counter()
        self.calls: list[str] = []
        """The calls of the ports, in order; each is introduced by the name of the function that makes them."""
        table = messaging.read().of_cluster(CLUSTER)
        self._functions = {each.topic: each.function for each in table.subscriptions if each.function}
        self._ticks = table.schedules
        self.deps = ReconcileDeps(
            store=cast("Any", MeteredStore(self.store, self.counts, self.calls)),
            backend=cast("Any", MeteredBackend(self.backend, self.counts, self.calls, self._seconds)),
            publisher=cast("Any", MeteredPublisher(self.publisher, self.calls)),
            clock=self.clock,
            reservations=self.reservations,
        )

    def minutes(self, count: int) -> None:
        """Let minutes pass; GKE ends no operation meanwhile."""
        with _captured(self.counts):
            for _ in range(count):
                for _ in range(MINUTE // STEP):
                    self.cluster_lives()
                    self.deliver()
                    self.clock.advance(STEP)
                self.sweeps()

    def publishes_one_by_one(self) -> None:
        """Let the relay publish what it sees, a moment passing from one message to the next."""
        self.relay_publishes()
        published = [fact for _, fact in self._facts]
        self._facts.clear()
        for fact in published:
            self.publish(fact)
            self.clock.advance(MOMENT)

    def look(self, *, tick: bool) -> None:
        """Let everybody do what can be done now; with a tick, what is scheduled each minute, too."""
        with _captured(self.counts):
            self.cluster_lives()
            self.deliver()
            if tick:
                self.sweeps()

    def told_after(self, ended: FakeOperation) -> tuple[timedelta, ...]:  # noqa: ARG002 - the log tells by a message
        """Return that nothing is told past the functions' own way."""
        return ()

    def operation_ends(self, pool: PoolName, *, silent: bool = False) -> None:
        """Let GKE end what it does to a pool; its audit log says so, unless it is silent."""
        running = self._running(pool)
        self.backend.finish(pool)
        if not silent:
            self._ended(running)

    def operations_end(self) -> None:
        """Let GKE end what it does; its audit log says so."""
        pools = sorted(self.backend.pools.values(), key=lambda pool: pool.name)
        running = [pool.operation for pool in pools if pool.operation is not None]
        super().operations_end()
        self._ended(*running)

    def creation_fails(self, pool: PoolName, failure: Failure) -> None:
        """Let GKE end a creation with an error; its audit log says so."""
        running = self._running(pool)
        self.backend.fail(pool, failure)
        self._ended(running)

    @contextmanager
    def used(self) -> Iterator[Counts]:
        """Count what is used within the block."""
        before, within = self._total(), Counter[str]()
        yield within
        within.update(self._total() - before)

    # inside

    def _running(self, pool: PoolName) -> FakeOperation:
        operation = self.backend.pools[pool].operation
        assert operation is not None, f"no operation runs on {pool}"
        return operation

    def _ended(self, *operations: FakeOperation) -> None:
        with _captured(self.counts):
            for operation in operations:
                self._push("cloud-operations", _entry(operation))
            self.deliver()

    def _seconds(self) -> float:
        return self.clock.now().timestamp()

    def _total(self) -> Counts:
        """Return what was used so far: what the fakes keep, too."""
        changes = list(chain.from_iterable(self.store.commits))
        deleted = sum(change.after is None for change in changes)
        answers = (
            *(encode_update(CLUSTER, each) for each in self.publisher.updates),
            *(encode_report(CLUSTER, each) for _, each in self.publisher.reports),
            *(encode_question(CLUSTER, each) for _, each in self.publisher.questions),
        )
        kept = Counter({WRITES: len(changes) - deleted, DELETES: deleted, GKE_CHANGES: len(self.backend.calls)})
        for message in answers:
            kept += _message(message) + Counter({UPDATES: 1})
        return self.counts + kept

    def _receive(self, fact: Fact, published_at: datetime) -> None:
        self._push(Topic.FACTS.of(CLUSTER), encode_fact(fact), published_at)

    def _reconcile(self, cluster: ClusterId, slice_: ClaimId | SliceId) -> None:
        self._push(
            Topic.REQUESTS.of(cluster), encode_reconcile_request(cluster, slice_, self.publisher.waiting.get(slice_))
        )

    def _reconcile_with(self, cluster: ClusterId, slice_: SliceId, answer: HostsChanged) -> None:
        self._push(Topic.REQUESTS.of(cluster), encode_answer(cluster, slice_, answer))

    def _sweep(self) -> None:
        """Publish what is scheduled for this minute."""
        for schedule in self._ticks:
            if self.clock.now().minute % schedule.minutes == 0:
                self._push(schedule.topic, Message(schedule.data.encode(), {}))

    def _push(self, topic: str, message: Message, published_at: datetime | None = None) -> None:
        """Deliver a message as Pub/Sub pushes it to the topic's function."""
        called, handle = FUNCTIONS[self._functions[topic] or ""]
        self.counts.update(_message(message) + Counter({called: 1}))
        self.calls.append(called)
        data = {
            "message": {
                "data": base64.b64encode(message.data).decode(),
                "attributes": dict(message.attributes),
                "messageId": "17",
                "publishTime": (published_at or self.clock.now()).isoformat(),
            }
        }
        source = f"//pubsub.googleapis.com/projects/demo-project/topics/{topic}"
        handle(Event(id="17", source=source, data=data), self.deps)


@contextmanager
def _captured(counts: Counts) -> Iterator[None]:
    """Count the lines that are logged within the block, as the functions log them."""
    before, written = structlog.get_config(), io.StringIO()
    logs.configure("demo-project", "0.1.0")
    try:
        with redirect_stdout(written):
            yield
    finally:
        structlog.configure(**before)
        lines = written.getvalue().splitlines()
        assert [line for line in lines if '"severity":"ERROR"' in line.replace(" ", "")] == []
        counts.update({LINES: len(lines), LOG_BYTES: sum(len(line.encode()) for line in lines)})


def _message(message: Message) -> Counts:
    """Count a message that is published and delivered once, each in a request of its own."""
    texts = chain.from_iterable(message.attributes.items())
    size = len(message.data) + sum(len(text.encode()) for text in texts)
    return Counter({MESSAGE_BYTES: size, BILLED_BYTES: 2 * max(size, LEAST_BYTES)})


def _entry(ended: FakeOperation) -> Message:
    entry = DELETED if ended.creates is False else CREATION_FAILED if ended.failure else CREATED
    place = {"project_id": "demo-project", "location": "us-central2", "cluster_name": "demo"}
    resource = {"type": "gke_nodepool", "labels": {**place, "nodepool_name": ended.pool}}
    operation = {**entry["operation"], "id": ended.name}
    return Message(json.dumps({**entry, "resource": resource, "operation": operation}).encode(), {})
