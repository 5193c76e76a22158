"""Taking the gate off pods: some at a time, each once, and again after a failure."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from structlog.testing import capture_logs

from relay.gangs.opener import AT_ONCE, RETRY_AFTER, Opener
from relay.health import Health
from relay.objects import Leader, WorkloadName
from tests.relay.gangs.objects import gated
from tests.relay.watched import START, read_as
from tpu_slices.ports.errors import Temporary

LLAMA, GEMMA = WorkloadName("research", "llama"), WorkloadName("research", "gemma")


@dataclass
class Setup:
    """An opener, and what it opened: pods by name; those of a workload that is refused are not."""

    threads: ThreadPoolExecutor
    now: datetime = START
    opened: list[str] = field(default_factory=list)
    refused: str = "nobody"

    def __post_init__(self) -> None:
        self.opener = Opener(self, lambda: self.now, Health(lambda: self.now), look_every=0.0)

    def open_pod(self, namespace: str, name: str, uid: str) -> None:
        assert namespace
        assert uid
        self.opened.append(name)
        if name.startswith(self.refused):
            raise Temporary("forbidden")

    def want(self, name: WorkloadName, count: int) -> None:
        self.opener.want(name, pods(name, count))

    def looks(self, after: timedelta = timedelta()) -> list[str]:
        """Let it look once; return the workloads of the pods that it tried, in order."""
        self.now += after
        before = len(self.opened)
        self.opener.look(self.threads)
        return sorted(each.partition("-")[0] for each in self.opened[before:])


def pods(name: WorkloadName, count: int) -> list[Leader]:
    return [read_as(Leader, gated(index, jobset=name.name, uid=f"{name.name}-{index}")) for index in range(count)]


@pytest.fixture
def setup() -> Iterator[Setup]:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        yield Setup(threads)


def test_pods_are_opened_some_at_a_time_and_each_once(setup: Setup) -> None:
    setup.want(LLAMA, AT_ONCE + 2)
    assert [len(setup.looks()) for _ in range(3)] == [AT_ONCE, 2, 0]
    assert len(set(setup.opened)) == AT_ONCE + 2


def test_the_pods_of_each_workload_are_opened_in_turn(setup: Setup) -> None:
    setup.want(LLAMA, 20)
    setup.want(GEMMA, 20)
    assert setup.looks() == ["gemma"] * 4 + ["llama"] * 4


def test_pods_that_are_not_wanted_any_more_are_not_opened(setup: Setup) -> None:
    setup.want(LLAMA, 20)
    setup.looks()
    setup.want(LLAMA, 0)
    assert setup.looks() == []


def test_a_pod_that_seems_to_be_held_long_after_it_was_opened_is_opened_again(setup: Setup) -> None:
    setup.want(LLAMA, 1)
    setup.looks()
    assert setup.looks(RETRY_AFTER / 2) == []
    assert setup.looks(RETRY_AFTER) == ["llama"]


def test_a_pod_that_cannot_be_opened_keeps_no_other_waiting(setup: Setup) -> None:
    setup.refused = "llama-workers-0-"
    setup.want(LLAMA, 3)
    setup.looks()
    setup.want(LLAMA, 12)
    for _ in range(20):
        setup.looks(timedelta(seconds=1))
    assert len(set(setup.opened)) == 12


def test_where_it_fails_one_is_tried_at_a_time_after_pauses_that_rise_and_others_are_opened(setup: Setup) -> None:
    setup.refused = "llama"
    setup.want(LLAMA, 20)
    with capture_logs() as logs:
        assert len(setup.looks()) == AT_ONCE
        setup.want(GEMMA, 2)
        assert setup.looks() == ["gemma", "gemma"]
        setup.want(GEMMA, 0)
        assert setup.looks(timedelta(minutes=1)) == ["llama"]
        assert setup.looks(timedelta(seconds=1)) == []
        assert setup.looks(timedelta(seconds=1)) == ["llama"]
    assert [each["event"] for each in logs] == ["gang.open_failed"]
    setup.refused = "nobody"
    assert setup.looks(timedelta(minutes=1)) == ["llama"]
    assert len(setup.looks()) == AT_ONCE
