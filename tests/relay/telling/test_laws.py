"""Laws of whatever flaps: what the functions know of a JobSet to which something happens each second."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from relay.agenda import Timing
from tests.builders import CLUSTER, settings
from tests.properties import at_most
from tests.relay.objects import bound_pod, jobset, node, pod
from tests.relay.watched import Watched
from tpu_slices.domain.model.facts import (
    Answer,
    Fact,
    Family,
    HostsChanged,
    Reach,
    SlicesWanted,
    WorkloadChanged,
    WorkloadState,
)
from tpu_slices.domain.model.questions import Question, RepeatQuestion
from tpu_slices.domain.model.slices import ClaimId, WorkloadUid, claim_id
from tpu_slices.domain.reconciling.demand import asked_by, changed, wanted
from tpu_slices.domain.records.workloads import WorkloadRecord, demand_digest

SLICES = 2
POOLS = ("tpu-llama-0-aaaaaaaaaaaaa", "tpu-llama-1-bbbbbbbbbbbbb")
HAPPENINGS = ("flips", "flips", "pods go", "is edited", "moves", "nothing", *(
    f"{what} {index}" for what in ("replaced", "bound", "left") for index in range(SLICES)
))  # fmt: skip


QUESTIONS = ("is asked about", "is listed", "is told of by an answer")


@dataclass
class Known:
    """What the functions know: the JobSet's record, and who was ever on hosts, at which generation."""

    record: WorkloadRecord | None = None
    present: dict[str, frozenset[str]] = field(default_factory=dict)
    latest_user: int = 0

    def receive(self, fact: Fact, watched: Watched) -> None:
        match fact:
            case WorkloadChanged() | Answer():
                self.record = changed(fact, self.record, watched.now, CLUSTER) or self.record
            case SlicesWanted():
                demand = wanted(asked_by(fact, self.record, settings()), {}, watched.now)
                self.record = demand.workload if demand is not None else self.record
            case HostsChanged():
                self._count(fact)
            case _:
                pass

    def _count(self, fact: HostsChanged) -> None:
        before = self.present.get(fact.slice_id, frozenset())
        self.present[fact.slice_id] = frozenset(each.pod_uid for each in fact.occupants)
        for user in fact.occupants:
            self.latest_user = max(self.latest_user, user.generation)
            if user.pod_uid not in before and self.record is not None:
                settled = {**self.record.demand, claim_id(user.workload_job(CLUSTER)): None}
                self.record = replace(self.record, demand=settled)


