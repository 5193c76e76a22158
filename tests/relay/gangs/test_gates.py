"""What becomes of pods that are held."""

import pytest

from relay import translate
from relay.gangs.gates import AGAIN, UNKNOWN_FOR
from relay.objects import Kind
from tests.relay.gangs.objects import GATED, Gate, gang, gated, hosts, opened
from tests.relay.objects import OPTED_OUT, Json, bound_pod, container, jobset, replicated_job, single_pod
from tpu_slices.domain.model.gangs import GANG
from tpu_slices.domain.model.reasons import OwnerReason


@pytest.fixture
def gate() -> Gate:
    return Gate()


def reasons(gate: Gate) -> list[str]:
    """Return of what was told, each reason with the message, once."""
    return list(dict.fromkeys(f"{each.reason}: {each.message}" for each in gate.notices))


@pytest.mark.parametrize(
    "obj",
    [
        gang(replicas=1, spec={"suspend": True}),
        gang(replicas=1, conditions=["Failed"]),
        jobset(metadata={"annotations": {GANG: "some"}}),
    ],
    ids=["suspended", "over", "unparseable"],
)
def test_pods_of_a_workload_that_is_not_to_run_or_cannot_be_read_are_left_alone(gate: Gate, obj: Json) -> None:
    gate.see(obj, gated(0), *hosts(0))
    assert gate.opens(after=60) == []
    assert gate.notices == []


def test_pods_of_an_earlier_workload_of_the_name_are_left_alone(gate: Gate) -> None:
    gate.see(gang(replicas=1, uid="u-2"), gated(0), *hosts(0, key="u-2.j0"))
    assert gate.opens(after=60) == []


@pytest.mark.parametrize(
    ("obj", "why"),
    [
        (jobset(), "replicatedJob workers of JobSet llama is of no gang"),
        (jobset(metadata={"annotations": {GANG: "none"}}), "replicatedJob workers of JobSet llama is of no gang"),
        (gang(spec={"managedBy": "others.example/one"}), 'JobSet llama gets no slices: spec.managedBy is "others'),
        (
            jobset(metadata={"annotations": {GANG: "all", OPTED_OUT: "true"}}),
            "JobSet llama gets no slices: it opted out",
        ),
        (
            gang(spec={"replicatedJobs": [replicated_job("workers", containers=[container(0)]), replicated_job("b")]}),
            "replicatedJob workers of JobSet llama asks for no slices",
        ),
    ],
    ids=["says nothing", "says none", "is managed elsewhere", "opted out", "has no chips"],
)
def test_a_pod_that_no_gang_will_ever_let_go_is_let_go_and_its_workload_told(gate: Gate, obj: Json, why: str) -> None:
    gate.see(obj, gated(0))
    assert gate.opens() == ["pod-0"]
    (told,) = reasons(gate)
    assert told.startswith(f"NotInGang: {why}")
    assert told.endswith(f"the scheduling gate {GANG} is taken off such pods")


def test_a_pod_that_merely_has_the_labels_of_a_gang_is_let_go(gate: Gate) -> None:
    gate.see(gang(replicas=1), gated(0, metadata={"ownerReferences": []}))
    assert gate.opens() == ["pod-0"]
    assert "nothing that JobSet llama made controls it" in reasons(gate)[0]


def test_a_pod_whose_workload_is_not_known_is_let_go_once_that_would_have_come(gate: Gate) -> None:
    gate.see(gated(0))
    assert gate.opens(after=UNKNOWN_FOR.total_seconds() - 1) == []
    assert gate.opens(after=AGAIN.total_seconds()) == []
    assert gate.opens(after=UNKNOWN_FOR.total_seconds()) == ["pod-0"]
    assert "no JobSet llama asks for slices" in reasons(gate)[0]


def test_a_pod_that_comes_before_its_workload_is_held(gate: Gate) -> None:
    gate.see(gated(0))
    assert gate.opens() == []
    gate.see(gang(replicas=1))
    assert gate.opens(after=UNKNOWN_FOR.total_seconds()) == []


def test_nothing_is_let_go_while_a_watch_is_interrupted(gate: Gate) -> None:
    gate.see(gang(replicas=1), gated(0), *hosts(0))
    assert gate.opens() == ["pod-0"]
    gate.watched.queue.failed(Kind.HOSTS)
    gate.gates.turn(gate.watched.now + AGAIN)
    assert [*gate.wanted.values()] == [[]]
    assert gate.opens(after=AGAIN.total_seconds() + 1) == ["pod-0"]


def test_a_pod_that_was_let_go_is_forgotten(gate: Gate) -> None:
    gate.see(gang(replicas=1), gated(0), *hosts(0))
    gate.opens()
    gate.see(opened(0))
    assert gate.opens() == []
    assert gate.gates.next_due() is None
    assert gate.gates._lacked == {}


def test_a_gang_that_waits_is_judged_when_a_host_comes_that_it_lacks_and_rarely_else(gate: Gate) -> None:
    gate.see(gang(replicas=2), gated(0), gated(1), *hosts(0))
    gate.opens()
    judged = gate.watched.now
    gate.see(*hosts(7, key="u-9.j7"))
    assert gate.gates.next_due() == judged + AGAIN
    gate.see(*hosts(1))
    assert gate.gates.next_due() == gate.watched.now + gate.gates._pause(next(iter(gate.wanted)))


def test_a_leader_of_a_gang_that_nothing_holds_is_told_when_it_is_made(gate: Gate) -> None:
    gate.see(gang(replicas=1), opened(0))
    assert [each.reason for each in gate.notices] == [OwnerReason.GANG_NOT_HELD]
    assert "schedulingGates" in gate.notices[0].message


def test_a_leader_that_was_held_is_not_told_when_it_is_let_go(gate: Gate) -> None:
    gate.see(gang(replicas=1), gated(0), opened(0), bound_pod(0, "n"))
    assert gate.notices == []


def test_a_leader_of_no_gang_needs_nothing_that_holds_it(gate: Gate) -> None:
    gate.see(jobset(), opened(0))
    assert gate.notices == []


def test_a_pod_that_is_served_by_itself_is_of_no_gang() -> None:
    gate, made = Gate(), single_pod(spec={"schedulingGates": [{"name": GANG}]})
    seen = translate.pod_by_itself({**made, "status": GATED})
    assert seen is not None
    gate.watched.queue.saw(seen, gate.watched.now)
    gate.gates.saw(seen, gate.watched.now)
    assert gate.opens() == ["u-web-1-x2x4z"]
