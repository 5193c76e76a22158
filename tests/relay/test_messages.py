"""The parts of facts that fit into a message, and the log lines of messages."""

import uuid
from collections.abc import Sequence
from itertools import pairwise

import pytest

from relay.messages import list_of, noted
from tests.builders import NOW, a_jobset_ref
from tests.conftest import Lines
from tpu_slices.domain.model.facts import Family, Heartbeat, Listed, WorkloadChanged, WorkloadState
from tpu_slices.ports.errors import Temporary
from tpu_slices.wire.bounds import KEYS_PER_PART
from tpu_slices.wire.messages import MOST_BYTES, Message, decode_fact, encode_fact

LARGEST = 2**48 - 1
"""The largest digest."""


def uids(count: int) -> list[str]:
    return sorted(str(uuid.uuid5(uuid.NAMESPACE_DNS, str(number))) for number in range(count))


def listing(keys: Sequence[str]) -> tuple[Listed, ...]:
    return list_of(Family.WORKLOADS, dict.fromkeys(keys, LARGEST), NOW, sequence=7)


@pytest.mark.slow
@pytest.mark.parametrize(
    "count", [0, 1, KEYS_PER_PART, KEYS_PER_PART + 1, 27_000, pytest.param(200_000, marks=pytest.mark.proof)]
)
def test_a_list_of_any_length_can_be_sent(count: int) -> None:
    keys = uids(count)
    parts = listing(keys)
    for part in parts:
        message = encode_fact(part)
        assert len(message.data) < MOST_BYTES
        assert decode_fact(message.data, message.attributes) == part
    assert [key for part in parts for key in part.digests] == keys
    assert [(part.part, part.parts) for part in parts] == [(number, len(parts)) for number in range(len(parts))]


@pytest.mark.parametrize("count", [0, 1, KEYS_PER_PART, KEYS_PER_PART + 1, 2 * KEYS_PER_PART])
def test_the_ranges_of_a_list_have_no_gap_and_no_end(count: int) -> None:
    parts = listing(uids(count))
    assert (parts[0].after, parts[-1].up_to) == (None, None)
    assert all(before.up_to == after.after for before, after in pairwise(parts))
    for part in parts:
        assert all(part.within(key) for key in part.digests)
        assert not [key for other in parts if other != part for key in other.digests if part.within(key)]


def test_the_longest_keys_can_be_sent() -> None:
    (part,) = listing([f"{number:063}" for number in range(KEYS_PER_PART)])
    assert len(encode_fact(part).data) < MOST_BYTES


MESSAGES = [
    encode_fact(WorkloadChanged(workload=a_jobset_ref(), state=WorkloadState.ACTIVE)),
    encode_fact(Heartbeat(count=1)),
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
