"""The thread that answers checks: what it writes, what it has the relay know, and what becomes of failures."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from relay.health import Health
from relay.kueue.findings import NONE_NEEDED, Progress
from relay.kueue.keeper import KNOWN_WITHIN, CheckKeeper
from relay.kueue.objects import CheckState, flavor, queued
from relay.kueue.objects import admission_check as read_check
from relay.kueue.reservations import Reservation
from relay.kueue.rules import TELL_EVERY
from relay.objects import Aside, Bookmarked, Listed, Lost, Saw, Workload
from tests.builders import NOW
from tests.relay.kueue import objects
from tests.relay.kueue.objects import FakeCalls, check, workload
from tests.relay.kueue.test_findings import LATER, told
from tests.relay.objects import jobset
from tests.relay.watched import read_as
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.domain.records.mirror import Mirrored, MirrorKind
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.publisher import MirrorChanged

SECOND = timedelta(seconds=1)
JOBSET = read_as(Workload, jobset())
UID = WorkloadUid("u-1")
POD = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u-pod", "controller": True}
_READ: Mapping[Aside, Callable[[Any], Any]] = {
    Aside.ADMISSION_CHECKS: read_check,
    Aside.QUEUED: queued,
    Aside.FLAVORS: flavor,
}


@dataclass
class Setup:
    """A keeper with a check and a flavor, and what it was told to reserve."""

    calls: FakeCalls = field(default_factory=FakeCalls)
    stand: int = 0
    known: bool = True
    reserved: list[Mapping[WorkloadUid, Reservation]] = field(default_factory=list)
    now: Any = NOW

    def __post_init__(self) -> None:
        self.keeper = CheckKeeper(self.calls, self, lambda: self.now, Health(lambda: self.now))

    def reserve(self, reservations: Mapping[WorkloadUid, Reservation]) -> None:
        self.reserved.append(reservations)

    def progress(self, workloads: Collection[WorkloadUid]) -> Mapping[WorkloadUid, Progress]:
        one = Progress(workload=JOBSET, stand=self.stand, of=2)
        return {UID: one} if self.known and UID in workloads else {}

    def lists(self, kind: Aside, *objs: Any) -> None:
        read = [each for each in map(_READ[kind], objs) if each is not None]
        self.keeper.put(Listed(kind, read, "9"))
        self.looks()

    def sees(self, obj: Any) -> None:
        found = queued(obj)
        assert found is not None
        self.keeper.put(Saw(Aside.QUEUED, found, obj["metadata"]["resourceVersion"]))
        self.looks()

    def looks(self) -> None:
        self.keeper.take()
        self.keeper.look()

    @property
    def states(self) -> list[CheckState]:
        return [finding.state for _, finding in self.calls.written]


@pytest.fixture
def setup() -> Setup:
    one = Setup()
    one.lists(Aside.ADMISSION_CHECKS, objects.admission_check(), objects.admission_check("others", "example.com/c"))
    one.lists(Aside.FLAVORS, objects.flavor())
    one.lists(Aside.QUEUED)
    return one


def test_a_check_of_ours_is_announced_once_it_is_there(setup: Setup) -> None:
    assert ("tpu-slices", True) in setup.calls.announced
    assert "others" not in dict(setup.calls.announced)
    setup.calls.announced.clear()
    active: Any = {"status": {"conditions": [{"type": "Active", "status": "True"}]}}
    setup.lists(Aside.ADMISSION_CHECKS, objects.admission_check(**active))
    setup.looks()
    assert setup.calls.announced == []


def test_parameters_are_refused() -> None:
    one = Setup()
    named = {"parameters": {"apiGroup": "a", "kind": "b", "name": "c"}}
    one.lists(Aside.ADMISSION_CHECKS, objects.admission_check(spec=named))
    assert one.calls.announced == [("tpu-slices", False)]


def test_quota_is_told_to_the_relay_once_and_when_it_is_gone(setup: Setup) -> None:
    setup.sees(workload())
    setup.looks()
    assert [[*each] for each in setup.reserved] == [[], [UID]]
    setup.keeper.put(Lost(Aside.QUEUED, "w-1", "60", None, deleted=True))
    setup.looks()
    assert setup.reserved[-1] == {}


def test_the_check_says_pending_and_ready_once_the_slices_stand(setup: Setup) -> None:
    setup.sees(workload())
    setup.sees(workload(check(message="0 of 2 slices stand."), version=51))
    setup.stand = 2
    setup.looks()
    assert setup.states == [CheckState.PENDING, CheckState.READY]


def test_nothing_is_written_twice_to_one_version(setup: Setup) -> None:
    setup.sees(workload())
    setup.stand = 2
    setup.looks()
    assert setup.states == [CheckState.PENDING]
    setup.sees(workload(check(message="0 of 2 slices stand."), version=51))
    assert setup.states == [CheckState.PENDING, CheckState.READY]


def test_one_that_cannot_be_written_to_holds_up_no_other(setup: Setup) -> None:
    setup.calls.fails["w-1"] = Temporary("refused")
    for uid in ("w-1", "w-2"):
        setup.keeper.put(Saw(Aside.QUEUED, objects.read(uid=uid), "50"))
    setup.looks()
    setup.looks()
    assert [uid for uid, _ in setup.calls.written] == ["w-2"]
    setup.calls.fails.clear()
    setup.looks()
    assert [uid for uid, _ in setup.calls.written] == ["w-2", "w-1"]


def test_what_the_api_server_refuses_is_tried_again_with_the_next_version(setup: Setup) -> None:
    setup.calls.fails["w-1"] = Permanent("invalid")
    setup.sees(workload())
    setup.calls.fails.clear()
    setup.looks()
    assert setup.states == []
    setup.sees(workload(version=51))
    assert setup.states == [CheckState.PENDING]


def test_a_write_that_came_late_is_made_with_the_next_version(setup: Setup) -> None:
    setup.calls.late = True
    setup.sees(workload())
    setup.calls.late = False
    setup.looks()
    assert setup.states == []
    setup.sees(workload(version=51))
    assert setup.states == [CheckState.PENDING]


def test_a_message_is_not_renewed_each_time_it_would_be_another(setup: Setup) -> None:
    setup.sees(workload())
    setup.stand = 1
    setup.sees(workload(check(message="0 of 2 slices stand."), version=51))
    assert setup.states == [CheckState.PENDING]
    setup.now += TELL_EVERY
    setup.looks()
    assert setup.states == [CheckState.PENDING, CheckState.PENDING]


def test_what_has_its_slices_when_its_pods_wait_is_not_held(setup: Setup) -> None:
    setup.sees(workload(owner=POD))
    assert [finding for _, finding in setup.calls.written] == [NONE_NEEDED]
    assert setup.reserved == [{}]


def test_one_that_the_relay_does_not_know_is_looked_up(setup: Setup) -> None:
    setup.known = False
    setup.sees(workload())
    assert setup.states == []
    setup.calls.asking = False
    setup.looks()
    assert [finding for _, finding in setup.calls.written] == [NONE_NEEDED]


def test_the_relay_knows_at_once_that_there_is_no_kueue() -> None:
    one = Setup()
    one.looks()
    assert one.reserved == []
    one.keeper.put(Bookmarked(Aside.ADMISSION_CHECKS, ""))
    one.looks()
    assert one.reserved == [{}]


def test_it_does_not_know_who_has_quota_before_workloads_and_flavors_are_listed() -> None:
    one = Setup()
    one.lists(Aside.ADMISSION_CHECKS, objects.admission_check())
    one.keeper.put(Bookmarked(Aside.QUEUED, ""))
    one.lists(Aside.FLAVORS, objects.flavor())
    assert one.reserved == []
    one.lists(Aside.QUEUED, workload())
    assert [[*each] for each in one.reserved] == [[UID]]


def test_where_kueue_cannot_be_read_it_goes_on_without() -> None:
    one = Setup()
    one.now += KNOWN_WITHIN - timedelta(seconds=1)
    one.looks()
    assert one.reserved == []
    one.now += timedelta(seconds=1)
    one.looks()
    assert one.reserved == [{}]


def test_only_what_is_told_after_it_has_quota_counts(setup: Setup) -> None:
    """What was let go has quota again within the second."""
    never = told(Reason.IMPOSSIBLE_SHAPE).shown
    mirrored = Mirrored(kind=MirrorKind.WORKLOAD, namespace="research", name="a", uid=UID, digest=1, workload=never)
    setup.keeper.tell(MirrorChanged(objects=(mirrored,), at=LATER))
    setup.now += SECOND
    setup.sees(workload())
    assert setup.states == [CheckState.PENDING]
    setup.keeper.tell(MirrorChanged(objects=(mirrored,), at=LATER))
    setup.sees(workload(version=51))
    assert setup.states == [CheckState.PENDING, CheckState.REJECTED]
