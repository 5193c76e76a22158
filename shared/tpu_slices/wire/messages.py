"""Facts, requests, updates, questions and notifications as Pub/Sub messages: JSON data, and attributes about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args

from pydantic import ValidationError

from tpu_slices.domain.model.facts import (
    Answer,
    Echo,
    Fact,
    Heartbeat,
    HostsChanged,
    Listed,
    SliceDeclared,
    SlicesWanted,
    TemplateRequest,
    WaitingLeader,
    WorkloadChanged,
)
from tpu_slices.domain.model.joining import JoinEnded, JoinQuestion, JoinToken
from tpu_slices.domain.model.node_groups import NodesExpected, NodesGone
from tpu_slices.domain.model.notifications import Notification
from tpu_slices.domain.model.questions import (
    AnyQuestion,
    EchoQuestion,
    HostsQuestion,
    ListQuestion,
    Question,
    RepeatQuestion,
)
from tpu_slices.domain.model.slices import ClaimId, ClusterId, Owner, SliceId, WorkloadUid
from tpu_slices.ports.errors import Permanent
from tpu_slices.ports.publisher import AnyMirror, NodeGroupUpdate, SliceUpdate, WorkloadUpdate
from tpu_slices.wire.bounds import beyond_bounds
from tpu_slices.wire.validation import Adapters, first_error

VERSION = "2"
MOST_BYTES = 1_000_000
"""Pub/Sub accepts 10 MB; no message of ours needs a tenth of it (`workloads` bounds what tenants write)."""
ATTRIBUTE_BYTES = 1_024
"""The most bytes of an attribute's value (Pub/Sub's guide "Quotas and limits")."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message to publish; `data` is never empty (functions-framework rejects a message without data)."""

    data: bytes
    attributes: Mapping[str, str]
    """`kind`, `version`; if there is one `cluster`, `owner_kind`, `owner` (namespace/name), `owner_uid`, `slice`.

    `target` is that of a notification.
    `by` is "updates" if a question comes by `updates-{cluster}`.
    """


@dataclass(frozen=True, slots=True)
class ReconcileRequest:
    """A request to reconcile a slice, named by its id or by the claim that has it."""

    cluster: ClusterId
    slice_id: ClaimId | SliceId
    answer: HostsChanged | None = None
    """What the relay answered about the slice's hosts: it is recorded with the decision that it leads to."""
    waiting: WorkloadUid | None = None
    """Whose pods wait for the slice, if that is why: what its creation needs is then read at once."""
    ended: bool = False
    """An operation on one of its pools has ended: they are looked at."""


@dataclass(frozen=True, slots=True)
class EchoRequest:
    """A request to record that reconcile got the echo of the question that was asked then."""

    cluster: ClusterId
    asked_at: datetime


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """A request to hand a bootstrap token on to the hosts that it is for."""

    cluster: ClusterId
    token: JoinToken


AnyRequest = ReconcileRequest | EchoRequest | JoinRequest
Update = SliceUpdate | WorkloadUpdate | NodeGroupUpdate | AnyMirror


def _by_name(*kinds: type[Any]) -> Mapping[str, type[Any]]:
    return {kind.__name__: kind for kind in kinds}


_FACTS = Adapters(_by_name(*get_args(Fact)))
_REQUESTS = Adapters(_by_name(*get_args(AnyRequest)))
_FOR_THE_RELAY = Adapters(_by_name(*get_args(Update), *get_args(AnyQuestion)))
_NOTIFICATIONS = Adapters(_by_name(Notification))
_ALL = Adapters(
    _by_name(*get_args(Fact), *get_args(AnyRequest), *get_args(Update), *get_args(AnyQuestion), Notification)
)
_PARTS = Adapters(_by_name(TemplateRequest, WaitingLeader))


def encode_fact(fact: Fact) -> Message:
    return _encode(fact, **about(fact))


def bytes_of(part: TemplateRequest | WaitingLeader) -> int:
    """Return the encoded size of a part of a SlicesWanted."""
    return len(_PARTS[type(part).__name__].dump_json(part))


def decode_fact(data: bytes, attributes: Mapping[str, str]) -> Fact:
    """Return the fact of a message of a `facts-{cluster}` topic; raise Permanent with the invalid field."""
    fact: Fact = _decode(data, attributes, _FACTS)
    return fact


def encode_reconcile_request(
    cluster: ClusterId, slice_: ClaimId | SliceId, waiting: WorkloadUid | None = None, *, ended: bool = False
) -> Message:
    """Return a message for one slice, so that Pub/Sub distributes, retries and dead-letters slices one by one."""
    return _encode(ReconcileRequest(cluster, slice_, waiting=waiting, ended=ended), cluster=cluster, slice=slice_)


def encode_answer(cluster: ClusterId, slice_: SliceId, answer: HostsChanged) -> Message:
    return _encode(ReconcileRequest(cluster, slice_, answer), cluster=cluster, slice=slice_)


