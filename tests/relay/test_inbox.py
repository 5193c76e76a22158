from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from typing import Any

import pytest

from relay import translate
from relay.inbox import Inbox
from relay.objects import Leader
from tests.builders import MINUTE, NOW, a_jobset, a_record
from tests.conftest import Lines
from tests.relay.node_groups import objects as node_groups
from tests.relay.objects import Json, jobset, pod
from tests.relay.test_events import update
from tpu_slices.domain.model.facts import Answer, Echo, Fact, Family, WorkloadState
from tpu_slices.domain.model.node_groups import NodesExpected, NodesGone
from tpu_slices.domain.model.questions import (
    EchoQuestion,
    FactQuestion,
    HostsQuestion,
    ListQuestion,
    Question,
    RepeatQuestion,
)
from tpu_slices.domain.model.reasons import ReportReason
from tpu_slices.domain.model.slices import ClaimId, ClusterId, Owner, OwnerKind, WorkloadJob, WorkloadUid
from tpu_slices.domain.records.workloads import Announced
from tpu_slices.domain.reporting.reports import report
from tpu_slices.domain.reporting.waits import QueueState
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.publisher import WorkloadUpdate
from tpu_slices.wire.messages import VERSION, Message, encode_node_group, encode_question, encode_report, encode_update
from tpu_slices_simulator.bootstrap import FakeBootstrap

DEMO = ClusterId("demo")


@dataclass
class FakeCluster:
    """JobSets to be found and Events that were posted; every call raises `error` if it is set."""

    jobsets: dict[str, Json] = field(default_factory=dict)
    events: list[Mapping[str, Any]] = field(default_factory=list)
    renewed: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    """The names of Events that were renewed, in order."""
    patches: list[tuple[str, str, Mapping[str, Any]]] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    error: Exception | None = None
    bootstrap: FakeBootstrap = field(default_factory=FakeBootstrap)

    def ca_hashes(self) -> tuple[str, ...]:
        return self.bootstrap.ca_hashes()

    def create_token(self, secret: Mapping[str, Any]) -> None:
        self.bootstrap.create_token(secret)

    def delete_tokens(self, selector: str) -> None:
        self.bootstrap.delete_tokens(selector)

    def workload(self, owner: Owner) -> Json | None:
        self._fail()
        return self.jobsets.get(owner.full_name)

    def post(self, event: Mapping[str, Any]) -> None:
        self._fail()
        self.events.append(event)

    def renew(self, event: Mapping[str, Any]) -> None:
        self._fail()
        self.renewed[event["metadata"]["name"]] = event
        self.writes.append(event["metadata"]["name"])

    def patch_group(self, owner: Owner, patch: Mapping[str, Any]) -> None:
        self._fail()
        self.patches.append((owner.full_name, "", patch))

    def patch_group_status(self, owner: Owner, patch: Mapping[str, Any]) -> None:
        self._fail()
        self.patches.append((owner.full_name, "status", patch))

    def nodes_of_slice(self, slice_id: ClaimId) -> Mapping[str, int]:
        self._fail()
        return {name: int(name.split("-")[-2]) for name in self.nodes if name.startswith(slice_id)}

    def delete_node(self, node: str) -> None:
        self._fail()
        self.nodes.remove(node)

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


@dataclass
class FakeClusterView:
    leader: Leader | None = None
    asked: list[FactQuestion | Question] = field(default_factory=list)
    expected: list[NodesExpected] = field(default_factory=list)
    reserved: set[WorkloadUid] = field(default_factory=set)

    def leader_pod(self, job: WorkloadJob) -> Leader | None:
        return self.leader if job.job_index == 0 else None

    def expect(self, expected: NodesExpected) -> None:
        self.expected.append(expected)

    def is_reserved(self, uid: WorkloadUid) -> bool:
        return uid in self.reserved

    def lacks_chips(self, _: ClaimId) -> bool:
        return False

    def ask(self, question: FactQuestion | Question) -> None:
        self.asked.append(question)


class FakeDelivery:
    def __init__(self, message: Message, message_id: str) -> None:
        self.message_id = message_id
        self.data = message.data
        self.attributes = message.attributes
        self.answers: list[str] = []

    def ack(self) -> None:
        self.answers.append("ack")

    def nack(self) -> None:
        self.answers.append("nack")


