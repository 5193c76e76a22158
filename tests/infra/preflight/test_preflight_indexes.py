"""The wait for Firestore's indexes: what each answer means, and when the wait ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from google.auth.credentials import AnonymousCredentials
from google.auth.transport.requests import AuthorizedSession

from infra.preflight import __main__ as preflight
from infra.preflight import indexes
from infra.preflight.__main__ import Outside
from infra.preflight.answers import Answer, Found, Missing, Unreachable
from infra.preflight.api import Api
from infra.preflight.indexes import Declared, Field, Index, Standing, field_standing, progress
from tests.infra.preflight import google_rest
from tests.infra.preflight.google_rest import Cloud

pytestmark = pytest.mark.enable_socket

GROUPS = "/v1/projects/shop/databases/(default)/collectionGroups"
DECLARED = Declared.read()
PLAIN, OWN, EXPIRES = (
    Field("slices", "*"),
    Field("slices", "cluster", ("ASCENDING",)),
    Field("slices", "expire_at", ttl=True),
)


def index_body(index: Index, state: str = "READY") -> dict[str, Any]:
    fields = [{"fieldPath": path, "order": order} for path, order in (*index.fields, ("__name__", "ASCENDING"))]
    name = f"{GROUPS[4:]}/{index.collection}/indexes/CICAg"
    return {"name": name, "queryScope": "COLLECTION", "fields": fields, "state": state}


def field_body(field: Field, state: str = "READY") -> dict[str, Any]:
    own = [
        {"queryScope": "COLLECTION", "fields": [{"fieldPath": field.path, "order": order}], "state": state}
        for order in field.orders
    ]
    ttl = {"ttlConfig": {"state": "ACTIVE"}} if field.ttl else {}
    return {"indexConfig": {"ancestorField": f"{GROUPS}/__default__/fields/*", "indexes": own}, **ttl}


def untouched(field: Field) -> dict[str, Any]:
    body = field_body(field)
    return {"indexConfig": {**body["indexConfig"], "usesAncestorConfig": True}}


def with_ttl(state: str) -> dict[str, Any]:
    return {**field_body(EXPIRES), "ttlConfig": {"state": state}}


@pytest.mark.parametrize(
    ("field", "answer", "standing"),
    [
        (PLAIN, Found(field_body(PLAIN)), Standing.READY),
        (OWN, Found(field_body(OWN)), Standing.READY),
        (EXPIRES, Found(field_body(EXPIRES)), Standing.READY),
        (PLAIN, Found(untouched(PLAIN)), Standing.AWAITED),
        (OWN, Found(untouched(OWN)), Standing.AWAITED),
        (OWN, Found(field_body(OWN, "CREATING")), Standing.AWAITED),
        (OWN, Found(field_body(PLAIN)), Standing.AWAITED),
        (PLAIN, Found(field_body(OWN)), Standing.AWAITED),
        (EXPIRES, Found(field_body(PLAIN)), Standing.AWAITED),
        (EXPIRES, Found(with_ttl("CREATING")), Standing.AWAITED),
        (EXPIRES, Found(with_ttl("NEEDS_REPAIR")), Standing.BROKEN),
        (OWN, Found(field_body(OWN, "NEEDS_REPAIR")), Standing.BROKEN),
        (OWN, Missing(), Standing.AWAITED),
        (OWN, Unreachable("no route"), Standing.AWAITED),
    ],
)
def test_a_field_is_ready_once_it_is_as_it_was_declared(field: Field, answer: Answer, standing: Standing) -> None:
    assert field_standing(field, answer) is standing


def test_the_file_that_terraform_reads_is_what_is_awaited() -> None:
    document = json.loads(indexes.DECLARED.read_text())
    assert (len(DECLARED.indexes), len(DECLARED.fields)) == (len(document["indexes"]), len(document["fieldOverrides"]))
    assert {PLAIN, OWN, EXPIRES} <= {*DECLARED.fields}


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    """Return a Firestore that has made all."""
    with google_rest.served() as cloud:
        cloud.documents[f"{GROUPS}/-/indexes"] = {"indexes": [index_body(index) for index in DECLARED.indexes]}
        for field in DECLARED.fields:
            cloud.documents[f"{GROUPS}/{field.collection}/fields/{field.path}"] = field_body(field)
        yield cloud


class Waiting:
    """Runs of the command, whose pauses change what Firestore tells."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.pauses = 0
        self.after: dict[int, Any] = {}
        """By the number of pauses, what happens then."""

    def _pause(self, seconds: float) -> None:
        assert seconds == indexes.PAUSE_SECONDS
        self.pauses += 1
        self.after.get(self.pauses, lambda: None)()

    def run(self) -> int:
        outside = Outside(lambda: self._api, pause=self._pause)
        return preflight.main(["indexes", "--project", "shop"], outside)


@pytest.fixture
def waiting(cloud: Cloud) -> Iterator[Waiting]:
    with AuthorizedSession(AnonymousCredentials()) as session:  # type: ignore[no-untyped-call]
        yield Waiting(Api(session, cloud.hosts))