class Story:
    """A JobSet of two slices whose hosts are there, the relay that watches it, and what the functions know."""

    def __init__(self) -> None:
        self.watched, self.known = Watched(), Known()
        self.generation, self.pods, self.queue = 1, 0, 0
        self.told, self.reports = 0, 0
        self.is_suspended = False
        self.leaders: dict[int, dict[str, Any]] = {}
        self.watched.see(*(node(0, slice_id=each) for each in POOLS))
        self.is_seen()
        self.publishes()

    def happens(self, what: str) -> None:
        name, _, index = what.partition(" ")
        match name:
            case "flips":
                self.is_suspended = not self.is_suspended
                self.generation += 1
            case "is" if index == "edited":
                self.generation += 1
            case "is":
                self.is_asked_about(what)
            case "moves":
                self.queue += 1
            case "pods":
                self.goes(*self.leaders)
            case "nothing":
                return
            case _:
                self.leader_changes(int(index), name)
        self.is_seen()

    def is_asked_about(self, how: str) -> None:
        """Let the functions ask about the JobSet; what the API server says of it now they know then."""
        workload = self.watched.queue.cache.workload(WorkloadUid("u-1"))
        assert workload is not None
        match how:
            case "is asked about":
                self.watched.queue.ask(RepeatQuestion(family=Family.DEMAND, keys=("u-1",)), self.watched.now)
            case "is listed":
                self.watched.asked_for_list(Family.DEMAND)
            case _:
                self.watched.queue.ask(Question(owner=workload.ref.owner), self.watched.now)
                self.known.receive(Answer(workload=workload.ref, state=workload.state), self.watched)

    def is_seen(self) -> None:
        labels = {"kueue.x-k8s.io/queue-name": f"team-{self.queue % 2}"} if self.queue else {}
        metadata = {"labels": labels, "creationTimestamp": "2026-11-01T12:00:00Z"}
        spec = {"suspend": True} if self.is_suspended else {}
        self.watched.see(jobset(generation=self.generation, spec=spec, metadata=metadata))
        for index in range(SLICES):
            if not self.is_suspended and index not in self.leaders:
                self.comes(index)

    def leader_changes(self, index: int, what: str) -> None:
        if index not in self.leaders:
            return
        waits = "nodeName" not in self.leaders[index]["spec"]
        if what == "bound" and waits:
            uid = self.leaders[index]["metadata"]["uid"]
            self.leaders[index] = bound_pod(index, f"{POOLS[index]}-1-0", uid=uid)
            self.watched.see(self.leaders[index])
        elif (what == "replaced") == waits:
            self.goes(index)

    def comes(self, index: int) -> None:
        self.pods += 1
        self.leaders[index] = pod(index, uid=f"pod-{self.pods}")
        self.watched.see(self.leaders[index])

    def goes(self, *indexes: int) -> None:
        for index in indexes:
            self.watched.lose(self.leaders.pop(index))

    def publishes(self) -> None:
        for fact in self.watched.due_facts():
            self.told += isinstance(fact, WorkloadChanged | SlicesWanted)
            self.reports += isinstance(fact, HostsChanged)
            self.known.receive(fact, self.watched)

    def plays(self, history: Sequence[str], seconds: int) -> None:
        """Let each second what is next of a history happen, which begins anew at its end."""
        for second in range(seconds):
            self.happens(history[second % len(history)])
            self.publishes()
            self.watched.pass_time(1)

    @property
    def record(self) -> WorkloadRecord:
        assert self.known.record is not None
        return self.known.record

    @property
    def seen(self) -> tuple[object, ...]:
        queue = f"team-{self.queue % 2}" if self.queue else ""
        return WorkloadState.SUSPENDED if self.is_suspended else WorkloadState.ACTIVE, queue

    @property
    def waiting(self) -> set[ClaimId]:
        """The claims whose leaders wait."""
        indexes = [] if self.is_suspended else [i for i, each in self.leaders.items() if "nodeName" not in each["spec"]]
        return {claim for claim in self.record.demand if any(f"-{index}-" in claim for index in indexes)}


changes = st.lists(st.sampled_from(HAPPENINGS), min_size=1, max_size=30)
histories = st.lists(st.sampled_from((*HAPPENINGS, *QUESTIONS)), min_size=1, max_size=30)


@given(history=histories)
@at_most(30)
def test_an_end_of_use_is_told_with_the_next_facts(history: Sequence[str]) -> None:
    story = Story()
    for what in (*history, *history, *history):
        story.happens(what)
        story.publishes()
        if story.is_suspended:
            record = story.record
            assert (record.state, story.known.latest_user <= record.generation) == (WorkloadState.SUSPENDED, True)
        story.watched.pass_time(1)


@given(history=histories, seconds=st.integers(1, 200))
@at_most(30)
def test_what_is_there_in_the_end_is_told_within_the_longest_pause(history: Sequence[str], seconds: int) -> None:
    story = Story()
    story.plays(history, seconds)
    for _ in range(11):
        story.watched.pass_time(Timing().renew_at_most / 10 / timedelta(seconds=1))
        story.publishes()
    assert (story.record.state, story.record.queue) == story.seen
    told = {claim for claim, at in story.record.demand.items() if at is not None}
    assert story.waiting <= told


@given(history=histories, seconds=st.integers(1, 200))
@at_most(30)
def test_digests_are_those_of_the_records_whatever_is_held_back(history: Sequence[str], seconds: int) -> None:
    story = Story()
    story.plays(history, seconds)
    story.publishes()
    record = story.record
    waiting = [claim for claim in record.in_demand if claim in story.waiting]
    demand = demand_digest({claim: record.reach.get(claim, Reach.OWN) for claim in waiting})
    assert story.watched.digests(Family.WORKLOADS) == {"u-1": record.standing}
    if QUESTIONS[-1] not in history:  # what an answer says of demand that was told before is found by a list
        assert story.watched.digests(Family.DEMAND) == ({"u-1": demand} if demand else {})


@given(history=changes)
@at_most(6)
def test_an_hour_of_changes_each_second_costs_a_fact_each_quarter_of_a_minute(history: Sequence[str]) -> None:
    """Beside the suspensions of who came to hosts meanwhile, of which each has a report of hosts before it."""
    story = Story()
    story.plays(history, 3_600)
    assert story.told <= 240 + story.reports
