"""Two hundred clusters, of which one is flooded, one has settings that cannot be read, and one a vendor that fails.

Each of the others is swept by the same calls, with as many documents, as if it were the only one.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event as Flag
from typing import Any, cast

import pytest

from tests.builders import MINUTE, NOW, a_job, a_record, settings
from tests.conftest import Lines
from tests.functions.test_handlers import an_event
from tpu_slices.app.handlers import handle_reconcile, handle_sweep
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.flows import due
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.errors import Temporary
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.wire.cluster_settings import settings_key
from tpu_slices.wire.messages import Message, encode_reconcile_request
from tpu_slices.wire.topics import Topic
from tpu_slices_simulator.fakes.backend import FakeBackend
from tpu_slices_simulator.fakes.clock import FakeClock
from tpu_slices_simulator.fakes.publisher import FakePublisher
from tpu_slices_simulator.fakes.reservations import FakeReservations
from tpu_slices_simulator.fakes.store import FakeStore

MANY = 200
NAMES = [ClusterId(f"c{number:03}") for number in range(MANY)]
FLOODED, BROKEN, SLOW = NAMES[0], NAMES[MANY // 2], NAMES[-1]
OTHERS = [name for name in NAMES if name not in {FLOODED, BROKEN, SLOW}]
FLOOD = 3 * due.PAGE
DUE = 3
"""Slices of each other cluster."""
MINUTES = 3
"""Before the silence of relays is told."""
TICK = Message(b"{}", {})


class Noted:
    """Notes each call of a port, and how much it answers."""

    def __init__(self, port: object, calls: list[tuple[str, int]]) -> None:
        self._port = port
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        def noted(*args: Any, **named: Any) -> Any:
            answer = getattr(self._port, name)(*args, **named)
            self._calls.append((name, len(answer) if isinstance(answer, tuple | dict | frozenset) else 1))
            return answer

        return noted


class Clusters:
    """Some clusters on record, and what their sweeps ask and request."""

    def __init__(self, *names: ClusterId) -> None:
        self.store, self.publisher, self.clock = FakeStore(), FakePublisher(), FakeClock(NOW)
        self.backend = FakeBackend(self.clock)
        self.calls: list[tuple[str, int]] = []
        ports = {"store": self.store, "backend": self.backend, "publisher": self.publisher}
        noted = {name: cast("Any", Noted(port, self.calls)) for name, port in ports.items()}
        self.deps = ReconcileDeps(clock=self.clock, reservations=FakeReservations(self.backend, self.clock), **noted)
        for name in names:
            self.store.put_settings(of(name))
            slices = FLOOD if name == FLOODED else DUE
            self.store.put(*(a_record(job=a_job(cluster=name, job_index=each), next_reconcile_at=NOW - MINUTE)
                             for each in range(slices)))  # fmt: skip

    def ticked(self, name: ClusterId) -> tuple[list[tuple[str, int]], set[object]]:
        """Let the tick of a cluster come; return the calls of its sweep, and what it requests."""
        self.calls.clear()
        self.publisher.take_requests()
        handle_sweep(an_event(Topic.TICKS.of(name), TICK), self.deps)
        return [*self.calls], {*self.publisher.take_requests()}


def of(name: ClusterId) -> ClusterSettings:
    return settings(cluster=name, path=f"projects/demo-project/locations/us-central2/clusters/{name}")


@pytest.fixture
def all_of_them() -> Clusters:
    made = Clusters(*NAMES)
    made.store.put_document(settings_key(BROKEN), {"path": "nowhere"})
    made.backend.unreadable[SLOW] = Temporary("The service is currently unavailable.")
    return made


def test_each_other_cluster_is_swept_by_the_same_calls_as_alone(all_of_them: Clusters, lines: Lines) -> None:
    alone = Clusters(OTHERS[0])
    for _ in range(MINUTES):
        for name in (FLOODED, BROKEN, SLOW):
            all_of_them.ticked(name)
        lines()
        among = {name: all_of_them.ticked(name) for name in OTHERS}
        assert {line["severity"] for line in lines()} == {"INFO"}
        calls, requested = alone.ticked(OTHERS[0])
        assert {name: swept for name, (swept, _) in among.items()} == dict.fromkeys(OTHERS, calls)
        assert {len(others) for _, others in among.values()} == {len(requested)}
        for each in (all_of_them, alone):
            each.clock.advance(MINUTE)


def test_trouble_is_told_of_its_own_cluster(all_of_them: Clusters, lines: Lines) -> None:
    _, requested = all_of_them.ticked(FLOODED)
    assert len(requested) == due.PAGE
    for name in (BROKEN, SLOW):
        all_of_them.ticked(name)
    failed = {line["cluster"] for line in lines() if line["event"] == LogEvent.SWEEP_FAILED}
    assert failed == {BROKEN, SLOW}


def test_requests_for_a_cluster_that_cannot_be_read_cost_the_others_nothing(
    all_of_them: Clusters, lines: Lines
) -> None:
    broken = a_record(job=a_job(cluster=BROKEN))
    for _ in range(50):
        request = encode_reconcile_request(BROKEN, broken.name)
        handle_reconcile(an_event(Topic.REQUESTS.of(BROKEN), request), all_of_them.deps)
    assert {line["event"] for line in lines()} == {LogEvent.MESSAGE_REJECTED}
    assert all_of_them.ticked(OTHERS[0]) == Clusters(OTHERS[0]).ticked(OTHERS[0])


class Hanging(FakeBackend):
    """Does not answer about one cluster until it is let go."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.asked, self.go = Flag(), Flag()

    def inventory(self, cluster: ClusterSettings) -> Any:
        if cluster.cluster == SLOW:
            self.asked.set()
            assert self.go.wait(timeout=timedelta(minutes=5).total_seconds())
        return super().inventory(cluster)


@pytest.fixture
def hanging(all_of_them: Clusters) -> Iterator[Hanging]:
    made = Hanging(all_of_them.clock)
    yield made
    made.go.set()


def test_while_one_vendor_does_not_answer_all_others_are_swept(all_of_them: Clusters, hanging: Hanging) -> None:
    deps = ReconcileDeps(
        store=cast("Any", all_of_them.store),
        publisher=cast("Any", all_of_them.publisher),
        clock=all_of_them.clock,
        backend=cast("Any", hanging),
        reservations=all_of_them.deps.reservations,
    )
    with ThreadPoolExecutor(max_workers=1) as beside:
        held = beside.submit(handle_sweep, an_event(Topic.TICKS.of(SLOW), TICK), deps)
        assert hanging.asked.wait(timeout=timedelta(minutes=5).total_seconds())
        for name in OTHERS:
            handle_sweep(an_event(Topic.TICKS.of(name), TICK), deps)
        beats = {name: all_of_them.store.heartbeat(name) for name in NAMES}
        assert not held.done()
        hanging.go.set()
        held.result()
    checked = {name for name, beat in beats.items() if beat is not None and beat.value.next_inventory_check_at}
    assert checked == {*OTHERS}
