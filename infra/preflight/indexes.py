"""Whether Firestore has made the indexes and the settings of fields that Terraform has asked it for."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from infra.preflight.answers import Answer, Body, Denied, Found, Missing, unknown
from infra.preflight.api import Api
from infra.preflight.findings import Finding, error

DECLARED = Path(__file__).resolve().parents[1] / "firestore.indexes.json"
PAUSE_SECONDS = 15.0
ROUNDS = 3 * 60 * 4
"""Three hours of pauses: less than a build has in all."""


class Standing(StrEnum):
    READY = "ready"
    AWAITED = "awaited"
    BROKEN = "broken"
    """Firestore has given up."""


@dataclass(frozen=True, slots=True)
class Index:
    """A composite index."""

    collection: str
    fields: tuple[tuple[str, str], ...]
    """Paths, each with its order."""

    def __str__(self) -> str:
        return f"{self.collection} ({', '.join(path for path, _ in self.fields)})"


@dataclass(frozen=True, slots=True)
class Field:
    """What is other than usual of a field; `*` is each field of the collection that has nothing of its own."""

    collection: str
    path: str
    orders: tuple[str, ...] = ()
    ttl: bool = False

    def __str__(self) -> str:
        return f"{self.collection}.{self.path}"


@dataclass(frozen=True, slots=True)
class Declared:
    indexes: tuple[Index, ...]
    fields: tuple[Field, ...]

    @classmethod
    def read(cls, path: Path = DECLARED) -> Self:
        """Return what a file in Firebase's format declares."""
        document = json.loads(path.read_text())
        return cls(
            tuple(Index(each["collectionGroup"], _ordered(each["fields"])) for each in document["indexes"]),
            tuple(
                Field(
                    each["collectionGroup"],
                    each["fieldPath"],
                    tuple(index["order"] for index in each["indexes"]),
                    each.get("ttl", False),
                )
                for each in document["fieldOverrides"]
            ),
        )


@dataclass(frozen=True, slots=True)
class Seen:
    """What Firestore tells at a moment."""

    indexes: Answer
    """All composite indexes of the database."""
    fields: Mapping[Field, Answer]


def ask(api: Api, project: str, fields: Sequence[Field]) -> Seen:
    groups = f"v1/projects/{project}/databases/(default)/collectionGroups"
    return Seen(
        _all_pages(api, f"{groups}/-/indexes"),
        {field: api.get("firestore", f"{groups}/{field.collection}/fields/{field.path}") for field in fields},
    )


def _all_pages(api: Api, path: str) -> Answer:
    found: list[Body] = []
    token = ""
    while True:
        answer = api.get("firestore", path, pageSize=300, **({"pageToken": token} if token else {}))
        if not isinstance(answer, Found):
            return answer
        found.extend(answer.body.get("indexes", ()))
        token = answer.body.get("nextPageToken", "")
        if not token:
            return Found({"indexes": found})


def standings(declared: Declared, seen: Seen) -> dict[Index | Field, Standing]:
    """Return how each part stands. What was not answered is awaited: it is asked again."""
    listed = seen.indexes.body["indexes"] if isinstance(seen.indexes, Found) else ()
    states = {_identity(index): index.get("state", "") for index in listed if index.get("queryScope") == "COLLECTION"}
    return {
        **{index: _index_standing(states.get(index, "")) for index in declared.indexes},
        **{field: field_standing(field, answer) for field, answer in seen.fields.items()},
    }


def _index_standing(state: str) -> Standing:
    return {"READY": Standing.READY, "NEEDS_REPAIR": Standing.BROKEN}.get(state, Standing.AWAITED)


def field_standing(field: Field, answer: Answer) -> Standing:
    """Return how a field stands, by the first row that holds.

    | what Firestore tells                                            | standing |
    |-----------------------------------------------------------------|----------|
    | nothing, or no such field                                       | AWAITED  |
    | an index of its own, or its time to live, needs repair          | BROKEN   |
    | its indexes are still those of all fields                       | AWAITED  |
    | an index of its own is missing, or one too many, or being made  | AWAITED  |
    | it is to have a time to live, which is not active               | AWAITED  |
    | else                                                            | READY    |
    """
    if not isinstance(answer, Found):
        return Standing.AWAITED
    config, ttl = answer.body.get("indexConfig", {}), answer.body.get("ttlConfig", {})
    inherits = config.get("usesAncestorConfig", False)
    own = [] if inherits else config.get("indexes", [])
    states = {order: index.get("state") for index in own for _, order in _ordered(index["fields"])}
    if "NEEDS_REPAIR" in {*states.values(), ttl.get("state")}:
        return Standing.BROKEN
    made = not inherits and states == dict.fromkeys(field.orders, "READY")
    return Standing.READY if made and (not field.ttl or ttl.get("state") == "ACTIVE") else Standing.AWAITED


def _ordered(fields: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    """Return paths and orders; an index ends with the document's name, which nobody declares."""
    return tuple(
        (each["fieldPath"], each.get("order", each.get("arrayConfig", "")))
        for each in fields
        if each["fieldPath"] != "__name__"
    )


def _identity(index: Body) -> Index:
    """Return an index that Firestore names `…/collectionGroups/COLLECTION/indexes/ID`."""
    return Index(index["name"].split("/")[-3], _ordered(index["fields"]))


def fatal_findings(seen: Seen, standing: Mapping[Index | Field, Standing], project: str) -> Iterator[Finding]:
    """Yield why it is no use to wait."""
    answers = [seen.indexes, *seen.fields.values()]
    denied = next((each for each in answers if isinstance(each, Denied)), None)
    if denied is not None:
        yield error(f"Firestore's indexes cannot be read: {unknown(denied)}")
    if isinstance(seen.indexes, Missing):
        yield error(f"{project} has no Firestore database (default).")
    for part, how in standing.items():
        if how is Standing.BROKEN:
            kind = "composite" if isinstance(part, Index) else "fields"
            yield error(
                f"Firestore could not make {part}. Delete it, and submit the build again.",
                f"gcloud firestore indexes {kind} list --project {project}",
            )


def overdue(awaited: Sequence[Index | Field], project: str) -> Finding:
    return error(
        f"Firestore is still not done with {_named(awaited)}. It goes on by itself: submit the build again later.",
        f"gcloud firestore operations list --project {project}",
    )


def progress(awaited: Sequence[Index | Field], total: int) -> str:
    ready = f"Of {total} indexes and fields of Firestore, {total - len(awaited)} are ready"
    return f"{ready}; awaited: {_named(awaited)}." if awaited else f"{ready}."


def _named(parts: Sequence[Index | Field], shown: int = 5) -> str:
    more = f" and {len(parts) - shown} more" if len(parts) > shown else ""
    return ", ".join(map(str, parts[:shown])) + more
