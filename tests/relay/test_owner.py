"""One thread owns the fact queue: it goes on while look-ups take their time, and keeps the order of facts."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from time import monotonic

import pytest

from relay import relay
from relay.agenda import SteadyClock, Timing
from relay.fact_queue import FactQueue
from relay.health import Health
from relay.hosts.occupants import HostPod
from relay.lookups.threads import Lookups, VolumeLookups
from relay.lookups.users import Looks
from relay.objects import Bookmarked, Kind, Listed, Lost, Pool, Saw, WorkloadName
from relay.relay import Read, Relay
from tests.builders import CLUSTER, NOW
from tests.relay.closing import SLICE, question
from tests.relay.objects import Json, jobset, node, pod
from tests.relay.watched import KINDS, read
from tpu_slices.domain.model import facts as told
from tpu_slices.domain.model.facts import (
    Fact,
    Family,
    Heartbeat,
    HostsChanged,
    SlicesWanted,
    WorkloadChanged,
    WorkloadState,
)
from tpu_slices.domain.model.questions import ListQuestion, RepeatQuestion
from tpu_slices.domain.records.hosts import key_of
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.testing.waiting import beside

MOUNTS: Json = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}


@dataclass
class Api:
    """Answers no look-up before `free` is set; then nothing is bound to a volume, and there are no nodes and pods."""

    free: threading.Event = field(default_factory=threading.Event)
    entered: threading.Event = field(default_factory=threading.Event)

    def volume_claim(self, *_: str) -> Json:
        self._wait()
        return {}

    volume = volume_claim

    def nodes_of(self, pool: Pool) -> frozenset[str]:
        assert pool
        self._wait()
        return frozenset()

    def chip_pods_on(self, node: str, *, exactly: bool) -> tuple[HostPod, ...]:
        assert node
        assert exactly in {True, False}
        return ()

    def workload_named(self, name: WorkloadName) -> None:
        """Return nothing: no pod is on a host."""

    def _wait(self) -> None:
        self.entered.set()
        assert self.free.wait(PATIENCE_SECONDS)


@dataclass
class Scene:
    """A relay with its threads, whose lists are empty at first; a heartbeat is due every 0.1 s.

    For the look-ups no time passes: they are never too late to begin.
    """

    api: Api = field(default_factory=Api)
    posted: list[Fact] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        began = datetime.now(UTC)
        now = SteadyClock(began, monotonic).now
        timing = Timing(
            gather=timedelta(),
            introduce=timedelta(),
            beat=timedelta(seconds=0.1),
            blind_after=timedelta(seconds=PATIENCE_SECONDS),
        )
        self.queue = FactQueue(CLUSTER, timing)
        self.lookups = Lookups(VolumeLookups(self.api, lambda: began), Looks(self.api, lambda: began), Health(now))
        self.relay = Relay(self.queue, now, self.lookups.begin, self.post, Health(now))
        for kind in Kind:
            self.relay.put(Listed(kind, [], "1"))

    def post(self, facts: Sequence[Fact]) -> None:
        with self.changed:
            self.posted += facts
            self.changed.notify_all()

    def see(self, *objects: Json) -> None:
        for obj in objects:
            self.relay.put(Saw(KINDS[obj["kind"]], read(obj), "2"))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let the owner of the fact queue take at once all that is put in the block."""
        over = threading.Event()
        self.relay.put(Read(lambda _: over.wait(PATIENCE_SECONDS), Future()))
        try:
            yield
        finally:
            over.set()

    def until(self, true: Callable[[list[Fact]], object]) -> list[Fact]:
        with self.changed:
            assert self.changed.wait_for(lambda: true(self.posted), PATIENCE_SECONDS), self.posted
            return [*self.posted]

    def begins_to_look_up_volumes(self) -> None:
        self.see(jobset(), pod(0, spec=MOUNTS), pod(1, spec=MOUNTS))
        assert self.api.entered.wait(PATIENCE_SECONDS)


def about_llama(facts: Sequence[Fact]) -> list[str]:
    """Return the kinds and states of the facts about a JobSet, in their order."""
    found = (fact for fact in facts if isinstance(fact, SlicesWanted | WorkloadChanged))
    return [fact.state if isinstance(fact, WorkloadChanged) else "demand" for fact in found]


def beats(facts: Sequence[Fact]) -> int:
    return sum(isinstance(fact, Heartbeat) for fact in facts)


def lists(facts: Sequence[Fact]) -> list[told.Listed]:
    return [fact for fact in facts if isinstance(fact, told.Listed)]


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    for run in (scene.lookups.run_demand, scene.lookups.run_looks):
        threading.Thread(target=run, daemon=True).start()
    with beside(scene.relay.run, scene.relay.stop):
        yield scene
        scene.api.free.set()


