"""What the fact queue tells of workloads that flap."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from relay.agenda import Timing
from relay.objects import Kind, Workload
from tests.relay.objects import bound_pod, group_pod, jobset, leader_worker_set, node, pod, replicated_job
from tests.relay.watched import Watched, demand, read_as, reports, states
from tpu_slices.domain.model.facts import Fact, Family, SlicesWanted, WorkloadChanged, WorkloadState
from tpu_slices.domain.model.questions import HostsQuestion, Question, RepeatQuestion
from tpu_slices.domain.model.slices import ClaimId
from tpu_slices.domain.records.standings import standing
from tpu_slices_simulator.relays import facts_of

SUSPENDED, ACTIVE = WorkloadState.SUSPENDED, WorkloadState.ACTIVE
HOUR = 3_600


class Flapping:
    """A fact queue with a JobSet that is changed each second; `facts` are those that were told, with their seconds."""

    def __init__(self, slices: int = 2) -> None:
        self.watched, self.slices = Watched(), slices
        self.generation, self.second = 1, 0
        self.facts: list[tuple[int, Fact]] = []
        self.is_suspended = False
        self.sees()
        self.pods_come()
        self.publishes()

    def sees(self, **parts: Any) -> None:
        spec = {"replicatedJobs": [replicated_job(replicas=self.slices)], "suspend": self.is_suspended}
        self.watched.see(jobset(generation=self.generation, spec=spec, **parts))

    def pods_come(self) -> None:
        self.watched.see(*(pod(index, uid=f"pod-{index}-{self.generation}") for index in range(self.slices)))

    def flips(self) -> None:
        """Suspend the JobSet, or resume it; its leaders come and go with that."""
        before, self.generation = self.generation, self.generation + 1
        self.is_suspended = not self.is_suspended
        self.sees()
        if self.is_suspended:
            for index in range(self.slices):
                self.watched.lose(pod(index, uid=f"pod-{index}-{before}"))
        else:
            self.pods_come()

    def publishes(self) -> list[Fact]:
        facts = self.watched.due_facts()
        self.facts += [(self.second, fact) for fact in facts]
        return facts

    def passes(self, seconds: int, each: Callable[[], None] = lambda: None) -> None:
        """Let seconds pass; in each of them first that happens."""
        for _ in range(seconds):
            each()
            self.publishes()
            self.watched.pass_time(1)
            self.second += 1
        self.publishes()

    def told(self, kind: type[Fact]) -> list[int]:
        """Return in which seconds facts of a kind were told."""
        return [second for second, fact in self.facts if isinstance(fact, kind)]

    def states(self) -> list[tuple[int, WorkloadState]]:
        return [(second, fact.state) for second, fact in self.facts if isinstance(fact, WorkloadChanged)]

    def begins_anew(self) -> None:
        """Let it be quiet for long."""
        self.passes(61)
        self.facts, self.second = [], 0


@pytest.fixture
def flapping() -> Flapping:
    begun = Flapping()
    begun.begins_anew()
    return begun


def test_who_flips_each_second_is_resumed_after_pauses_that_double_and_suspended_at_once(flapping: Flapping) -> None:
    flapping.passes(40, flapping.flips)
    assert flapping.states() == [
        (0, SUSPENDED), (1, ACTIVE), (2, SUSPENDED), (3, ACTIVE), (4, SUSPENDED), (5, ACTIVE), (6, SUSPENDED),
        (9, ACTIVE), (10, SUSPENDED), (17, ACTIVE), (18, SUSPENDED), (33, ACTIVE), (34, SUSPENDED),
    ]  # fmt: skip
    assert flapping.told(SlicesWanted) == [1, 3, 5, 9, 17, 33]


def test_two_minutes_of_flips_of_250_slices_tell_all_of_them_seven_times() -> None:
    begun = Flapping(slices=250)
    begun.begins_anew()
    begun.passes(120, begun.flips)
    told = Counter(type(fact).__name__ for _, fact in begun.facts)
    assert told == {"WorkloadChanged": 7 + 8, "SlicesWanted": 2 * 7}


def test_the_last_state_is_told_once_the_pause_is_over(flapping: Flapping) -> None:
    flapping.passes(40, flapping.flips)
    flapping.facts = []
    flapping.passes(60)
    assert flapping.states() == [(65, ACTIVE)]
    assert flapping.told(SlicesWanted) == [65]


def test_what_is_in_the_end_as_it_was_told_is_not_told(flapping: Flapping) -> None:
    flapping.passes(40, flapping.flips)
    assert not flapping.is_suspended
    flapping.flips()
    flapping.facts = []
    flapping.passes(600)
    assert flapping.facts == []


def test_one_suspension_and_one_resumption_are_told_at_once(flapping: Flapping) -> None:
    flapping.flips()
    assert states(flapping.publishes()) == [("u-1", SUSPENDED)]
    flapping.flips()
    facts = flapping.publishes()
    assert (states(facts), demand(facts)) == ([("u-1", ACTIVE)], [[0, 1]])


@pytest.mark.parametrize("condition", ["Completed", "Failed"])
def test_an_end_is_told_at_once_whatever_is_held_back(flapping: Flapping, condition: str) -> None:
    flapping.passes(40, flapping.flips)
    flapping.sees(conditions=[condition])
    assert [state for _, state in states(flapping.publishes())] == [WorkloadState(condition.upper())]


def test_a_deletion_is_told_at_once_and_a_jobset_made_anew_under_its_name_is_none_that_flaps(
    flapping: Flapping,
) -> None:
    flapping.passes(40, flapping.flips)
    flapping.watched.lose(jobset(generation=99))
    flapping.watched.see(jobset(uid="u-2", spec={"suspend": True}))
    assert states(flapping.publishes()) == [("u-1", WorkloadState.DELETED), ("u-2", SUSPENDED)]
    flapping.facts = []
    flapping.passes(600)
    assert flapping.facts == []


def a_pool_is_used(flapping: Flapping) -> None:
    """Let a host come, and the leader of the first Job run on it."""
    flapping.watched.see(node(0), bound_pod(0, node(0)["metadata"]["name"], uid=f"pod-0-{flapping.generation}"))


def test_who_came_to_hosts_since_its_suspension_was_told_is_told_to_be_suspended_again(flapping: Flapping) -> None:
    flapping.passes(19, flapping.flips)
    assert (flapping.is_suspended, flapping.states()[-1]) == (True, (18, SUSPENDED))
    flapping.facts = []
    flapping.flips()
    a_pool_is_used(flapping)
    (report,) = reports(flapping.publishes())
    assert [user.generation for user in report.occupants] == [flapping.generation]
    assert flapping.states() == []
    flapping.flips()
    (fact,) = (fact for fact in flapping.publishes() if isinstance(fact, WorkloadChanged))
    assert (fact.state, fact.workload.generation) == (SUSPENDED, flapping.generation)


def test_a_suspension_that_was_told_is_not_told_again_if_nobody_came_to_hosts_since(flapping: Flapping) -> None:
    flapping.passes(19, flapping.flips)
    flapping.facts = []
    flapping.passes(8, flapping.flips)
    assert flapping.facts == []


def test_its_end_is_repeated_while_hosts_are_there_although_it_was_resumed_unnoticed(flapping: Flapping) -> None:
    flapping.watched.see(node(0))
    flapping.passes(19, flapping.flips)
    flapping.passes(6, flapping.flips)
    assert flapping.is_suspended
    flapping.facts = []
    flapping.passes(310)
    assert [state for _, state in flapping.states()] == [SUSPENDED]


def standings(watched: Watched) -> int:
    """Return the sum of the digests of workloads, as a heartbeat has it."""
    return sum(watched.digests(Family.WORKLOADS).values())


def of_state(state: WorkloadState) -> int:
    return standing(read_as(Workload, jobset()).ref.owner.uid, state, "", "", None)


def test_while_something_is_held_back_digests_are_of_what_was_told(flapping: Flapping) -> None:
    flapping.passes(19, flapping.flips)
    flapping.flips()
    assert not flapping.is_suspended
    assert standings(flapping.watched) == of_state(SUSPENDED)
    assert flapping.watched.digests(Family.DEMAND) == {}
    flapping.passes(60)
    assert standings(flapping.watched) == of_state(ACTIVE)
    assert flapping.watched.digests(Family.DEMAND).keys() == {"u-1"}


@pytest.mark.parametrize("family", [Family.WORKLOADS, Family.DEMAND])
def test_what_is_held_back_is_told_at_once_if_somebody_asks(flapping: Flapping, family: Family) -> None:
    flapping.passes(19, flapping.flips)
    flapping.flips()
    flapping.facts = []
    flapping.watched.queue.ask(RepeatQuestion(family=family, keys=("u-1",)), flapping.watched.now)
    facts = flapping.publishes()
    assert (states(facts), demand(facts)) == ([("u-1", ACTIVE)], [[0, 1]])
    flapping.passes(600)
    assert len(flapping.facts) == 2


def test_after_a_question_that_was_answered_in_the_hold_a_suspension_is_told(flapping: Flapping) -> None:
    flapping.passes(19, flapping.flips)
    flapping.flips()
    owner = read_as(Workload, jobset()).ref.owner
    flapping.watched.queue.ask(Question(owner=owner), flapping.watched.now)
    flapping.flips()
    assert states(flapping.publishes()) == [("u-1", SUSPENDED)]


def test_a_question_about_hosts_lets_what_is_held_back_wait(flapping: Flapping) -> None:
    flapping.watched.see(node(0))
    flapping.passes(19, flapping.flips)
    flapping.flips()
    asked = HostsQuestion(
        slice_id=ClaimId("tpu-llama-0-aaaaaaaaaaaaa"), attempt=1, number=1, asked_at=flapping.watched.now, close=True
    )
    flapping.watched.queue.ask(asked, flapping.watched.now)
    assert states(flapping.publishes()) == []


def test_a_relay_that_starts_in_the_hold_tells_what_it_sees() -> None:
    watched = Watched.after(jobset(generation=20), pod(0), pod(1))
    assert demand(watched.due_facts()) == [[0, 1]]


def test_what_is_held_back_while_a_watch_hangs_is_told_once_that_is_back(flapping: Flapping) -> None:
    flapping.passes(19, flapping.flips)
    flapping.flips()
    flapping.publishes()
    watched = flapping.watched
    watched.now += Timing().blind_after
    for kind in set(Kind) - {Kind.LEADERS}:
        watched.queue.bookmarked(kind, "1", watched.now)
    assert flapping.publishes() == []
    watched.queue.bookmarked(Kind.LEADERS, "1", watched.now)
    assert states(flapping.publishes()) == [("u-1", ACTIVE)]


def test_a_relay_that_ends_tells_nothing_that_is_held_back(flapping: Flapping) -> None:
    flapping.passes(19, flapping.flips)
    flapping.flips()
    watched = flapping.watched
    assert facts_of(watched.queue, watched.queue.flush(watched.now), watched.now) == []


def test_a_leader_that_is_deleted_each_second_is_told_after_pauses_that_double(flapping: Flapping) -> None:
    def is_replaced() -> None:
        flapping.watched.lose(pod(0, uid=f"pod-0-{flapping.generation}"))
        flapping.generation += 1
        flapping.watched.see(pod(0, uid=f"pod-0-{flapping.generation}"))

    flapping.generation = 1
    flapping.passes(HOUR // 6, is_replaced)
    assert flapping.told(SlicesWanted) == [0, 1, 3, 7, 15, 31, 63, 127, 255, 511]
    assert {index for part in demand([fact for _, fact in flapping.facts]) for index in part} == {0}


def test_the_digest_of_demand_has_a_leader_that_waits_again_as_it_was_told(flapping: Flapping) -> None:
    before = flapping.watched.digests(Family.DEMAND)
    for number in range(1, 6):
        flapping.watched.lose(pod(0, uid=f"pod-0-{number}"))
        flapping.watched.see(pod(0, uid=f"pod-0-{number + 1}"))
        flapping.passes(1)
    flapping.facts = []
    assert (flapping.watched.digests(Family.DEMAND), flapping.facts) == (before, [])


def test_leaders_of_many_jobs_that_are_deleted_in_turn_are_gathered_ever_longer() -> None:
    begun = Flapping(slices=120)
    begun.begins_anew()

    def one_is_replaced() -> None:
        life, index = divmod(begun.second, 120)
        begun.watched.lose(pod(index, uid=f"pod-{index}-{life + 1}"))
        begun.watched.see(pod(index, uid=f"pod-{index}-{life + 2}"))

    begun.passes(HOUR // 6, one_is_replaced)
    assert len(begun.told(SlicesWanted)) < 600 // 4


def test_leaders_that_come_one_after_another_are_each_told_once() -> None:
    watched = Watched()
    watched.see(jobset(spec={"replicatedJobs": [replicated_job(replicas=200)]}))
    facts: list[Fact] = []
    for index in range(200):
        watched.see(pod(index))
        watched.pass_time(1)
        facts += watched.due_facts()
    assert [index for part in demand(facts) for index in part] == [*range(200)]


@pytest.mark.parametrize("resumed", [False, True], ids=["at first", "when it is resumed"])
def test_leaders_of_a_big_jobset_are_told_soon_however_slowly_they_come(*, resumed: bool) -> None:
    watched = Watched()
    spec: dict[str, Any] = {"replicatedJobs": [replicated_job(replicas=1_000)]}
    watched.see(jobset(spec=spec))
    if resumed:
        watched.see(*map(pod, range(1_000)))
        watched.due_facts()
        watched.see(jobset(generation=2, spec={**spec, "suspend": True}))
        for index in range(1_000):
            watched.lose(pod(index))
        watched.due_facts()
        watched.see(jobset(generation=3, spec=spec))
    facts, latest = watched.due_facts(), 0
    for second in range(125):
        watched.see(*(pod(8 * second + each, uid=f"again-{8 * second + each}") for each in range(8)))
        facts += watched.due_facts()
        latest = max(latest, second - len([index for part in demand(facts) for index in part]) // 8)
        watched.pass_time(1)
    watched.pass_time(30)
    facts += watched.due_facts()
    assert sorted(index for part in demand(facts) for index in part) == [*range(1_000)]
    assert latest <= 16


def test_groups_that_are_scaled_each_second_are_told_to_go_at_once_and_to_come_after_pauses() -> None:
    watched = Watched()
    watched.see(leader_worker_set(groups=1))
    watched.pass_time(61)
    watched.due_facts()
    told: list[tuple[int, int | None]] = []
    for second in range(40):
        groups = 1 if second % 2 else 3
        watched.see(leader_worker_set(groups=groups, generation=second + 2))
        for index in (1, 2):
            leader = group_pod(index, metadata={"uid": f"pod-{index}-{second // 2}"})
            watched.see(leader) if groups == 3 else watched.lose(leader)
        facts = (fact for fact in watched.due_facts() if isinstance(fact, WorkloadChanged))
        told += [(second, fact.workload.groups) for fact in facts]
        watched.pass_time(1)
    assert told == [(0, 3), (1, 1), (2, 3), (3, 1), (4, 3), (5, 1), (8, 3), (9, 1), (16, 3), (17, 1), (32, 3), (33, 1)]


def test_a_queue_that_changes_each_second_is_told_after_pauses_that_double(flapping: Flapping) -> None:
    def moves() -> None:
        flapping.sees(metadata={"labels": {"kueue.x-k8s.io/queue-name": f"team-{flapping.second}"}})

    flapping.passes(40, moves)
    told = [(second, fact.queue) for second, fact in flapping.facts if isinstance(fact, WorkloadChanged)]
    assert told == [(second, f"team-{second}") for second in (0, 1, 3, 7, 15, 31)]
    assert flapping.told(SlicesWanted) == []


def test_new_leaders_are_told_while_another_queue_is_held_back(flapping: Flapping) -> None:
    flapping.slices = 3
    flapping.sees()
    for number in range(5):
        flapping.sees(metadata={"labels": {"kueue.x-k8s.io/queue-name": f"team-{number}"}})
        flapping.passes(1)
    flapping.watched.see(pod(2))
    flapping.facts = []
    flapping.passes(1)
    assert demand([fact for _, fact in flapping.facts]) == [[2]]


def test_a_workload_that_is_gone_leaves_nothing(flapping: Flapping) -> None:
    queue = flapping.watched.queue
    flapping.passes(19, flapping.flips)
    flapping.flips()
    flapping.watched.lose(jobset())
    flapping.publishes()
    telling = queue._telling
    assert (telling._paces, telling._held, telling._asked) == ({}, {}, set())
    assert (telling._states._told, telling._demand._told) == ({}, {})


def test_demand_with_volumes_is_repeated_each_five_minutes_and_not_with_each_event_of_its_jobset() -> None:
    watched = Watched()
    volume = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
    spec: dict[str, Any] = {"replicatedJobs": [replicated_job(replicas=3)]}
    watched.see(jobset(spec=spec), *(pod(index, spec=volume) for index in range(2)))
    watched.pass_time(1)
    assert demand(watched.due_facts()) == [[0, 1]]
    told: list[tuple[int, list[int]]] = []
    for second in range(1, 601):
        if second == 7:
            watched.see(pod(2, spec=volume))
        watched.see(jobset(version=20 + second, spec=spec))
        watched.pass_time(1)
        told += [(second, part) for part in demand(watched.due_facts())]
    assert told == [(7, [2]), (300, [0, 1, 2]), (600, [0, 1, 2])]