@dataclass
class Setup:
    cluster: FakeCluster = field(default_factory=FakeCluster)
    view: FakeClusterView = field(default_factory=FakeClusterView)
    posted: list[Fact] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.inbox = Inbox(DEMO, self.cluster, self.view, self.posted.extend, lambda: NOW)

    def handle(self, message: Message, message_id: str = "") -> list[str]:
        """Deliver a message, and return how it was answered; each has an id of its own, unless the test gives one."""
        delivery = FakeDelivery(message, message_id or f"{next(self.numbers)}")
        self.inbox.handle(delivery)
        return delivery.answers


@pytest.fixture
def setup() -> Setup:
    return Setup()


def jobset_update(times: int) -> WorkloadUpdate:
    made = report(a_jobset(), [a_record()], QueueState(), NOW)
    return WorkloadUpdate(
        owner=Owner(kind=OwnerKind.JOBSET, namespace="research", name="llama", uid=WorkloadUid("u-1")),
        report=made,
        at=NOW,
        count=times,
    )


def question(uid: str = "u-1") -> Message:
    return encode_question(
        DEMO, Question(owner=Owner(kind=OwnerKind.JOBSET, namespace="research", name="llama", uid=WorkloadUid(uid)))
    )


def test_a_slice_update_becomes_an_event_on_the_leader_pod(setup: Setup) -> None:
    setup.view.leader = translate.leader(pod(0))
    assert setup.handle(encode_update(DEMO, update())) == ["ack"]
    (event,) = setup.cluster.events
    assert (event["involvedObject"]["kind"], event["involvedObject"]["uid"]) == ("Pod", "pod-0")


@pytest.mark.parametrize(
    ("self_managed", "attempt", "gone"),
    [
        pytest.param(True, 1, [0], id="gone"),
        pytest.param(True, 3, [], id="late: they went before"),
        pytest.param(False, 1, [], id="of GKE, which deletes them"),
    ],
)
def test_the_nodes_of_a_pool_that_is_gone_are_deleted_in_a_self_managed_cluster(
    setup: Setup, self_managed: bool, attempt: int, gone: list[int]
) -> None:
    told = NodesGone(slice_id=update().slice_id, attempt=attempt)
    nodes = [f"{told.slice_id}-1-abcd", f"{told.slice_id}-2-efgh", "another-1-abcd"]
    setup.cluster.nodes, setup.inbox.forgets_nodes = [*nodes], self_managed
    for _ in range(2):
        assert setup.handle(encode_question(DEMO, told)) == ["ack"]
    assert setup.cluster.nodes == [node for at, node in enumerate(nodes) if at not in gone]


def test_reports_on_a_jobset_for_one_reason_become_one_event_that_is_renewed(setup: Setup) -> None:
    for times in (1, 2):
        assert setup.handle(encode_report(DEMO, jobset_update(times=times))) == ["ack"]
    ((name, event),) = setup.cluster.renewed.items()
    assert name == "llama.u-1.slicesprovisioning"
    assert (event["involvedObject"]["kind"], event["involvedObject"]["uid"]) == ("JobSet", "u-1")
    assert event["count"] == 2


def once_ready(times: int) -> WorkloadUpdate:
    before = jobset_update(times)
    ended = Announced(reason=before.report.reason, message="It waits.", since=NOW - 41 * MINUTE, until=NOW)
    made = replace(before.report, reason=ReportReason.READY, message="1 of 1 slices ready.")
    return replace(before, report=made, at=NOW + MINUTE, since=NOW, ended=ended)


def test_the_event_of_the_reason_before_says_until_when_and_for_how_long_it_applied(setup: Setup) -> None:
    setup.handle(encode_report(DEMO, jobset_update(times=1)))
    setup.handle(encode_report(DEMO, once_ready(times=2)))
    before, now = setup.cluster.renewed.values()
    assert before["message"] == f"Until {NOW:%H:%M:%S} UTC, for 41 min: It waits."
    assert (before["type"], before["lastTimestamp"]) == ("Normal", f"{NOW:%Y-%m-%dT%H:%M:%SZ}")
    assert (now["reason"], now["message"]) == ("SlicesReady", "1 of 1 slices ready.")


def test_that_a_reason_is_over_is_written_once_however_often_a_report_is_renewed(setup: Setup) -> None:
    setup.cluster.error = Temporary("away")
    assert setup.handle(encode_report(DEMO, once_ready(times=2))) == ["nack"]
    setup.cluster.error = None
    for times in (2, 3, 4):
        setup.handle(encode_report(DEMO, once_ready(times)))
    assert list(setup.cluster.writes) == ["llama.u-1.slicesprovisioning", *["llama.u-1.slicesready"] * 3]


