"""Records as Firestore documents, with native values and readable names only."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from tpu_slices.domain.catalogue.topology import Topology
from tpu_slices.domain.model.records import SliceRecord
from tpu_slices.domain.model.slices import ClusterId, SliceSpec
from tpu_slices.domain.model.workloads import Report, WorkloadRecord
from tpu_slices.domain.reconciling.inventory import RelayHeartbeat
from tpu_slices.domain.reconciling.limiter import Budget, ConcurrencyLimiter, Slot
from tpu_slices.ports.errors import Permanent
from tpu_slices.ports.store import Change, Record, Rejection
from tpu_slices.wire.validation import first_error

SCHEMA = 1
"""The version of the documents. Raised if older code would misread them; a new field alone does not require it."""

REJECTED_TTL = timedelta(days=30)
"""How long a message that could not be handled is kept."""

CHIPS_HELD = "chips_held"
"""The field of a slice that Firestore sums up."""

Fields = dict[str, Any]
"""What Firestore stores: text, whole numbers, bools, None, times in UTC, maps with text keys, arrays without arrays."""

R = TypeVar("R", bound=Record)

COLLECTIONS: Mapping[type[Any], str] = {
    WorkloadRecord: "workloads",
    SliceRecord: "slices",
    Slot: "slots",
    ConcurrencyLimiter: "limiters",
    Budget: "budgets",
    RelayHeartbeat: "heartbeats",
}


@dataclass(frozen=True, slots=True)
class Key:
    """The collection and id of a document."""

    collection: str
    id: str

    def __str__(self) -> str:
        return f"{self.collection}/{self.id}"


def key(kind: type[R], cluster: ClusterId, name: str | int | None = None) -> Key:
    """Return `{collection}/{cluster}.{name}`, or `{collection}/{cluster}` for kinds of which a cluster has one."""
    return Key(COLLECTIONS[kind], cluster if name is None else f"{cluster}.{name}")


def key_of(record: Record) -> Key:
    match record:
        case WorkloadRecord():
            return key(WorkloadRecord, record.cluster, record.owner.uid)
        case SliceRecord():
            return key(SliceRecord, record.cluster, record.id)
        case Slot():
            return key(Slot, record.cluster, record.number)
        case ConcurrencyLimiter() | Budget() | RelayHeartbeat():
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


def decode(kind: type[R], document: Mapping[str, Any]) -> R:
    """Return the record of a document, ignoring unknown fields; raise Permanent if the schema or a field is invalid."""
    schema = document.get("schema")
    if type(schema) is not int or not 1 <= schema <= SCHEMA:
        raise Permanent(f"schema: {schema!r} is not supported, only 1 to {SCHEMA}: deploy the newer provisioner")
    adapter: TypeAdapter[R] = _ADAPTERS[kind]
    try:
        return adapter.validate_python(document)
    except ValidationError as invalid:
        raise Permanent(f"{kind.__name__}: {first_error(invalid)}") from invalid


def rejection_key(rejection: Rejection) -> Key:
    return Key("rejected", urllib.parse.quote(rejection.message_id, safe="") or "unnamed")


def encode_rejection(rejection: Rejection) -> Fields:
    return {"schema": SCHEMA, **_members(rejection), "expire_at": rejection.rejected_at + REJECTED_TTL}


def native(value: object) -> Any:
    """Return a domain value as native values: topologies as `4x4`, durations in seconds, enums by their value."""
    match value:
        case Topology():
            return str(value)
        case StrEnum():
            return value.value
        case timedelta():
            seconds = value.total_seconds()
            return int(seconds) if seconds.is_integer() else seconds
        case SliceSpec():  # Firestore does not support arrays in arrays
            return {**_members(value), "node_labels": dict(value.node_labels)}
        case Mapping():
            return {str(native(name)): native(member) for name, member in value.items()}
        case tuple():
            return [native(member) for member in value]
        case _ if is_dataclass(value):
            return _members(value)
        case _:
            return value


def _members(value: Any) -> Fields:
    return {field.name: native(getattr(value, field.name)) for field in fields(value)}


def _derived(record: Record) -> Fields:
    """Return derived fields for readers of the document and for queries; they are never decoded."""
    if not isinstance(record, SliceRecord):
        return {}
    hosts = record.spec.hosts if record.spec else "?"
    return {
        "hosts": f"{record.hosts_usable} of {hosts} usable",
        "job_name": record.job.job_name,
        "pool": _pool(record),
        CHIPS_HELD: record.chips_held,
    }


def _pool(record: SliceRecord) -> str | None:
    try:
        return record.pool
    except ValueError:  # past LAST_ATTEMPT
        return None


def _with_parsed_spec(document: Any) -> Any:
    """Return the document with its spec as it was before `native`."""
    spec = document.get("spec")
    if not isinstance(spec, dict):
        return document
    labels = spec.get("node_labels", {})
    exact = {
        "topology": Topology.parse(str(spec.get("topology"))),
        "node_labels": sorted(labels.items()) if isinstance(labels, dict) else labels,
    }
    return {**document, "spec": {**spec, **exact}}


_REPORT = TypeAdapter(Report | None)


def _without_invalid_report(document: Any) -> Any:
    """Return the document without a report of another version or edited by hand: it is derived and made again."""
    try:
        _REPORT.validate_python(document.get("report"))
    except ValidationError:
        return {**document, "report": None}
    return document


_ADAPTERS: Mapping[type[Any], TypeAdapter[Any]] = {
    WorkloadRecord: TypeAdapter(Annotated[WorkloadRecord, BeforeValidator(_without_invalid_report)]),
    SliceRecord: TypeAdapter(Annotated[SliceRecord, BeforeValidator(_with_parsed_spec)]),
    Slot: TypeAdapter(Slot),
    ConcurrencyLimiter: TypeAdapter(ConcurrencyLimiter),
    Budget: TypeAdapter(Budget),
    RelayHeartbeat: TypeAdapter(RelayHeartbeat),
}
