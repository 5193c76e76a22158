from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.builders import CLUSTER, NOW, a_jobset, a_record, settings, some_hosts
from tests.domain.cases import ELSEWHERE, GUEST, REJECTION, terminating
from tpu_slices.adapters import firestore_queries
from tpu_slices.adapters.firestore_queries import EXPIRING, QUERIES, UNINDEXED, Query
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.records import PoolOperation, Refusal, SlotAwaited
from tpu_slices.domain.reconciling.limiter import ConcurrencyLimiter
from tpu_slices.ports.store import Record
from tpu_slices.wire.cluster_settings import encode_settings
from tpu_slices.wire.documents import encode, key_of

DECLARED = json.loads((Path(__file__).parents[2] / "infra" / "firestore.indexes.json").read_text())


def declared(override: dict[str, Any]) -> tuple[str, str, bool]:
    assert override["indexes"] == []
    return override["collectionGroup"], override["fieldPath"], override.get("ttl", False)


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


def test_the_declared_overrides_are_the_expiring_and_the_unindexed_fields() -> None:
    expiring = [(collection, "expire_at", True) for collection in EXPIRING]
    unindexed = [(collection, field, False) for collection, names in UNINDEXED.items() for field in names]

    assert [declared(override) for override in DECLARED["fieldOverrides"]] == [*expiring, *unindexed]


def test_no_query_uses_a_field_without_an_index() -> None:
    queried = {
        (query.collection, field.partition(".")[0])
        for query in QUERIES
        for field in (*(name for name, _ in query.where), query.order, *query.then)
    }
    without = {(collection, field) for collection, names in UNINDEXED.items() for field in names}

    assert not queried & without
    assert not queried & {(collection, "expire_at") for collection in EXPIRING}


def test_every_map_and_array_is_queried_or_has_no_index() -> None:
    documents: list[tuple[str, dict[str, Any]]] = [
        (collection, encode_settings(settings())) for collection in ("clusters", "accepted")
    ]
    records: list[Record] = [
        a_record(
            attempt=2,
            pinned_settings=settings().pools,
            hosts=some_hosts(occupants=(GUEST,)),
            terminating=(terminating(),),
            runs_on=ELSEWHERE,
            rejection=REJECTION,
            refusal=Refusal(reason=Reason.DOES_NOT_FIT, message="No."),
            slot_awaited=SlotAwaited(operation=PoolOperation.CREATE, attempt=2, since=NOW),
        ),
        a_jobset(),
        ConcurrencyLimiter(cluster=CLUSTER, limit=5, changed_at=NOW, shortages={}),
    ]
    documents += [(key_of(record).collection, encode(record)) for record in records]
    queried = {(query.collection, name.partition(".")[0]) for query in QUERIES for name, _ in query.where}
    queried.add(("workloads", "owner"))  # by people, in the console

    for collection, document in documents:
        large = {name for name, value in document.items() if isinstance(value, dict | list)}
        assert large <= {*UNINDEXED[collection], *(name for place, name in queried if place == collection)}


def test_a_composite_index_is_needed_from_two_fields_on() -> None:
    assert Query(collection="slices", where=(("next_reconcile_at", "<="),), order="next_reconcile_at").index == ()
    assert Query(collection="slices", where=(("phase", "=="),), order="__name__").index == ()
    assert Query(collection="slices", where=(("phase", "=="),), order="since").index == ("phase", "since")
    assert Query(collection="slices", order="since", then=("attempt",)).index == ("since", "attempt")
