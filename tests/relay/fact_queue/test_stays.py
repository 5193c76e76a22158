"""Jobs whose leader left or ended while others of their pods hold chips: they stay, and nothing is told of that."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from relay.lookups.threads import Due, LookedUp
from relay.lookups.users import PodsOn, Users
from tests.relay.objects import bound_pod, jobset, node
from tests.relay.watched import Watched, nodes, occupants, reports
from tpu_slices.domain.model.facts import Fact, Heartbeat, Occupant
from tpu_slices.domain.model.slices import Owner, OwnerKind, WorkloadUid

HOST = "tpu-llama-0-aaaaaaaaaaaaa-1-0"


def llama(pod: str) -> Occupant:
    owner = Owner(kind=OwnerKind.JOBSET, namespace="research", name="llama", uid=WorkloadUid("u-1"))
    return Occupant(owner=owner, generation=1, replicated_job="workers", job_index=0, pod_uid=pod)


@dataclass
class Scene:
    """A pool of four hosts on which a Job runs; `there` is who a look finds, None that nothing can be looked up."""

    watched: Watched = field(default_factory=Watched)
    there: tuple[Occupant, ...] | None = (llama("follower-1"),)
    looks: int = 0

    def __post_init__(self) -> None:
        self.watched.see(jobset(), *nodes(4), bound_pod(0, HOST))
        self.facts()
        self.facts(10)

    def facts(self, seconds: float = 0) -> list[Fact]:
        """Return what is told after so many seconds, heartbeats left out."""
        self.watched.pass_time(seconds)
        queue, now, facts = self.watched.queue, self.watched.now, list[Fact]()
        while dues := queue.due(now):
            for due in dues:
                facts += due.facts
                queue.resume(due.subject)
                if isinstance(due.unknown, PodsOn):
                    self._looks(due)
        return [fact for fact in facts if not isinstance(fact, Heartbeat)]

    def _looks(self, due: Due) -> None:
        self.looks += 1
        users = None if self.there is None else Users(self.there)
        self.watched.queue.looked(due, LookedUp(due.subject, due.facts, users), self.watched.now)

    def leader_goes(self, how: str = "succeeds") -> None:
        if how == "is deleted":
            self.watched.lose(bound_pod(0, HOST))
        elif how == "loses its node":
            self.watched.lose(node(0))
        else:
            self.watched.see(bound_pod(0, HOST, phase={"succeeds": "Succeeded", "fails": "Failed"}[how]))


@pytest.mark.parametrize(
    ("how", "told"), [("succeeds", []), ("is deleted", []), ("fails", ["pod llama-workers-0-0-x2x4z has failed"])]
)
def test_a_job_whose_leader_goes_first_stays_and_at_most_its_pods_are_told(how: str, told: list[str]) -> None:
    scene = Scene()
    scene.leader_goes(how)
    facts = [fact for _ in range(720) for fact in scene.facts(5)]
    assert [each.trouble.words for fact in reports(facts) for each in fact.pods if each.trouble] == told
    assert occupants(facts) == [["pod-0"]] * len(told)
    assert scene.looks == 240, "it is looked each 15 s, not at each change"


def test_a_job_that_loses_the_node_of_its_leader_is_told_with_the_hosts_that_are_left() -> None:
    scene = Scene()
    scene.leader_goes("loses its node")
    assert occupants([*scene.facts(), *scene.facts(5), *scene.facts(15)]) == [["pod-0"]]


def test_a_job_leaves_when_its_last_pod_was_found_gone() -> None:
    scene = Scene()
    scene.leader_goes()
    scene.facts(60)
    scene.there = ()
    assert occupants(scene.facts(15)) == [[]]
    looks = scene.looks
    scene.facts(600)
    assert scene.looks == looks, "nobody is looked for any more"


def test_a_job_that_left_with_its_leader_is_told_to_have_left_in_seconds() -> None:
    scene = Scene(there=())
    scene.leader_goes()
    assert occupants(scene.facts()) == []
    assert occupants(scene.facts(5)) == [[]]


def test_a_job_stays_while_it_cannot_be_looked_who_is_there() -> None:
    scene = Scene(there=None)
    scene.leader_goes()
    assert [scene.facts(15) for _ in range(10)] == [[]] * 10
    scene.there = ()
    assert occupants(scene.facts(15)) == [[]]


def test_a_new_leader_on_the_hosts_takes_the_place_of_the_one_that_left() -> None:
    scene = Scene()
    scene.leader_goes("is deleted")
    scene.facts(5)
    scene.watched.see(bound_pod(0, HOST, uid="pod-anew"))
    assert occupants(scene.facts()) == [["pod-anew"]]
    scene.facts(15)
    looks = scene.looks
    scene.facts(600)
    assert scene.looks == looks


@pytest.mark.parametrize(
    "parts", [{"conditions": ["Completed"]}, {"spec": {"suspend": True}}], ids=["completed", "suspended"]
)
def test_a_job_does_not_stay_when_its_jobset_is_not_active(parts: dict[str, Any]) -> None:
    scene = Scene()
    scene.leader_goes()
    scene.facts(30)
    scene.watched.see(jobset(version=11, **parts))
    assert occupants(scene.facts(5)) == [[]]


def test_a_job_whose_leader_runs_on_other_hosts_does_not_stay_on_the_old_ones() -> None:
    scene = Scene()
    scene.leader_goes("is deleted")
    scene.facts(5)
    scene.watched.see(node(0, attempt=2), bound_pod(0, "tpu-llama-0-aaaaaaaaaaaaa-2-0", uid="pod-anew"))
    assert sorted(occupants([*scene.facts(), *scene.facts(5)])) == [[], ["pod-anew"]]


def test_a_relay_that_starts_finds_the_job_whose_leader_had_ended() -> None:
    scene = Scene()
    scene.watched = Watched.after(jobset(), *nodes(4), bound_pod(0, HOST, phase="Succeeded"))
    assert occupants([*scene.facts(), *scene.facts(10)])[-1] == ["follower-1"]
    assert scene.facts(600) == []
