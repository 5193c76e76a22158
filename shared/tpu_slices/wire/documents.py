"""Records as Firestore documents, with native values and readable names only."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache, lru_cache
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from tpu_slices.domain.catalogue.topology import Topology
from tpu_slices.domain.model.observations import Visible
from tpu_slices.domain.model.slices import LAST_ATTEMPT, ClusterId, InstanceRequest, SliceSpec
from tpu_slices.domain.records import queues
from tpu_slices.domain.records.attempts import Seen
from tpu_slices.domain.records.brakes import Brake
from tpu_slices.domain.records.heartbeats import RelayHeartbeat
from tpu_slices.domain.records.limiters import Budget, ConcurrencyLimiter, Slot
from tpu_slices.domain.records.matching import goes_at, hears, offers, offers_to_any, tells, wants, wants_of_any
from tpu_slices.domain.records.mirror import mirror_digest
from tpu_slices.domain.records.rejected import RejectedMessage
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.spending import chips_held, chips_idle, paid_since
from tpu_slices.domain.records.workloads import Report, WorkloadRecord
from tpu_slices.ports.errors import Permanent
from tpu_slices.ports.store import Change, Record
from tpu_slices.wire.bounds import beyond_bounds
from tpu_slices.wire.validation import Adapters, adapter_of, first_error

SCHEMA = 1
"""The version of the documents. Raised if older code would misread them; a new field alone does not require it."""

REJECTED_TTL = timedelta(days=30)
"""How long a message that could not be handled is kept."""
REJECTED_CHARACTERS = 2_000
"""The most characters that are kept of each text of such a message."""

CHIPS_BOUGHT = "chips_bought"
CHIPS_HELD = "chips_held"
CHIPS_IDLE = "chips_idle"
HOSTS_DIGEST = "hosts_digest"
"""The fields of a slice that Firestore sums up."""
MIRROR_DIGEST = "mirror_digest"
"""The field of slices and workloads that Firestore sums up to compare the mirror with. A release that shows anything
else, or otherwise, names it anew: so documents of the one before count as not whole."""
WANTS, WANTS_OF_ANY = "wants", "wants_of_any"
OFFERS, OFFERS_TO_ANY, GOES_AT = "offers", "offers_to_any", "goes_at"
"""The fields of a slice by which a claim that waits and a slice that goes find each other (`records.matching`)."""
HEARS = "hears"
"""The field of a slice by which those are found that a change of their workload concerns (`records.matching`)."""
TELLS = "tells"
"""The field of a slice by which a workload's are counted by reason (`records.matching`)."""
SLOT_QUEUE, SLOT_POOL, DUE_QUEUE = "slot_queue", "slot_pool", "due_queue"
RESERVED_POOL, HOSTS_RESERVED = "reserved_pool", "hosts_reserved"
"""The fields of a slice by which namespaces take turns, and users of reservations are found (`records.queues`)."""
PAID_SINCE = "paid_since"
"""The field of a slice by which the one is found that has been paid for without use longest; None: it is not."""
DEMAND_DIGEST = "demand_digest"
STANDING = "standing"
"""The fields of a workload that Firestore sums up; 0: none of its leaders waits; it has ended."""
CHIPS_LINE = "chips_line"
"""The field of a workload by which those are found that wait for chips: `{cluster} {namespace}`, or None."""
REPORT_QUEUE = "report_queue"
"""The field of a workload by which reports are read fairly: `{cluster}/{first or renewed}/{namespace}`, or None."""

Fields = dict[str, Any]
"""What Firestore stores: text, whole numbers, bools, None, times in UTC, maps with text keys, arrays without arrays."""

R = TypeVar("R", bound=Record)