def test_nothing_is_waited_for_once_all_is_made(waiting: Waiting, capsys: pytest.CaptureFixture[str]) -> None:
    assert waiting.run() == 0
    total = len(DECLARED.indexes) + len(DECLARED.fields)
    assert capsys.readouterr().out == f"Of {total} indexes and fields of Firestore, {total} are ready.\n"
    assert waiting.pauses == 0


def test_the_wait_ends_when_the_last_of_them_is_made(
    waiting: Waiting, cloud: Cloud, capsys: pytest.CaptureFixture[str]
) -> None:
    everything = cloud.documents.copy()
    slow, field = DECLARED.indexes[3], f"{GROUPS}/slices/fields/*"
    others = [index_body(index) for index in DECLARED.indexes if index != slow]
    cloud.documents[f"{GROUPS}/-/indexes"] = {"indexes": [*others, index_body(slow, "CREATING")]}
    cloud.documents[field] = untouched(PLAIN)
    waiting.after = {
        2: lambda: cloud.documents.update({field: everything[field]}),
        4: lambda: cloud.documents.update(everything),
    }
    assert waiting.run() == 0
    assert waiting.pauses == 4
    first, second, last = capsys.readouterr().out.splitlines()
    assert first.endswith(f"awaited: {slow}, slices.*.")
    assert second.endswith(f"awaited: {slow}.")
    assert last.endswith("are ready.")


def test_a_field_that_is_ready_is_not_asked_about_again(waiting: Waiting, cloud: Cloud) -> None:
    everything = cloud.documents.copy()
    cloud.documents[f"{GROUPS}/-/indexes"] = {}
    waiting.after = {1: lambda: cloud.documents.update(everything)}
    assert waiting.run() == 0
    assert cloud.asked.count(f"GET {GROUPS}/slices/fields/*") == 1


@pytest.mark.parametrize("status", [429, 500, 503])
def test_an_answer_that_failed_is_asked_for_again(waiting: Waiting, cloud: Cloud, status: int) -> None:
    everything = cloud.documents.copy()
    cloud.documents = dict.fromkeys(cloud.documents, status)
    waiting.after = {1: lambda: cloud.documents.update(everything)}
    assert (waiting.run(), waiting.pauses) == (0, 1)


def test_indexes_of_others_are_not_awaited(waiting: Waiting, cloud: Cloud) -> None:
    others = [
        index_body(Index("theirs", (("a", "ASCENDING"), ("b", "DESCENDING"))), "CREATING"),
        {**index_body(DECLARED.indexes[0], "CREATING"), "queryScope": "COLLECTION_GROUP"},
    ]
    cloud.documents[f"{GROUPS}/-/indexes"]["indexes"] += others
    assert (waiting.run(), waiting.pauses) == (0, 0)


@pytest.mark.parametrize(
    ("told", "says"),
    [
        (
            ("-/indexes", {"indexes": [index_body(DECLARED.indexes[0], "NEEDS_REPAIR")]}),
            f"could not make {DECLARED.indexes[0]}",
        ),
        (("slices/fields/cluster", field_body(OWN, "NEEDS_REPAIR")), "could not make slices.cluster"),
        (("-/indexes", 403), "cannot be read"),
        (("slices/fields/*", 403), "cannot be read"),
        (("-/indexes", 404), "shop has no Firestore database"),
    ],
    ids=["an index is broken", "a field is broken", "indexes are denied", "a field is denied", "there is no database"],
)
def test_what_no_wait_mends_ends_the_build_at_once(
    waiting: Waiting, cloud: Cloud, capsys: pytest.CaptureFixture[str], told: tuple[str, Any], says: str
) -> None:
    path, document = told
    cloud.documents[f"{GROUPS}/{path}"] = document
    assert (waiting.run(), waiting.pauses) == (1, 0)
    assert says in capsys.readouterr().out


def test_the_wait_ends_some_day(
    waiting: Waiting, cloud: Cloud, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.documents = {f"{GROUPS}/-/indexes": {}}
    monkeypatch.setattr(indexes, "ROUNDS", 3)
    assert (waiting.run(), waiting.pauses) == (1, 3)
    assert "submit the build again later" in capsys.readouterr().out


def test_all_pages_of_the_indexes_are_read() -> None:
    class Paged(Api):
        def __init__(self) -> None:
            self.tokens: list[str] = []

        def get(self, service: str, path: str, **query: Any) -> Answer:
            assert (service, path) == ("firestore", f"{GROUPS[1:]}/-/indexes")
            self.tokens.append(query.get("pageToken", ""))
            last = len(self.tokens) == 2
            page = DECLARED.indexes[1:] if last else DECLARED.indexes[:1]
            return Found({"indexes": [index_body(each) for each in page], **({} if last else {"nextPageToken": "2"})})

    paged = Paged()
    seen = indexes.ask(paged, "shop", ())
    assert paged.tokens == ["", "2"]
    assert set(indexes.standings(DECLARED, seen).values()) == {Standing.READY}


def test_of_many_the_first_are_named() -> None:
    assert progress(DECLARED.indexes[:7], 30).endswith(" and 2 more.")
