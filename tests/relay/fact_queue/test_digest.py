"""The digest of hosts in a heartbeat: the sum over all pools of what was published of them last."""

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from relay.objects import Kind
from tests.builders import NOW
from tests.properties import at_most
from tests.relay.fact_queue.test_hosts import legacy_node
from tests.relay.objects import bound_pod, jobset, node
from tests.relay.watched import Watched, nodes, reports
from tpu_slices.domain.model.facts import Fact, Family, HostsChanged, Listed
from tpu_slices.domain.model.questions import HostsQuestion, RepeatQuestion
from tpu_slices.domain.model.slices import ClaimId
from tpu_slices.domain.reconciling.occupancy import counted
from tpu_slices.domain.records.hosts import NO_HOSTS, Hosts, digest_of, key_of

SLICES = ("tpu-llama-0-aaaaaaaaaaaaa", "tpu-llama-1-bbbbbbbbbbbbb")


def digest(watched: Watched) -> int:
    """Return what a heartbeat would say now."""
    return sum(watched.queue._published.digests.values())


def digests(facts: Iterable[Fact]) -> dict[str, int]:
    """Return the digests of the pools that have hosts, by the last report of each."""
    last = {(fact.slice_id, fact.attempt): fact for fact in facts if isinstance(fact, HostsChanged)}
    found = {key_of(*pool): digest_of(*pool, as_known(fact)) for pool, fact in last.items()}
    return {key: digest for key, digest in found.items() if digest}


def as_known(fact: HostsChanged) -> Hosts:
    """Return the hosts as the functions have them on record after a report."""
    known = counted(NO_HOSTS, fact, NOW)
    assert known is not None
    return known


def test_without_hosts_the_digest_is_zero(watched: Watched) -> None:
    watched.see(jobset())
    assert digest(watched) == 0


def test_the_digest_is_the_sum_of_what_was_published_not_of_what_is_seen(watched: Watched) -> None:
    watched.see(jobset(), *nodes(2), *nodes(1, slice_id=SLICES[1]))
    facts = watched.due_facts()
    watched.see(node(2))
    assert watched.due_facts() == []
    assert digest(watched) == sum(digests(facts).values()) > 0
    watched.pass_time(15)
    facts += watched.due_facts()
    assert digest(watched) == sum(digests(facts).values())


def test_the_digest_is_zero_again_when_all_hosts_are_gone(watched: Watched) -> None:
    watched.see(jobset(), *nodes(4), legacy_node(9))
    watched.due_facts()
    watched.relist(Kind.HOSTS, version=50)
    watched.pass_time(15)
    assert len(reports(watched.due_facts())) == 2
    assert digest(watched) == 0


def test_the_list_of_hosts_has_what_was_told_of_each_pool_and_reports_none_again(watched: Watched) -> None:
    watched.see(jobset(), *nodes(2), *nodes(1, slice_id=SLICES[1]), legacy_node(9))
    told = watched.due_facts()
    watched.pass_time(5)
    watched.due_facts()
    watched.see(node(2))
    watched.asked_for_list(Family.HOSTS)
    (listed,) = watched.due_facts()
    assert isinstance(listed, Listed)
    assert listed.digests == digests(told)
    assert sum(listed.digests.values()) == digest(watched)
    assert {listed.sequence} == {fact.sequence for fact in reports(told)}


def test_the_list_is_empty_without_hosts(watched: Watched) -> None:
    assert watched.digests(Family.HOSTS) == {}


def test_the_hosts_of_pools_are_repeated_by_their_keys_as_they_are_seen_now(watched: Watched) -> None:
    watched.see(jobset(), *nodes(2), *nodes(1, slice_id=SLICES[1]), legacy_node(9))
    (legacy,) = (fact for fact in reports(watched.due_facts()) if not fact.attempt)
    watched.see(node(2))
    keys = (key_of(legacy.slice_id, 0), f"{SLICES[0]}-1", f"{SLICES[0]}-2")
    watched.queue.ask(RepeatQuestion(family=Family.HOSTS, keys=keys), watched.now)
    counted = {key_of(fact.slice_id, fact.attempt): fact.joined for fact in reports(watched.due_facts())}
    assert counted == dict(zip(keys, (1, 3, 0), strict=True))
    assert watched.due_facts() == []


