from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import CLUSTER, NOW, a_jobset, a_record, settings, some_hosts
from tests.domain.cases import GUEST, REJECTION, going
from tpu_slices.adapters import firestore_queries
from tpu_slices.adapters.firestore_queries import EXPIRING, INDEXED, QUERIES, Query
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.records.awaited import PoolOperation, SlotAwaited
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.domain.records.limiters import ConcurrencyLimiter
from tpu_slices.ports.store import Record
from tpu_slices.wire.cluster_settings import encode_settings
from tpu_slices.wire.documents import encode, key_of

DECLARED = json.loads((Path(__file__).parents[2] / "infra" / "firestore.indexes.json").read_text())


def declared(override: dict[str, Any]) -> tuple[str, str, bool, bool]:
    """Return collection, path, whether it is indexed, and whether documents expire by it."""
    assert override["indexes"] in ([], [{"order": "ASCENDING", "queryScope": "COLLECTION"}])
    return override["collectionGroup"], override["fieldPath"], bool(override["indexes"]), override.get("ttl", False)


def test_every_query_is_in_the_list() -> None:
    defined = {value for value in vars(firestore_queries).values() if isinstance(value, Query)}

    assert defined == set(QUERIES)


def test_the_declared_indexes_are_those_that_the_queries_need() -> None:
    needed = [
        {
            "collectionGroup": query.collection,
            "queryScope": "COLLECTION",
            "fields": [{"fieldPath": field, "order": "ASCENDING"} for field in query.index],
        }
        for query in QUERIES
        if query.index
    ]

    assert DECLARED["indexes"] == [index for at, index in enumerate(needed) if index not in needed[:at]]


def test_the_declared_overrides_are_the_expiring_fields_the_indexed_ones_and_all_others_of_their_collections() -> None:
    expiring = [(collection, "expire_at", False, True) for collection in EXPIRING]
    indexed = [(collection, field, True, False) for collection, names in INDEXED.items() for field in names]
    others = [(collection, "*", False, False) for collection in INDEXED]

    assert [declared(override) for override in DECLARED["fieldOverrides"]] == [*expiring, *indexed, *others]


def test_the_fields_with_an_index_of_their_own_are_those_of_queries_on_one_field() -> None:
    queried = {(query.collection, query.own) for query in QUERIES if query.own}
    by_people = {("workloads", "owner")}  # in the console
    assert {(collection, field) for collection, names in INDEXED.items() for field in names} == queried | by_people


def test_every_query_has_an_index_by_which_firestore_answers_it() -> None:
    """Firestore's guide: a composite index, the index of a single field, or the documents' names."""
    made = {
        (index["collectionGroup"], *(field["fieldPath"] for field in index["fields"])) for index in DECLARED["indexes"]
    }
    made |= {
        (collection, path)
        for collection, path, is_indexed, _ in map(declared, DECLARED["fieldOverrides"])
        if is_indexed
    }
    for query in QUERIES:
        fields = query.index or ((query.own,) if query.own else ())
        assert not fields or (query.collection, *fields) in made, query


def test_every_collection_with_maps_and_arrays_indexes_chosen_fields_alone() -> None:
    documents: list[tuple[str, dict[str, Any]]] = [
        (collection, encode_settings(settings())) for collection in ("clusters", "accepted")
    ]
    records: list[Record] = [
        a_record(
            attempt=2,
            pinned_settings=settings().pools,
            hosts=some_hosts(occupants=(GUEST,)),
            rejection=REJECTION,
            refusal=Refusal(reason=Reason.DOES_NOT_FIT, message="No."),
            slot_awaited=SlotAwaited(operation=PoolOperation.CREATE, attempt=2, since=NOW),
            earlier=(1,),
        ),
        going(),
        a_jobset(),
        ConcurrencyLimiter(cluster=CLUSTER, limit=5, changed_at=NOW, shortages={}),
    ]
    documents += [(key_of(record).collection, encode(record)) for record in records]

    large = {
        collection for collection, document in documents if any(isinstance(v, dict | list) for v in document.values())
    }
    assert large <= INDEXED.keys()


@pytest.mark.parametrize(
    ("query", "own"),
    [
        (Query(collection="slices", order="__name__"), ""),
        (Query(collection="slices", where=(("cluster", "=="),), order="__name__"), "cluster"),
        (Query(collection="slices", where=(("since", "<="),), order="since"), "since"),
        (Query(collection="slices", where=(("cluster", "=="),), order="since"), ""),
    ],
    ids=["all", "by one field", "by one field in its order", "by two"],
)
def test_a_query_on_one_field_needs_an_index_of_it(query: Query, own: str) -> None:
    assert query.own == own


def test_a_composite_index_is_needed_from_two_fields_on() -> None:
    assert Query(collection="slices", where=(("next_reconcile_at", "<="),), order="next_reconcile_at").index == ()
    assert Query(collection="slices", where=(("phase", "=="),), order="__name__").index == ()
    assert Query(collection="slices", where=(("phase", "=="),), order="since").index == ("phase", "since")
    assert Query(collection="slices", order="since", then=("attempt",)).index == ("since", "attempt")
