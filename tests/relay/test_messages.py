"""The parts of facts that fit into a message, and the log lines of messages."""

import uuid
from collections.abc import Sequence
from itertools import pairwise

import pytest

from relay.messages import list_of, noted
from tests.builders import NOW, a_jobset_ref
from tests.conftest import Lines
from tpu_slices.domain.model.facts import Heartbeat, WorkloadChanged, WorkloadState
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.domain.records.standings import standing
from tpu_slices.ports.errors import Temporary
from tpu_slices.wire.bounds import UIDS_PER_PART
from tpu_slices.wire.messages import MOST_BYTES, Message, decode_fact, encode_fact

STANDING = standing(WorkloadState.ACTIVE, "", "", None)


def jobsets(count: int) -> list[WorkloadUid]:
    return sorted(WorkloadUid(str(uuid.uuid5(uuid.NAMESPACE_DNS, str(number)))) for number in range(count))


@pytest.mark.slow
@pytest.mark.parametrize(
    "count", [0, 1, UIDS_PER_PART, UIDS_PER_PART + 1, 27_000, pytest.param(200_000, marks=pytest.mark.proof)]
)
def test_a_list_of_any_length_can_be_sent(count: int) -> None:
    uids = jobsets(count)
    parts = list_of(dict.fromkeys(uids, STANDING), NOW)
    for part in parts:
        message = encode_fact(part)
        assert len(message.data) < MOST_BYTES
        assert decode_fact(message.data, message.attributes) == part
    assert [uid for part in parts for uid in part.standings] == uids
    assert {part.parts for part in parts} == {len(parts)}


@pytest.mark.parametrize("count", [0, 1, UIDS_PER_PART, UIDS_PER_PART + 1, 2 * UIDS_PER_PART])
def test_the_ranges_of_a_list_have_no_gap_and_no_end(count: int) -> None:
    parts = list_of(dict.fromkeys(jobsets(count), STANDING), NOW)
    assert (parts[0].after, parts[-1].up_to) == (None, None)
    assert all(before.up_to == after.after for before, after in pairwise(parts))
    for part in parts:
        assert all((part.after or "") < uid for uid in part.standings)
        assert all(part.up_to is None or uid <= part.up_to for uid in part.standings)


def test_the_longest_uids_can_be_sent() -> None:
    uids = [WorkloadUid(f"{number:063}") for number in range(UIDS_PER_PART)]
    (part,) = list_of(dict.fromkeys(uids, STANDING), NOW)
    assert len(encode_fact(part).data) < MOST_BYTES


MESSAGES = [
    encode_fact(WorkloadChanged(workload=a_jobset_ref(), state=WorkloadState.ACTIVE)),
    encode_fact(Heartbeat(count=1, digest="d", hosts_digest=0)),
]


def refuse(_: Sequence[Message]) -> None:
    raise Temporary("Pub/Sub is away")


def test_published_facts_are_logged_with_their_jobset_and_heartbeats_are_not(lines: Lines) -> None:
    sent: list[Message] = []
    noted(sent.extend)(MESSAGES)
    assert sent == MESSAGES
    (line,) = lines()
    assert (line["event"], line["kind"], line["owner"]) == ("fact.published", "WorkloadChanged", "research/llama")
    assert line["logging.googleapis.com/trace"].startswith("projects/demo-project/traces/")


def test_facts_that_were_not_published_are_not_logged(lines: Lines) -> None:
    with pytest.raises(Temporary):
        noted(refuse)(MESSAGES)
    assert lines() == []