def encode_echo_request(cluster: ClusterId, asked_at: datetime) -> Message:
    return _encode(EchoRequest(cluster, asked_at), cluster=cluster)


def encode_join_request(cluster: ClusterId, token: JoinToken) -> Message:
    return _encode(JoinRequest(cluster, token), cluster=cluster, slice=token.slice_id)


def decode_reconcile_request(data: bytes, attributes: Mapping[str, str]) -> AnyRequest:
    """Return the request of a message of a `requests-{cluster}` topic; raise Permanent like `decode_fact`."""
    request: AnyRequest = _decode(data, attributes, _REQUESTS)
    return request


def encode_update(cluster: ClusterId, update: SliceUpdate) -> Message:
    return _encode(update, cluster=cluster, **about_owner(update.job.owner), slice=update.slice_id)


def encode_report(cluster: ClusterId, update: WorkloadUpdate) -> Message:
    return _encode(update, cluster=cluster, **about_owner(update.owner))


def encode_node_group(cluster: ClusterId, update: NodeGroupUpdate) -> Message:
    return _encode(update, cluster=cluster, **about_owner(update.owner), slice=update.slice_id)


def encode_mirror(cluster: ClusterId, told: AnyMirror) -> Message:
    return _encode(told, cluster=cluster)


def encode_question(cluster: ClusterId, question: AnyQuestion) -> Message:
    match question:
        case Question(owner=owner):
            return _encode(question, cluster=cluster, **about_owner(owner))
        case HostsQuestion() | JoinQuestion() | JoinEnded() | NodesExpected() | NodesGone():
            return _encode(question, cluster=cluster, slice=question.slice_id)
        case EchoQuestion(by_updates=True):
            return _encode(question, cluster=cluster, by="updates")
        case ListQuestion() | RepeatQuestion() | EchoQuestion():
            return _encode(question, cluster=cluster)


def decode_update(data: bytes, attributes: Mapping[str, str]) -> Update | AnyQuestion:
    """Return what a message for a cluster's relay says, an update or a question; raise Permanent like `decode_fact`."""
    update: Update | AnyQuestion = _decode(data, attributes, _FOR_THE_RELAY)
    return update


def encode_notification(notification: Notification) -> Message:
    about_it = about_owner(notification.owner)
    return _encode(notification, cluster=notification.cluster, **about_it, target=notification.target)


def decode_notification(data: bytes, attributes: Mapping[str, str]) -> Notification:
    """Return the notification of a message of a `notifications-{cluster}` topic; raise Permanent like `decode_fact`."""
    notification: Notification = _decode(data, attributes, _NOTIFICATIONS)
    return notification


def about(fact: Fact) -> Mapping[str, str]:
    """Return whom or what a fact is about, as attributes."""
    match fact:
        case SlicesWanted() | SliceDeclared() | WorkloadChanged() | Answer():
            return about_owner(fact.workload.owner)
        case HostsChanged() | JoinToken():
            return {"slice": fact.slice_id}
        case Heartbeat() | Listed() | Echo():
            return {}


def about_owner(owner: Owner) -> Mapping[str, str]:
    """Return whom a message or a log line is about, as attributes: the same names in both."""
    return {"owner_kind": owner.kind, "owner": owner.full_name, "owner_uid": owner.uid}


def _encode(value: Fact | AnyRequest | Update | AnyQuestion | Notification, **about: str) -> Message:
    kind = type(value).__name__
    data = _ALL[kind].dump_json(value)
    if len(data) > MOST_BYTES:
        raise ValueError(f"{kind} has {len(data)} bytes: a message may have at most {MOST_BYTES}")
    if longest := next((name for name, text in about.items() if len(text.encode()) > ATTRIBUTE_BYTES), None):
        raise ValueError(f"{kind}: attribute {longest}: Pub/Sub accepts at most {ATTRIBUTE_BYTES} bytes")
    return Message(data, {"kind": kind, "version": VERSION, **about})


def _decode(data: bytes, attributes: Mapping[str, str], kinds: Adapters[str]) -> Any:
    adapter = kinds.get(kind := attributes.get("kind", ""))
    if adapter is None:
        raise Permanent(f'attribute kind: "{kind}" is not one of {", ".join(kinds)}')
    if (version := attributes.get("version", "")) != VERSION:
        raise Permanent(f'attribute version: "{version}" is not supported, only "{VERSION}"')
    if len(data) > MOST_BYTES:
        raise Permanent(f"data: {len(data)} bytes: a message may have at most {MOST_BYTES}")
    try:
        value = adapter.validate_json(data, strict=True)
    except ValidationError as invalid:
        raise Permanent(f"{kind}: {first_error(invalid)}") from None  # it quotes what is invalid, be it a secret
    if kinds is not _FOR_THE_RELAY and (beyond := beyond_bounds(value)) is not None:
        raise Permanent(f"{kind}: {beyond}")
    return value
