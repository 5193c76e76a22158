"""The bounds of every value in a fact, which a forged relay could write, and in a record, which operators can edit.

Without them one message could fill a document, the memory of the sweep that reads it, or a log; or name a document
that is another's, or none; and an edit could bring a value on which the flows fail. A field has the bound of its own
row below, else that of its name, else that of its type.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from datetime import datetime, timedelta
from functools import cache
from types import NoneType
from typing import Any, NewType, get_args, get_origin, get_type_hints

from tpu_slices.domain.model.facts import (
    HostsChanged,
    Listed,
    MountedVolume,
    SlicesWanted,
    TemplateRequest,
    WorkloadChanged,
    WorkloadRef,
)
from tpu_slices.domain.model.hosts import Upcoming
from tpu_slices.domain.model.joining import JoinToken
from tpu_slices.domain.model.notifications import NOTIFY_CHARACTERS
from tpu_slices.domain.model.pods import MOST_JOBS, MOST_WORDS, Trouble
from tpu_slices.domain.model.slices import (
    LAST_ATTEMPT,
    SLICES_PER_WORKLOAD,
    ClaimId,
    ClusterId,
    Owner,
    SliceId,
    SliceSpec,
    WorkloadUid,
    cluster_id,
    is_claim_id,
    is_slice_id,
)
from tpu_slices.domain.planning.sharing import slices_of
from tpu_slices.domain.records.attempts import Attempt
from tpu_slices.domain.records.claims import Claim
from tpu_slices.domain.records.gangs import Gang
from tpu_slices.domain.records.hosts import MOST_BELIEVED, Asked, Hosts
from tpu_slices.domain.records.limiters import Budget, ConcurrencyLimiter
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord

VOLUMES_PER_FACT = 50
LEADERS_PER_FACT = 200
"""The most waiting leaders in one fact: so many slices are saved at once."""
KEYS_PER_PART = 5_000
"""The most keys in one part of a list of what the relay sees."""
TEMPLATES = 500
"""The most replicatedJobs with TPU of a JobSet."""
TEMPLATE_BYTES = 16_384
"""The most bytes of what a template or a pod requests; no text in it is longer."""
MOST_CA_HASHES = 20
"""The most certificate authorities that the API server may be proven by."""
ERROR_CHARACTERS = 1_000
"""The most characters of an error that is stored, sent or logged."""

_MOST = (1 << 63) - 1
"""The largest number that Firestore stores."""
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?")
"""Every name of an object in Kubernetes, and every value of a label that holds one."""
_TOKEN = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")
_CA_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_MOST_TIME = timedelta(days=365)
YEARS = range(2000, 3000)
"""Those of a time that is believed."""


@dataclass(frozen=True, slots=True)
class Bound:
    holds: Callable[[Any], bool]
    valid: str
    """What the value must be, as the end of a message."""


def _text(most: int) -> Bound:
    return Bound(lambda value: len(value) <= most, f"of at most {most} characters")


def _name(most: int) -> Bound:
    return Bound(
        lambda value: len(value) <= most and _NAME.fullmatch(value) is not None,
        f"a name of at most {most} letters, digits, -, . and _",
    )


def _number(most: int, least: int = 0) -> Bound:
    return Bound(lambda value: least <= value <= most, f"from {least} to {most}")


def _many(most: int) -> Bound:
    return Bound(lambda value: len(value) <= most, f"of at most {most} members")


def _is_cluster_id(value: str) -> bool:
    try:
        return cluster_id(value) == value
    except ValueError:
        return False


_KEY_NAME = _name(63)
_SLICES = Bound(
    lambda requests: len(requests) <= TEMPLATES and sum(map(slices_of, requests)) <= SLICES_PER_WORKLOAD,
    f"of at most {SLICES_PER_WORKLOAD} slices and {TEMPLATES} replicatedJobs",
)
_KEY = Bound(lambda value: value is None or _KEY_NAME.holds(value), _KEY_NAME.valid)
_KEYS = Bound(
    lambda value: len(value) <= KEYS_PER_PART and all(map(_KEY_NAME.holds, value)),
    f"of at most {KEYS_PER_PART} keys, each {_KEY_NAME.valid}",
)
_COUNT = _number(1_000_000_000)
_QUESTIONS = _number(1_000 * MOST_BELIEVED)
_TYPES: Mapping[Any, Bound] = {
    ClusterId: Bound(_is_cluster_id, "the ID of a cluster"),
    ClaimId: Bound(is_claim_id, "the ID of a claim"),
    SliceId: Bound(is_slice_id, "the ID of a slice"),
    ClaimId | SliceId: Bound(lambda value: is_claim_id(value) or is_slice_id(value), "the ID of a claim or a slice"),
    WorkloadUid: _name(63),
    str: _text(TEMPLATE_BYTES),
    int: _number(_MOST),
    datetime: Bound(
        lambda value: value.tzinfo is not None and value.year in YEARS,
        f"a time with its zone, from {YEARS[0]} to {YEARS[-1]}",
    ),
    timedelta: Bound(lambda value: timedelta(0) < value <= _MOST_TIME, f"a duration of at most {_MOST_TIME.days} days"),
    tuple: _many(TEMPLATE_BYTES),
    Mapping: _many(TEMPLATE_BYTES),
}
_NAMES: Mapping[str, Bound] = {
    "namespace": _name(63),
    "pod_uid": _name(63),
    "replicated_job": _text(63),
    "job_index": _number(999_999_999),
    "attempt": _number(999_999_999),
}
"""Of the fields with these names, in whatever fact or record."""
_FIELDS: Mapping[tuple[type, str], Bound] = {
    (Owner, "name"): _name(253),
    (WorkloadRef, "resource_version"): _text(253),
    (SlicesWanted, "requests"): _SLICES,
    (SlicesWanted, "waiting"): _many(LEADERS_PER_FACT),
    (TemplateRequest, "replicas"): _number((1 << 31) - 1),
    (TemplateRequest, "first_job"): _number(999_999_999),
    (TemplateRequest, "gang_hold_for"): _number(365 * 86_400),
    (TemplateRequest, "volumes"): _many(VOLUMES_PER_FACT),
    (MountedVolume, "name"): _text(253),
    (WorkloadChanged, "queue"): _text(253),
    (WorkloadChanged, "template_error"): _text(ERROR_CHARACTERS),
    (WorkloadChanged, "notify"): _text(NOTIFY_CHARACTERS),
    (WorkloadChanged, "unserved"): _text(ERROR_CHARACTERS),
    (HostsChanged, "usable"): _number(100_000),
    (HostsChanged, "joined"): _number(100_000),
    (HostsChanged, "closed"): _number(100_000),
    (HostsChanged, "maintained"): _number(100_000),
    (HostsChanged, "sound"): _number(100_000),
    (Upcoming, "stopping"): _number(100_000),
    (HostsChanged, "occupants"): _many(LEADERS_PER_FACT),
    (HostsChanged, "pods"): _many(MOST_JOBS),
    (Trouble, "pod"): _text(253),
    (Trouble, "words"): _text(MOST_WORDS),
    (Listed, "digests"): _KEYS,
    (Listed, "after"): _KEY,
    (Listed, "up_to"): _KEY,
    (Listed, "part"): _number(999),
    (Listed, "parts"): _number(1_000, 1),
    (JoinToken, "token"): Bound(lambda value: _TOKEN.fullmatch(value) is not None, "a bootstrap token"),
    (JoinToken, "ca_hashes"): Bound(
        lambda value: 0 < len(value) <= MOST_CA_HASHES and all(_CA_HASH.fullmatch(each) for each in value),
        f"1 to {MOST_CA_HASHES} of the form sha256:HASH",
    ),
    (Claim, "tried"): _number(LAST_ATTEMPT + 1),
    (Claim, "failures"): _COUNT,
    (SliceRecord, "transition_count"): _COUNT,
    (SliceRecord, "announced_count"): _COUNT,
    (SliceRecord, "note"): _text(1 << 20),
    (Asked, "number"): _QUESTIONS,
    (Hosts, "highest"): _QUESTIONS,
    (Hosts, "answered"): _QUESTIONS,
    (SliceSpec, "hosts"): _number(100_000, 1),
    (SliceSpec, "chips_per_host"): _number(100, 1),
    (SliceSpec, "key"): _text(63),
    (Attempt, "number"): _number(LAST_ATTEMPT + 1),
    (WorkloadRecord, "announced_count"): _COUNT,
    (ConcurrencyLimiter, "limit"): _number(1_000),
    (Budget, "creations"): _number(_MOST // 2),
    (Gang, "stuck_for"): Bound(lambda value: timedelta(0) <= value <= _MOST_TIME, f"at most {_MOST_TIME.days} days"),
}


def beyond_bounds(value: object) -> str | None:
    """Return the first field of a fact or record that is beyond its bounds and what it must be; None: none is.

    The types of its fields are taken to be right, as after decoding.
    """
    kind: Any = type(value)
    check = _check_of(kind, None)
    return check(value) if check else None


Check = Callable[[Any], str | None]
"""Returns `path: must be ...` of what is beyond its bounds in a value, or None."""


@cache
def _check_of(hint: Any, own: Bound | None) -> Check | None:
    """Return the check of values of a type, or None if they have no bounds; `own`: the bound of the field itself."""
    required = [each for each in get_args(hint) if each is not NoneType]
    if len(required) == 1 and NoneType in get_args(hint):
        check = _check_of(required[0], own)
        return check and (lambda value: None if value is None else check(value))
    if get_origin(hint) is tuple:
        members = [_check_of(each, None) for each in get_args(hint) if each is not ...]
        return _of_tuple(members, _within(own or _TYPES[tuple]))
    if get_origin(hint) is Mapping:
        name, member = (_check_of(each, None) for each in get_args(hint))
        return _of_mapping(name, member, _within(own or _TYPES[Mapping]))
    if is_dataclass(hint) and isinstance(hint, type):
        hints = get_type_hints(hint)
        checks = {
            name: _check_of(inner, _FIELDS.get((hint, name)) or _NAMES.get(name)) for name, inner in hints.items()
        }
        return _of_fields({name: check for name, check in checks.items() if check})
    while (bound := own or _TYPES.get(hint)) is None and isinstance(hint, NewType):
        hint = hint.__supertype__
    return _within(bound) if bound else None


def _within(bound: Bound) -> Check:
    return lambda value: None if bound.holds(value) else f": must be {bound.valid}"


def _of_fields(checks: Mapping[str, Check]) -> Check:
    def check(value: object) -> str | None:
        for name, inner in checks.items():
            if beyond := inner(getattr(value, name)):
                return _joined(name, beyond)
        return None

    return check


def _of_tuple(members: Sequence[Check | None], whole: Check) -> Check:
    def check(value: tuple[Any, ...]) -> str | None:
        for number, (member, inner) in enumerate(zip(value, itertools.cycle(members), strict=False)):
            if inner and (beyond := inner(member)):
                return _joined(str(number), beyond)
        return whole(value)

    return check


def _of_mapping(key: Check | None, member: Check | None, whole: Check) -> Check:
    def check(value: Mapping[str, Any]) -> str | None:
        for name, each in value.items():
            if beyond := (key and key(name)) or (member and member(each)):
                return _joined(f"{name:.63}", beyond)
        return whole(value)

    return check


def _joined(part: str, beyond: str) -> str:
    return f"{part}{beyond}" if beyond.startswith(":") else f"{part}.{beyond}"