@pytest.fixture
def no_look_up_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody wait, at the end, for look-ups that nobody makes."""
    monkeypatch.setattr(relay, "LAST_LOOKUPS", timedelta())


def test_heartbeats_and_other_facts_go_out_while_a_look_up_takes_its_time(scene: Scene) -> None:
    scene.begins_to_look_up_volumes()
    before = beats(scene.posted)
    scene.see(node(0))
    facts = scene.until(lambda facts: beats(facts) >= before + 3 and any(isinstance(f, HostsChanged) for f in facts))
    assert not any(isinstance(fact, SlicesWanted) for fact in facts)
    scene.api.free.set()
    scene.until(lambda facts: any(isinstance(fact, SlicesWanted) for fact in facts))


def test_what_is_asked_of_the_cluster_cache_is_answered_while_a_look_up_takes_its_time(scene: Scene) -> None:
    scene.begins_to_look_up_volumes()
    scene.relay.ask(ListQuestion(family=Family.WORKLOADS, asked_at=NOW))
    (part,) = lists(scene.until(lists))
    assert [*part.digests] == ["u-1"]
    assert scene.relay.needed_patches() == ()


def test_the_end_of_a_jobset_follows_the_demand_that_is_being_looked_up(scene: Scene) -> None:
    scene.begins_to_look_up_volumes()
    before = beats(scene.posted)
    scene.relay.put(Lost(Kind.JOBSETS, "u-1", "3", None, deleted=True))
    scene.until(lambda facts: beats(facts) >= before + 3)
    assert about_llama(scene.posted) == [WorkloadState.ACTIVE]
    scene.api.free.set()
    facts = scene.until(lambda facts: WorkloadState.DELETED in about_llama(facts))
    assert about_llama(facts) == [WorkloadState.ACTIVE, "demand", WorkloadState.DELETED]


@pytest.mark.slow
def test_hosts_that_are_being_looked_up_are_counted_anew_afterwards(scene: Scene) -> None:
    scene.relay.ask(question())  # a pool without hosts: that is looked up
    assert scene.api.entered.wait(PATIENCE_SECONDS)
    scene.see(node(0))
    for _ in range(2):
        scene.relay.ask(RepeatQuestion(family=Family.HOSTS, keys=(key_of(SLICE, 1),)))
        scene.relay.ask(ListQuestion(family=Family.HOSTS, asked_at=NOW))
        before = beats(scene.posted)
        scene.until(lambda facts, before=before: beats(facts) >= before + 3)  # type: ignore[misc]  # a bound default
    assert not [fact for fact in scene.posted if isinstance(fact, HostsChanged | told.Listed)]
    scene.api.free.set()
    facts = scene.until(lists)
    facts = facts[: facts.index(lists(facts)[0])]
    counted = [(fact.slice_id, fact.joined) for fact in facts if isinstance(fact, HostsChanged)]
    assert counted[:2] == [(SLICE, 0), (SLICE, 1)]


@pytest.mark.usefixtures("no_look_up_ends")
def test_at_the_end_demand_goes_out_without_volumes_that_nobody_has_looked_up() -> None:
    scene = Scene()
    scene.see(jobset(), pod(0, spec=MOUNTS), pod(1, spec=MOUNTS))
    with beside(scene.relay.run, scene.relay.stop):
        scene.until(lambda facts: WorkloadState.ACTIVE in about_llama(facts))
    assert about_llama(scene.posted) == [WorkloadState.ACTIVE, "demand"]


@pytest.mark.usefixtures("no_look_up_ends")
def test_at_the_end_no_answer_goes_out_that_nobody_has_proven() -> None:
    scene = Scene()
    scene.see(node(0))
    with beside(scene.relay.run, scene.relay.stop):
        scene.until(lambda facts: any(isinstance(fact, HostsChanged) for fact in facts))
        with scene.held():
            scene.relay.put(Lost(Kind.HOSTS, node(0)["metadata"]["name"], "3", None, deleted=True))
            scene.relay.ask(question())
    (before, last) = (fact for fact in scene.posted if isinstance(fact, HostsChanged))
    assert (before.joined, last.joined, last.answers) == (1, 0, None)


def test_everything_that_was_put_before_the_end_is_taken() -> None:
    scene = Scene()

    def put(numbers: range) -> None:
        for number in numbers:
            scene.see(jobset(f"js-{number}", uid=f"u-{number}"))
            scene.relay.put(Bookmarked(Kind.LEADERS, "2"))

    put(range(100))
    with beside(scene.relay.run, scene.relay.stop):
        put(range(100, 500))
    assert len(about_llama(scene.posted)) == 500
