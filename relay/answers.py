"""Answers to the functions' questions.

One about a workload is answered from the API server, as a pool may be deleted on it, and the cluster cache may lag.
Questions about hosts, and for what is listed or repeated, are passed on: they are answered by facts, later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

from relay.joining.tokens import Tokens
from tpu_slices.domain.model.facts import Answer, Echo, Fact, WorkloadRef, WorkloadState
from tpu_slices.domain.model.joining import JoinEnded, JoinQuestion
from tpu_slices.domain.model.node_groups import NodesExpected, NodesGone
from tpu_slices.domain.model.questions import (
    AnyQuestion,
    EchoQuestion,
    FactQuestion,
    HostsQuestion,
    ListQuestion,
    Question,
    RepeatQuestion,
)
from tpu_slices.domain.model.slices import Owner, WorkloadUid
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.readers import READERS


class Workloads(Protocol):
    """As `relay.cluster.Cluster`."""

    def workload(self, owner: Owner) -> Mapping[str, Any] | None: ...


class Asked(Protocol):
    """The cluster as the relay sees it."""

    def ask(self, question: FactQuestion | Question) -> None:
        """Pass on a question that facts will answer, or one about a workload that is answered beside them."""

    def expect(self, expected: NodesExpected) -> None: ...

    def is_reserved(self, uid: WorkloadUid) -> bool:
        """Return whether Kueue has quota for a suspended workload, whose slices are made; may raise Temporary."""


def answers(question: AnyQuestion, view: Asked, workloads: Workloads, tokens: Tokens, now: datetime) -> Sequence[Fact]:
    """Return the facts that answer a question at once; raise as `answer` does."""
    match question:
        case Question(owner=owner):
            view.ask(question)
            return [as_reserved(answer(owner, workloads), view, now)]
        case EchoQuestion(asked_at=asked_at, by_updates=by_updates):
            return [Echo(asked_at=asked_at, at=now, by_updates=by_updates)]
        case JoinQuestion():
            return tokens.answer(question)
        case JoinEnded():
            tokens.end(question)
            return ()
        case NodesExpected():
            view.expect(question)
            return ()
        case NodesGone():
            return ()
        case ListQuestion() | RepeatQuestion() | HostsQuestion():
            view.ask(question)
            return ()


def answer(owner: Owner, workloads: Workloads) -> Answer:
    """Return a workload's state. Raise Temporary, or Permanent if the object cannot be parsed."""
    found, reader = workloads.workload(owner), READERS[owner.kind]
    if found is None or found["metadata"]["uid"] != owner.uid:
        gone = WorkloadRef(owner=owner, generation=0, resource_version="")
        return Answer(workload=gone, state=WorkloadState.MISSING)
    try:
        return Answer(workload=reader.ref(found), state=reader.state(found))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Permanent(f"the {owner.kind} {owner.full_name} cannot be parsed: {error!r}") from error


def as_reserved(read: Answer, view: Asked, now: datetime) -> Answer:
    """Return an answer with the state that facts tell: a suspended workload that has quota is as an active one."""
    if read.state is not WorkloadState.SUSPENDED or not view.is_reserved(read.workload.owner.uid):
        return read
    return Answer(workload=replace(read.workload, as_of=now), state=WorkloadState.ACTIVE)
