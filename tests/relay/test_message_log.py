"""What the relay logs of the facts that it publishes."""

from collections.abc import Sequence

import pytest

from relay.message_log import noted
from tests.builders import a_jobset_ref
from tests.conftest import Lines
from tpu_slices.domain.model.facts import Heartbeat, WorkloadChanged, WorkloadState
from tpu_slices.ports.errors import Temporary
from tpu_slices.wire.messages import Message, encode_fact

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
