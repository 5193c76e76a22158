"""What a simulation does not decode is what would be decoded, and what it decodes has to be what was written."""

from __future__ import annotations

import pytest

from tests.builders import CLUSTER, a_record
from tests.simulation.drawn import story_of
from tests.simulation.played import Watched
from tpu_slices.domain.model.slices import SliceId
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.ports.store import Change, Stored
from tpu_slices_simulator.fakes.documents import Misread
from tpu_slices_simulator.fakes.store import FakeStore

NEGATIVE = a_record(failures=-1)
"""A record that no reader accepts."""


def read(store: FakeStore, id_: SliceId) -> Stored[SliceRecord] | None:
    return store.slices(CLUSTER, [id_]).get(id_)


def test_a_sample_that_cannot_be_read_ends_the_simulation() -> None:
    store = FakeStore(read_every=1_000)
    store.commit(Change(None, NEGATIVE))
    assert read(store, NEGATIVE.id) is not None
    every_second = FakeStore(read_every=2)
    every_second.commit(Change(None, a_record()))
    every_second.commit(Change(read(every_second, NEGATIVE.id), NEGATIVE))
    with pytest.raises(Misread, match="failures"):
        read(every_second, NEGATIVE.id)


def test_what_somebody_edited_is_decoded_whatever_the_sample() -> None:
    store, record = FakeStore(read_every=1_000), a_record()
    store.commit(Change(None, record))
    store.edit_slice(CLUSTER, record.id, note="mind the gap")
    edited = read(store, record.id)
    assert edited is not None
    assert edited.value.note == "mind the gap"
    store.edit_slice(CLUSTER, record.id, schema=99)
    assert record.id in store.slices(CLUSTER, [record.id]).unreadable


def test_a_commit_on_an_edited_record_keeps_the_edit() -> None:
    store, record = FakeStore(read_every=1_000), a_record()
    store.commit(Change(None, record))
    store.edit_slice(CLUSTER, record.id, note="mind the gap")
    edited = read(store, record.id)
    assert edited is not None
    store.commit(Change(edited, edited.value.with_claim(failures=3)))
    after = read(store, record.id)
    assert after is not None
    assert (after.value.note, after.value.claim.failures) == ("mind the gap", 3)


@pytest.mark.slow
def test_a_story_is_the_same_whatever_the_sample() -> None:
    def commits(read_every: int) -> list[tuple[Change, ...]]:
        simulation = Watched(story_of(3))
        simulation.store.read_every = read_every
        simulation.play()
        return [
            tuple(Change(None, change.after) for change in changes if change.after)
            for changes in simulation.store.commits
        ]

    assert commits(1) == commits(2) == commits(1_000)