numbers = st.integers(0, 2)
versions: list[dict[str, Any]] = [
    {},
    {"spec": {"suspend": True}},
    {"conditions": ["Failed"]},
    {"uid": "u-2"},
]


class Events(RuleBasedStateMachine):
    """JobSets, leaders and hosts, of our pools and of a legacy one, come, change and go in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.watched = Watched()
        self.watched.pass_time(5)
        self.facts: list[Fact] = []
        self.version = 100

    @rule(parts=st.sampled_from(versions))
    def a_jobset_comes_or_changes(self, parts: dict[str, Any]) -> None:
        self.version += 1
        self.watched.see(jobset(generation=self.version, **parts))

    @rule(uid=st.sampled_from(["u-1", "u-2"]))
    def a_jobset_goes(self, uid: str) -> None:
        self.watched.lose(jobset(uid=uid))

    @rule(number=numbers, slice_id=st.sampled_from(SLICES), ready=st.booleans(), cordoned=st.booleans())
    def a_host_comes_or_changes(self, number: int, slice_id: str, ready: bool, cordoned: bool) -> None:
        self.watched.see(node(number, slice_id=slice_id, ready=ready, spec={"unschedulable": cordoned}))

    @rule(number=numbers, slice_id=st.sampled_from(SLICES))
    def a_host_goes(self, number: int, slice_id: str) -> None:
        self.watched.lose(node(number, slice_id=slice_id))

    @rule(comes=st.booleans())
    def a_legacy_host_comes_or_goes(self, comes: bool) -> None:
        legacy = legacy_node()
        legacy["metadata"]["name"] = "legacy"
        if comes:
            self.watched.see(legacy)
        else:
            self.watched.lose(legacy)

    @rule(index=numbers, on=st.sampled_from([*(f"{each}-1-0" for each in SLICES), "legacy"]), uid=st.booleans())
    def a_leader_comes_or_moves(self, index: int, on: str, uid: bool) -> None:
        labels = {"jobset.sigs.k8s.io/jobset-uid": "u-2" if uid else "u-1"}
        self.watched.see(bound_pod(index, on, labels=labels))

    @rule(index=numbers)
    def a_leader_goes(self, index: int) -> None:
        self.watched.lose(bound_pod(index, "any"))

    @rule(seconds=st.sampled_from([1, 5, 15, 300]))
    def time_passes(self, seconds: float) -> None:
        self.watched.pass_time(seconds)

    @rule()
    def the_hosts_are_listed_again_and_none_is_left(self) -> None:
        self.watched.relist(Kind.HOSTS, version=self.version)

    @rule(slice_id=st.sampled_from(SLICES), close=st.booleans())
    def somebody_asks_about_a_pool(self, slice_id: str, close: bool) -> None:
        self.version += 1
        question = HostsQuestion(slice_id=ClaimId(slice_id), attempt=1, number=self.version, asked_at=NOW, close=close)
        self.watched.queue.ask(question, self.watched.now)

    @rule()
    def what_is_due_is_published(self) -> None:
        self.facts += self.watched.due_facts()

    @rule()
    def all_pools_are_listed(self) -> None:
        self.what_is_due_is_published()
        assert self.watched.digests(Family.HOSTS) == digests(self.facts)

    @rule()
    def all_pools_are_repeated(self) -> None:
        self.watched.asked_for_hosts()

    @invariant()
    def the_digest_is_the_sum_of_what_was_published(self) -> None:
        assert digest(self.watched) == sum(digests(self.facts).values())


Events.TestCase.settings = at_most(30, stateful_step_count=40)
TestEvents = Events.TestCase