def test_a_report_that_comes_late_does_not_overwrite_a_newer_one(setup: Setup) -> None:
    older, newer = jobset_update(times=1), replace(jobset_update(times=2), at=NOW + MINUTE)
    for update_ in (newer, older):
        assert setup.handle(encode_report(DEMO, update_)) == ["ack"]
    (event,) = setup.cluster.renewed.values()
    assert event["count"] == 2


@pytest.mark.parametrize(
    ("times", "at"), [(2, NOW - MINUTE), (1, NOW + MINUTE)], ids=["by a clock that is behind", "with a new record"]
)
def test_a_report_that_is_newer_by_its_number_or_by_its_time_is_shown(setup: Setup, times: int, at: datetime) -> None:
    first, second = jobset_update(times=1), replace(jobset_update(times=times), at=at)
    for update_ in (first, second):
        assert setup.handle(encode_report(DEMO, update_)) == ["ack"]
    (event,) = setup.cluster.renewed.values()
    assert event["lastTimestamp"] == f"{at:%Y-%m-%dT%H:%M:%SZ}"


def test_an_update_for_another_cluster_is_rejected(setup: Setup, lines: Lines) -> None:
    assert setup.handle(encode_update(ClusterId("other"), update())) == ["ack"]
    assert setup.cluster.events == []
    [line] = lines()
    assert (line["event"], line["severity"]) == ("message.rejected", "ERROR")
    assert line["error"] == 'cluster: "other" is not that of the subscription, demo'


def test_an_echo_comes_back_with_the_relays_own_time(setup: Setup) -> None:
    asked_at = NOW - MINUTE
    assert setup.handle(encode_question(DEMO, EchoQuestion(asked_at=asked_at))) == ["ack"]
    assert setup.posted == [Echo(asked_at=asked_at, at=NOW)]


@pytest.mark.parametrize(
    ("parts", "state"),
    [
        ({}, WorkloadState.ACTIVE),
        ({"spec": {"suspend": True}}, WorkloadState.SUSPENDED),
        ({"conditions": ["Completed"]}, WorkloadState.COMPLETED),
        ({"metadata": {"deletionTimestamp": "2026-11-01T12:00:00Z"}}, WorkloadState.DELETED),
    ],
)
def test_a_question_is_answered_with_the_state_on_the_api_server(
    setup: Setup, parts: dict[str, Any], state: WorkloadState
) -> None:
    setup.cluster.jobsets["research/llama"] = jobset(generation=3, **parts)
    assert setup.handle(question()) == ["ack"]
    (answer,) = setup.posted
    assert isinstance(answer, Answer)
    assert (answer.state, answer.workload.owner.uid, answer.workload.generation) == (state, "u-1", 3)


@pytest.mark.parametrize("found", [None, jobset(uid="u-2")], ids=["gone", "another of that name"])
def test_a_jobset_that_is_gone_or_recreated_is_missing(setup: Setup, found: Json | None) -> None:
    if found:
        setup.cluster.jobsets["research/llama"] = found
    setup.handle(question())
    (answer,) = setup.posted
    assert isinstance(answer, Answer)
    assert (answer.state, answer.workload.owner.uid, answer.workload.owner.name) == (
        WorkloadState.MISSING,
        "u-1",
        "llama",
    )


@pytest.mark.parametrize(
    "asked",
    [
        HostsQuestion(slice_id=ClaimId("tpu-llama-0-aaaaaaaaaaaaa"), attempt=1, number=1, asked_at=NOW, close=True),
        *(ListQuestion(family=family, asked_at=NOW) for family in Family),
        RepeatQuestion(family=Family.DEMAND, keys=("u-1",)),
        RepeatQuestion(family=Family.HOSTS, keys=("tpu-llama-0-aaaaaaaaaaaaa-1",)),
    ],
)
def test_a_question_that_facts_will_answer_is_passed_on_and_acknowledged(setup: Setup, asked: FactQuestion) -> None:
    assert setup.handle(encode_question(DEMO, asked)) == ["ack"]
    assert (setup.view.asked, setup.posted) == ([asked], [])
    assert setup.handle(encode_question(ClusterId("other"), asked)) == ["ack"]
    assert setup.view.asked == [asked]


@pytest.mark.parametrize("message", [question(), encode_update(DEMO, update())], ids=["question", "update"])
def test_a_message_that_cannot_be_handled_now_is_redelivered(setup: Setup, message: Message) -> None:
    setup.cluster.error = Temporary("the API server does not answer")
    assert setup.handle(message) == ["nack"]
    assert setup.posted == []