_NATIVE = frozenset({str, int, bool, float, datetime, type(None)})
_PAIRS: Mapping[type[Any], str] = {SliceSpec: "node_labels", InstanceRequest: "metadata"}
_KIND = "kind"
_SEEN: Mapping[str, type[Any]] = {kind.__name__: kind for kind in get_args(Visible)}
_ID_BYTES = 1_500
_RESERVED = re.compile(r"\.|\.\.|__.*__", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_MESSAGE_ID = re.compile(r"[A-Za-z0-9][-A-Za-z0-9]{0,99}")
"""As Pub/Sub makes them, and longer; none is reserved."""

COLLECTIONS: Mapping[type[Any], str] = {
    WorkloadRecord: "workloads",
    SliceRecord: "slices",
    Slot: "slots",
    ConcurrencyLimiter: "limiters",
    Budget: "budgets",
    Brake: "brakes",
    RelayHeartbeat: "heartbeats",
}


@dataclass(frozen=True, slots=True)
class Key:
    """The collection and id of a document; Permanent: Firestore does not accept the id."""

    collection: str
    id: str

    def __post_init__(self) -> None:
        length = len(self.id.encode(errors="replace"))
        if not 0 < length <= _ID_BYTES or "/" in self.id or _RESERVED.fullmatch(self.id) or not is_unicode(self.id):
            raise Permanent(f"{self.collection}/{storable(self.id, 100)}: Firestore accepts no document of this ID")

    def __str__(self) -> str:
        return f"{self.collection}/{self.id}"


def key(kind: type[R], cluster: ClusterId, name: str | int | None = None) -> Key:
    """Return `{collection}/{cluster}.{name}`, or `{collection}/{cluster}` for kinds of which a cluster has one."""
    return _key(COLLECTIONS[kind], cluster if name is None else f"{cluster}.{name}")


@lru_cache(maxsize=10_000)
def _key(collection: str, id_: str) -> Key:
    return Key(collection, id_)


def key_of(record: Record) -> Key:
    match record:
        case WorkloadRecord():
            return key(WorkloadRecord, record.cluster, record.owner.uid)
        case SliceRecord():
            return key(SliceRecord, record.cluster, record.id)
        case Slot():
            return key(Slot, record.cluster, record.number)
        case ConcurrencyLimiter() | Budget() | Brake() | RelayHeartbeat():
            return key(type(record), record.cluster)


def place_of(change: Change) -> Key:
    """Return the key of the document that is changed; raise ValueError if there is none, or two."""
    keys = {key_of(record) for record in (change.before and change.before.value, change.after) if record}
    if len(keys) != 1:
        raise ValueError(f"a change must be of one document, not of {', '.join(map(str, keys)) or 'none'}")
    return keys.pop()


def encode(record: Record) -> Fields:
    """Return the whole document, with every field of the record, so that it replaces what an older version wrote.

    Times keep microseconds, as Firestore does.
    """
    return {"schema": SCHEMA, **native(record), **_derived(record)}


def is_whole(kind: Any, document: Mapping[str, Any]) -> bool:
    """Return whether a document has every field of its record, so that only those that change need be written."""
    summed = {MIRROR_DIGEST} if kind in (SliceRecord, WorkloadRecord) else set[str]()
    return document.get("schema") == SCHEMA and document.keys() >= {*_names(kind), *summed}


def encode_change(before: Record, after: Record) -> Fields:
    """Return what `encode` returns of a record but for the fields that are those of the record it was made from."""
    kind: Any = type(after)
    names = [name for name in _names(kind) if getattr(after, name) is not getattr(before, name)]
    return {**{name: native(getattr(after, name)) for name in names}, **_derived(after)}


def decode(kind: type[R], document: Mapping[str, Any]) -> R:
    """Return the record of a document, ignoring unknown fields; raise Permanent if the schema or a field is invalid.

    Operators can edit every field: whatever is returned, the flows can work on.
    """
    schema = document.get("schema")
    if type(schema) is not int or not 1 <= schema <= SCHEMA:
        raise Permanent(f"schema: {schema!r} is not supported, only 1 to {SCHEMA}: deploy the newer provisioner")
    adapter: TypeAdapter[R] = _ADAPTERS[kind]
    try:
        record = adapter.validate_python(document)
    except ValidationError as invalid:
        raise Permanent(f"{kind.__name__}: {first_error(invalid)}") from invalid
    if (beyond := beyond_bounds(record) or _impossible(record)) is not None:
        raise Permanent(f"{kind.__name__}: {beyond}")
    return record


def decode_at(kind: type[R], place: Key, document: Mapping[str, Any]) -> R:
    """Return the record of the document at this key; raise Permanent, naming the key, also if it holds another one."""
    try:
        record = decode(kind, document)
    except Permanent as problem:
        raise Permanent(f"{place}: {problem}") from problem
    if key_of(record) != place:
        raise Permanent(f"{place}: holds the record {key_of(record)}: correct its fields, or delete it")
    return record


def rejection_key(rejection: RejectedMessage) -> Key:
    """Return `rejected/{message id}`; an id that Pub/Sub does not make is replaced by its digest."""
    id_ = rejection.message_id
    digest = hashlib.sha256(id_.encode(errors="surrogatepass")).hexdigest()
    return Key("rejected", id_ if _MESSAGE_ID.fullmatch(id_) else f"sha256.{digest}")


def encode_rejection(rejection: RejectedMessage) -> Fields:
    """Return the document, with the beginning of each text: nothing is known of it, not even that it can be stored."""
    texts = {
        name: storable(value, REJECTED_CHARACTERS) if isinstance(value, str) else value
        for name, value in _members(rejection).items()
    }
    return {"schema": SCHEMA, **texts, "expire_at": rejection.rejected_at + REJECTED_TTL}


def is_unicode(text: str) -> bool:
    """Return whether a text can be written as UTF-8: JSON can hold halves of surrogate pairs, which cannot."""
    return text.isascii() or _SURROGATE.search(text) is None


def storable(text: str, most: int) -> str:
    """Return the beginning of a text, with `?` for what cannot be written as UTF-8."""
    return text[:most].encode(errors="replace").decode()


def native(value: object) -> Any:
    """Return a domain value as native values: topologies as `4x4`, durations in seconds, enums by their value."""
    kind: Any = type(value)
    return value if kind in _NATIVE else _native_by(kind)(value)  # most are


@cache
def _native_by(kind: type[Any]) -> Callable[[Any], Any]:
    """Return what makes native values of values of a type."""
    for known, by in _BY.items():
        if issubclass(kind, known):
            return by
    return _members if is_dataclass(kind) else lambda value: value


def _members(value: Any) -> Fields:
    kind: Any = type(value)
    return {name: native(getattr(value, name)) for name in _names(kind)}


def _with_pairs(value: Any) -> Fields:
    """Return the members, those that are pairs as a map: Firestore does not support arrays in arrays."""
    pairs = _PAIRS[type(value)]
    return {**_members(value), pairs: dict(getattr(value, pairs))}


def _in_seconds(length: timedelta) -> float:
    seconds = length.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds


def _with_kind(seen: Any) -> Fields:
    """Return the members of what was seen, and what it is."""
    return {_KIND: type(seen).__name__, **_members(seen)}


_BY: Mapping[type[Any], Callable[[Any], Any]] = {
    Topology: str,
    StrEnum: lambda member: member.value,
    timedelta: _in_seconds,
    SliceSpec: _with_pairs,
    InstanceRequest: _with_pairs,
    **dict.fromkeys(_SEEN.values(), _with_kind),
    Mapping: lambda members: {str(native(name)): native(member) for name, member in members.items()},
    tuple: lambda members: [native(member) for member in members],
}


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _derived(record: Record) -> Fields:
    """Return derived fields for readers of the document and for queries; they are never decoded."""
    if isinstance(record, WorkloadRecord):
        queue = record.report_queue
        return {
            REPORT_QUEUE: queues.queue_name(queue) if queue else None,
            CHIPS_LINE: queues.chips_line(record.cluster, record.owner.namespace) if record.awaits_chips else None,
            DEMAND_DIGEST: record.demand_digest,
            STANDING: record.standing,
            MIRROR_DIGEST: mirror_digest(record),
        }
    if not isinstance(record, SliceRecord):
        return {}
    hosts = record.made_as.hosts if record.made_as else "?"
    return {
        "hosts_usable": f"{record.current.hosts.usable} of {hosts}",
        "id": record.id,
        "job_name": record.job.job_name,
        "pool": _pool(record),
        CHIPS_BOUGHT: record.chips_bought,
        CHIPS_HELD: chips_held(record),
        CHIPS_IDLE: chips_idle(record),
        HOSTS_DIGEST: record.hosts_digest,
        MIRROR_DIGEST: mirror_digest(record),
        PAID_SINCE: paid_since(record),
        SLOT_QUEUE: queues.slot_queue(record),
        SLOT_POOL: queues.slot_pool(record),
        DUE_QUEUE: queues.due_queue(record),
        RESERVED_POOL: queues.reserved_pool(record),
        HOSTS_RESERVED: queues.hosts_reserved(record),
        WANTS: wants(record),
        WANTS_OF_ANY: wants_of_any(record),
        OFFERS: offers(record),
        OFFERS_TO_ANY: offers_to_any(record),
        GOES_AT: goes_at(record),
        HEARS: hears(record),
        TELLS: tells(record),
    }


def _pool(record: SliceRecord) -> str | None:
    try:
        return record.pool
    except ValueError:  # past LAST_ATTEMPT
        return None


def _with_parsed_specs(document: Any) -> Any:
    """Return the document with its specs as they were before `native`."""
    parsed = {**document, **_parsed_in(document, "spec", "")}
    if isinstance(current := document.get("current"), dict):
        parsed["current"] = _parsed_attempt(current, "current.")
    return parsed


def _parsed_attempt(attempt: Fields, path: str) -> Fields:
    return {**attempt, **_parsed_in(attempt, "ordered", path), "seen": _parsed_seen(attempt.get("seen"))}


def _parsed_seen(seen: Any) -> Seen | None:
    """Return what was seen of a pool; None, so that it is looked at again, if that is of another version or edited."""
    pool = seen.get("pool") if isinstance(seen, dict) else None
    kind: Any = _SEEN.get(str(pool.get(_KIND))) if isinstance(pool, dict) else None
    if kind is None:
        return None
    try:
        parsed: Seen = adapter_of(Seen).validate_python({**seen, "pool": adapter_of(kind).validate_python(pool)})
    except ValidationError:
        return None
    return parsed if beyond_bounds(parsed) is None and beyond_bounds(parsed.pool) is None else None


def _parsed_in(document: Fields, name: str, path: str) -> Fields:
    spec = document.get(name)
    return {name: _parsed_spec(spec, f"{path}{name}")} if isinstance(spec, dict) else {}


def _parsed_spec(spec: Fields, field: str) -> Fields:
    exact: Fields = {}
    if isinstance(text := spec.get("topology"), str):
        try:
            exact["topology"] = Topology.parse(text)
        except ValueError as bad:
            raise ValueError(f"{field}.topology: {bad}") from bad
    if isinstance(labels := spec.get("node_labels"), dict):
        exact["node_labels"] = sorted(labels.items())
    instance = spec.get("instance")
    if isinstance(instance, dict) and isinstance(metadata := instance.get("metadata"), dict):
        exact["instance"] = {**instance, "metadata": sorted(metadata.items())}
    return {**spec, **exact}


def _without_invalid_report(document: Any) -> Any:
    """Return the document without a report of another version or edited by hand: it is derived and made again."""
    try:
        valid = beyond_bounds(adapter_of(Report | None).validate_python(document.get("report"))) is None
    except ValidationError:
        valid = False
    return document if valid else {**document, "report": None}


def _impossible(record: Record) -> str | None:
    """Return what no slice can be: only that of an adopted pool has the number 0, and one that none has goes."""
    if not isinstance(record, SliceRecord):
        return None
    if record.claimed_by not in {None, record.last_claim}:
        whose = "cluster, owner, replicated_job and job_index"
        return f"claimed_by: must follow from {whose}, or be null if it is let go: correct what was edited"
    if record.unclaimed and not (record.let_go and not record.wanted):
        return "claimed_by: must not be null, as neither let_go nor desire says that it goes"
    number, stands = record.attempt, record.current.create_requested_at is not None
    if number > LAST_ATTEMPT and stands:
        return f"current.number: must be at most {LAST_ATTEMPT}, as there is a pool of it"
    if number == 0 and record.legacy_pool is None:
        return "current.number: must be at least 1, as legacy_pool is not set"
    return None


_ADAPTERS = Adapters[type[Any]](
    {
        WorkloadRecord: Annotated[WorkloadRecord, BeforeValidator(_without_invalid_report)],
        SliceRecord: Annotated[SliceRecord, BeforeValidator(_with_parsed_specs)],
        Slot: Slot,
        ConcurrencyLimiter: ConcurrencyLimiter,
        Budget: Budget,
        Brake: Brake,
        RelayHeartbeat: RelayHeartbeat,
    }
)
