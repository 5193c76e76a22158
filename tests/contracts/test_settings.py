"""How every store of settings behaves towards the tools that write them and the functions that read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.builders import CLUSTER, settings
from tests.contracts.stores import REAL, Console, FirestoreConsole
from tests.fakes.settings import FakeSettings
from tests.fakes.store import FakeStore
from tpu_slices.adapters.firestore import FirestoreStore
from tpu_slices.adapters.firestore_settings import FirestoreSettings
from tpu_slices.ports.errors import Permanent, StaleRecord
from tpu_slices.ports.store import SettingsStore, SliceStore
from tpu_slices.wire.cluster_settings import encode_settings, settings_key

DOCUMENT = {"path": settings().path, "zone": "us-central2-b"}
OTHER = {"path": settings().path, "note": "for the launch"}


@dataclass(frozen=True, slots=True)
class Desk:
    written: SettingsStore
    store: SliceStore
    console: Console


@pytest.fixture(params=["fake", pytest.param("firestore", marks=REAL)])
def desk(request: pytest.FixtureRequest) -> Desk:
    if request.param == "fake":
        fake = FakeStore()
        return Desk(FakeSettings(fake), fake, fake)
    client = request.getfixturevalue("client")
    return Desk(FirestoreSettings(client), FirestoreStore(client), FirestoreConsole(client))


def zone(desk: Desk) -> str | None:
    known = desk.store.settings(CLUSTER)
    assert known is not None
    return known.zone


def test_what_is_written_first_is_read_by_the_functions(desk: Desk) -> None:
    assert desk.written.read(CLUSTER).document is None
    assert desk.store.settings(CLUSTER) is None
    desk.written.write(CLUSTER, DOCUMENT, None)
    assert zone(desk) == "us-central2-b"
    assert desk.store.clusters() == (CLUSTER,)


def test_it_is_replaced_as_a_whole(desk: Desk) -> None:
    desk.written.write(CLUSTER, DOCUMENT, None)
    desk.written.write(CLUSTER, OTHER, desk.written.read(CLUSTER).revision)
    written = desk.written.read(CLUSTER)
    assert (written.document, written.accepted) == (OTHER, OTHER)
    assert zone(desk) is None


def test_whoever_comes_second_is_told_so(desk: Desk) -> None:
    desk.written.write(CLUSTER, DOCUMENT, None)
    with pytest.raises(StaleRecord):
        desk.written.write(CLUSTER, OTHER, None)
    first = desk.written.read(CLUSTER).revision
    desk.written.write(CLUSTER, OTHER, first)
    with pytest.raises(StaleRecord):
        desk.written.write(CLUSTER, DOCUMENT, first)
    assert desk.written.read(CLUSTER).document == OTHER


def test_an_edit_in_the_console_is_seen_beside_what_was_accepted(desk: Desk) -> None:
    desk.written.write(CLUSTER, DOCUMENT, None)
    desk.console.put_document(settings_key(CLUSTER), {**DOCUMENT, "zone": "us-central2-c"})
    written = desk.written.read(CLUSTER)
    assert (written.document, written.accepted) == ({**DOCUMENT, "zone": "us-central2-c"}, DOCUMENT)
    assert zone(desk) == "us-central2-c"


def test_while_an_edit_makes_no_sense_the_last_that_did_holds(desk: Desk) -> None:
    desk.written.write(CLUSTER, DOCUMENT, None)
    desk.console.put_document(settings_key(CLUSTER), {**DOCUMENT, "zone": "somewhere"})
    assert zone(desk) == "us-central2-b"


def test_without_such_a_one_it_says_what_is_wrong(desk: Desk) -> None:
    broken: dict[str, Any] = {**encode_settings(settings()), "zone": "somewhere"}
    desk.console.put_document(settings_key(CLUSTER), broken)
    with pytest.raises(Permanent, match="zone cannot be 'somewhere'"):
        desk.store.settings(CLUSTER)


def test_a_pause_is_seen_until_it_ends_and_outlives_new_settings(desk: Desk) -> None:
    desk.written.write(CLUSTER, DOCUMENT, None)
    desk.written.pause(CLUSTER, "upgrade until noon.")
    desk.written.write(CLUSTER, OTHER, desk.written.read(CLUSTER).revision)
    known = desk.store.settings(CLUSTER)
    assert known is not None
    assert known.paused == desk.written.paused(CLUSTER) == "upgrade until noon."
    desk.written.resume(CLUSTER)
    known = desk.store.settings(CLUSTER)
    assert known is not None
    assert known.paused is desk.written.paused(CLUSTER) is None
    desk.written.resume(CLUSTER)