def test_a_message_that_comes_again_although_it_was_handled_is_acknowledged_and_not_handled_again(setup: Setup) -> None:
    message = encode_update(DEMO, update())
    setup.cluster.error = Temporary("the API server does not answer")
    assert setup.handle(message, "17") == ["nack"]
    setup.cluster.error = None
    assert [setup.handle(message, "17"), setup.handle(message, "17")] == [["ack"], ["ack"]]
    assert len(setup.cluster.events) == 1
    setup.handle(message, "18")
    assert len(setup.cluster.events) == 2


def test_a_question_is_answered_although_an_update_had_its_id(setup: Setup) -> None:
    """Pub/Sub's ids are unique within a topic."""
    setup.handle(encode_update(DEMO, update()), "17")
    setup.handle(encode_question(DEMO, EchoQuestion(asked_at=NOW)), "17")
    assert setup.posted == [Echo(asked_at=NOW, at=NOW)]


def test_a_question_by_updates_is_answered_although_one_by_questions_had_its_id(setup: Setup) -> None:
    for by_updates in (False, True):
        setup.handle(encode_question(DEMO, EchoQuestion(asked_at=NOW, by_updates=by_updates)), "17")
    assert setup.posted == [Echo(asked_at=NOW, at=NOW, by_updates=each) for each in (False, True)]


def test_only_the_messages_that_were_handled_last_are_remembered(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relay.inbox.REMEMBERED", 2)
    message = encode_update(DEMO, update())
    for message_id in ("1", "2", "3", "2", "1"):
        setup.handle(message, message_id)
    assert len(setup.cluster.events) == 4


@pytest.mark.parametrize(
    "message",
    [
        Message(b"{}", {"kind": "SliceUpdate", "version": "9", "cluster": "demo"}),
        Message(b"{", {"kind": "Question", "version": VERSION, "cluster": "demo"}),
        Message(b'{"owner":{"name":"llama"}}', {"kind": "Question", "version": VERSION, "cluster": "demo"}),
        Message(b"{}", {"kind": "Question", "version": VERSION, "cluster": "demo"}),
    ],
    ids=["newer", "malformed", "half a question", "no question"],
)
def test_a_message_that_can_never_be_handled_is_acknowledged(setup: Setup, message: Message) -> None:
    assert setup.handle(message) == ["ack"]
    assert (setup.posted, setup.cluster.events) == ([], [])


def test_an_update_whose_event_is_refused_for_good_is_acknowledged(setup: Setup) -> None:
    setup.cluster.error = Permanent("the API server refused: 422 Invalid")
    assert setup.handle(encode_update(DEMO, update())) == ["ack"]


def test_the_status_of_a_node_group_is_written_to_its_object(setup: Setup) -> None:
    told = node_groups.update(node_groups.at_ready())
    setup.cluster.jobsets[told.owner.full_name] = node_groups.group()
    assert setup.handle(encode_node_group(DEMO, told)) == ["ack"]
    [(whose, part, _)] = setup.cluster.patches
    assert (whose, part) == ("default/my-group", "status")
    assert [event["reason"] for event in setup.cluster.events] == ["ChildResourcesProvisioned", "Provisioned"]


def test_a_transition_of_a_node_groups_slice_is_told_by_its_status_alone(setup: Setup) -> None:
    job = WorkloadJob.declared(DEMO, node_groups.OWNER)
    assert setup.handle(encode_update(DEMO, replace(update(), job=job))) == ["ack"]
    assert setup.cluster.events == []


def test_a_status_that_cannot_be_written_is_delivered_again(setup: Setup) -> None:
    setup.cluster.error = Temporary("the API server does not answer")
    assert setup.handle(encode_node_group(DEMO, node_groups.update(node_groups.at_ready()))) == ["nack"]


def test_a_suspended_jobset_that_has_quota_is_told_as_facts_tell_it(setup: Setup) -> None:
    found = setup.cluster.jobsets["research/llama"] = jobset(spec={"suspend": True})
    setup.view.reserved.add(WorkloadUid("u-1"))
    setup.handle(question("u-1"))
    [answer] = setup.posted
    assert isinstance(answer, Answer)
    assert (answer.state, answer.workload.as_of) == (WorkloadState.ACTIVE, NOW)
    assert answer.workload.generation == found["metadata"]["generation"]
