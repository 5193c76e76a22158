"""How every store of settings behaves towards the tools that write them and the functions that read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.builders import CLUSTER, a_heartbeat, a_job, a_jobset, a_record, a_slot, settings
from tests.contracts.stores import REAL, Console, FirestoreConsole
from tpu_slices.adapters.firestore import FirestoreStore
from tpu_slices.adapters.firestore_settings import FirestoreSettings
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.ports.errors import Permanent, StaleRecord
from tpu_slices.ports.settings_store import SettingsStore
from tpu_slices.ports.store import Change, SliceStore
from tpu_slices.wire.cluster_settings import encode_settings, settings_key
from tpu_slices_simulator.fakes.settings import FakeSettings
from tpu_slices_simulator.fakes.store import FakeStore

DOCUMENT = {"path": settings().path, "zone": "us-central2-b"}
OTHER = {"path": settings().path, "note": "for the launch"}


@dataclass(frozen=True, slots=True)
class Setup:
    written: SettingsStore
    store: SliceStore
    console: Console


@pytest.fixture(params=["fake", pytest.param("firestore", marks=REAL)])
def setup(request: pytest.FixtureRequest) -> Setup:
    if request.param == "fake":
        fake = FakeStore()
        return Setup(FakeSettings(fake), fake, fake)
    client = request.getfixturevalue("client")
    return Setup(FirestoreSettings(client), FirestoreStore(client), FirestoreConsole(client))


def zone(setup: Setup) -> str | None:
    known = setup.store.settings(CLUSTER)
    assert known is not None
    return known.zone


def test_the_first_settings_are_read_by_the_functions(setup: Setup) -> None:
    assert setup.written.read(CLUSTER).document is None
    assert setup.store.settings(CLUSTER) is None
    setup.written.write(CLUSTER, DOCUMENT, None)
    assert zone(setup) == "us-central2-b"
    assert setup.store.clusters() == (CLUSTER,)


def test_settings_are_replaced_as_a_whole(setup: Setup) -> None:
    setup.written.write(CLUSTER, DOCUMENT, None)
    setup.written.write(CLUSTER, OTHER, setup.written.read(CLUSTER).revision)
    written = setup.written.read(CLUSTER)
    assert (written.document, written.accepted) == (OTHER, OTHER)
    assert zone(setup) is None


def test_a_write_over_a_newer_revision_is_refused(setup: Setup) -> None:
    setup.written.write(CLUSTER, DOCUMENT, None)
    with pytest.raises(StaleRecord):
        setup.written.write(CLUSTER, OTHER, None)
    first = setup.written.read(CLUSTER).revision
    setup.written.write(CLUSTER, OTHER, first)
    with pytest.raises(StaleRecord):
        setup.written.write(CLUSTER, DOCUMENT, first)
    assert setup.written.read(CLUSTER).document == OTHER


def test_an_edit_in_the_console_is_seen_beside_the_accepted_settings(setup: Setup) -> None:
    setup.written.write(CLUSTER, DOCUMENT, None)
    setup.console.put_document(settings_key(CLUSTER), {**DOCUMENT, "zone": "us-central2-c"})
    written = setup.written.read(CLUSTER)
    assert (written.document, written.accepted) == ({**DOCUMENT, "zone": "us-central2-c"}, DOCUMENT)
    assert zone(setup) == "us-central2-c"


def test_accepted_settings_stay_in_force_while_an_edit_is_invalid(setup: Setup) -> None:
    setup.written.write(CLUSTER, DOCUMENT, None)
    setup.console.put_document(settings_key(CLUSTER), {**DOCUMENT, "zone": "somewhere"})
    assert zone(setup) == "us-central2-b"


def test_without_accepted_settings_an_invalid_edit_is_an_error_that_names_the_field(setup: Setup) -> None:
    broken: dict[str, Any] = {**encode_settings(settings()), "zone": "somewhere"}
    setup.console.put_document(settings_key(CLUSTER), broken)
    with pytest.raises(Permanent, match="zone: Invalid value: 'somewhere'"):
        setup.store.settings(CLUSTER)


def test_a_retirement_is_seen_in_place_of_a_pause_until_it_ends(setup: Setup) -> None:
    setup.written.write(CLUSTER, DOCUMENT, None)
    setup.written.pause(CLUSTER, "upgrade until noon.")
    setup.written.retire(CLUSTER, "moved to another.")
    known = setup.store.settings(CLUSTER)
    assert known is not None
    assert (known.paused, known.retired) == (None, "moved to another.")
    assert setup.written.paused(CLUSTER) == "moved to another."
    setup.written.resume(CLUSTER)
    known = setup.store.settings(CLUSTER)
    assert known is not None
    assert known.retired is None


def test_a_cluster_that_is_forgotten_leaves_no_document_and_others_theirs(setup: Setup) -> None:
    other = ClusterId(f"{CLUSTER}-2")
    for cluster in (CLUSTER, other):
        setup.written.write(cluster, DOCUMENT, None)
        setup.written.retire(cluster, "moved.")
        of_it = (
            a_record(job=a_job(cluster=cluster)),
            a_jobset(cluster=cluster),
            a_heartbeat(cluster=cluster),
            a_slot(cluster=cluster),
        )
        setup.store.commit(*(Change(None, record) for record in of_it))
    assert setup.written.forget(CLUSTER) == 7
    assert setup.written.forget(CLUSTER) == 0
    assert setup.store.settings(CLUSTER) is None
    assert [*setup.store.every_slice(CLUSTER)] == []
    assert [*setup.store.live_workloads(CLUSTER)] == []
    assert setup.store.heartbeat(CLUSTER) is None
    assert setup.store.slots(CLUSTER) == ()
    assert setup.store.settings(other) is not None
    assert len(list(setup.store.every_slice(other))) == 1
    assert setup.store.heartbeat(other) is not None


def test_a_pause_is_seen_until_it_ends_and_outlives_new_settings(setup: Setup) -> None:
    setup.written.write(CLUSTER, DOCUMENT, None)
    setup.written.pause(CLUSTER, "upgrade until noon.")
    setup.written.write(CLUSTER, OTHER, setup.written.read(CLUSTER).revision)
    known = setup.store.settings(CLUSTER)
    assert known is not None
    assert known.paused == setup.written.paused(CLUSTER) == "upgrade until noon."
    setup.written.resume(CLUSTER)
    known = setup.store.settings(CLUSTER)
    assert known is not None
    assert known.paused is setup.written.paused(CLUSTER) is None
    setup.written.resume(CLUSTER)
