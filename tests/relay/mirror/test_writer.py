"""The relay's mirror: what is told becomes objects, as it was told last, and nothing is written that is so already."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from relay.mirror.calls import NotInstalled
from relay.mirror.objects import DIGEST, OBSERVED, UID, object_of
from relay.mirror.writer import LISTED_EVERY, MirrorWriter
from tests.builders import CLUSTER, MINUTE, NOW, a_jobset, a_record
from tests.conftest import Lines
from tests.relay.mirror.objects import FakeObjects
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.records.mirror import Mirrored, MirrorKind, mirror_digest, mirrored
from tpu_slices.domain.reporting.reports import report
from tpu_slices.domain.reporting.waits import QueueState
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.publisher import AnyMirror, MirrorChanged, MirrorConfirmed, MirrorListed

SECOND = timedelta(seconds=1)


@dataclass
class Setup:
    objects: FakeObjects = field(default_factory=FakeObjects)
    now: datetime = NOW

    def __post_init__(self) -> None:
        self.begins()

    def begins(self) -> None:
        self.writer = MirrorWriter(CLUSTER, self.objects, lambda: self.now)
        self.turns()

    def turns(self) -> None:
        while self.writer.turn():
            continue

    def hears(self, *told: AnyMirror) -> None:
        for each in told:
            self.writer.put(each)
        self.turns()

    def status(self, name: str) -> dict[str, Any]:
        ((_, obj),) = [(key, obj) for key, obj in self.objects.there.items() if key[1] == name]
        status: dict[str, Any] = obj["status"]
        return status


@pytest.fixture
def setup() -> Setup:
    return Setup()


SLICE = mirrored(a_record())
GONE = replace(SLICE, digest=0, slice=None)
LATER = mirrored(a_record().transitioned(NOW, Reason.CREATING, "It is being created."))


def a_workload(uid: str = "uid-llama") -> Mirrored:
    jobset = a_jobset()
    told = mirrored(replace(jobset, report=report(jobset, [a_record()], QueueState(), NOW)))
    return replace(told, uid=uid)


def changed(*objects: Mirrored, after: timedelta = timedelta()) -> MirrorChanged:
    return MirrorChanged(objects=objects, at=NOW + after)


def test_what_changes_is_shown_with_the_time_as_of_which_it_is_known(setup: Setup) -> None:
    setup.hears(changed(replace(SLICE, price="43.20")))
    status = setup.status(SLICE.name)
    assert (status["phase"], status["hosts"], status["usdPerHour"]) == ("QUEUED", "0/4", "43.20")
    assert status["observedAt"] == f"{NOW:%Y-%m-%dT%H:%M:%SZ}"


def test_a_workloads_object_ends_with_its_workload_and_a_slices_does_not() -> None:
    (reference,) = object_of(a_workload(), NOW)["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["uid"]) == ("JobSet", "uid-llama")
    assert "ownerReferences" not in object_of(SLICE, NOW)["metadata"]


def test_nothing_is_written_that_is_so_already_whoever_says_it_again(setup: Setup) -> None:
    setup.hears(changed(SLICE), changed(SLICE, after=SECOND))
    setup.begins()
    setup.hears(changed(SLICE, after=MINUTE), MirrorListed(objects=(SLICE,), after=None, up_to=None, at=NOW + MINUTE))
    assert setup.objects.writes == [SLICE.name]


def test_of_several_changes_that_wait_the_last_is_written(setup: Setup) -> None:
    for number in range(100):
        setup.writer.put(changed(SLICE, after=number * SECOND))
        setup.writer.put(changed(LATER, after=number * SECOND))
    setup.turns()
    assert setup.objects.writes == [SLICE.name]
    assert setup.status(SLICE.name)["reason"] == "Creating"


@pytest.mark.parametrize("restarted", [False, True])
def test_what_comes_late_overwrites_nothing_newer(setup: Setup, restarted: bool) -> None:
    setup.hears(changed(LATER, after=MINUTE))
    if restarted:
        setup.begins()
    setup.hears(changed(SLICE), changed(GONE))
    assert setup.status(SLICE.name)["reason"] == "Creating"


def test_the_object_of_a_slice_that_is_gone_is_deleted(setup: Setup) -> None:
    setup.hears(changed(SLICE), changed(GONE, after=SECOND))
    assert not setup.objects.there
    assert setup.writer.digest == 0


def test_the_end_of_a_workload_does_not_take_the_object_of_a_later_one_of_its_name(setup: Setup) -> None:
    ended = replace(a_workload(), digest=0, workload=None)
    setup.hears(changed(a_workload(uid="later"), after=SECOND), changed(ended, after=MINUTE))
    assert [name for _, name in setup.objects.there] == ["jobset-llama"]


def test_a_list_takes_away_what_it_lacks_in_its_range_and_nothing_else(setup: Setup) -> None:
    names = [f"tpu-llama-{number}-aaaaaaaaaaaaa-1" for number in range(4)]
    slices = [replace(SLICE, name=name) for name in names]
    setup.hears(changed(*slices, a_workload()))
    part = MirrorListed(objects=(slices[1],), after=slices[0].key, up_to=slices[2].key, at=NOW + MINUTE)
    setup.hears(part)
    assert sorted(name for _, name in setup.objects.there) == ["jobset-llama", names[0], names[1], names[3]]


def test_a_list_takes_away_nothing_that_was_told_since_it_was_read(setup: Setup) -> None:
    setup.hears(changed(SLICE, after=MINUTE), MirrorListed(objects=(), after=None, up_to=None, at=NOW))
    assert [name for _, name in setup.objects.there] == [SLICE.name]


def test_the_digest_is_that_of_what_is_there(setup: Setup) -> None:
    setup.hears(changed(SLICE, a_workload()))
    expected = SLICE.digest + a_workload().digest
    assert setup.writer.digest == expected
    setup.begins()
    assert setup.writer.digest == expected == mirror_digest(a_record()) + a_workload().digest


def test_an_object_that_somebody_deletes_is_missed_in_the_digest_within_ten_minutes(setup: Setup) -> None:
    setup.hears(changed(SLICE))
    setup.objects.there.clear()
    setup.now += LISTED_EVERY
    setup.turns()
    assert setup.writer.digest == 0
    setup.hears(changed(SLICE, after=SECOND))
    assert setup.writer.digest == SLICE.digest


def test_an_object_whose_digest_somebody_edits_is_written_again(setup: Setup) -> None:
    setup.hears(changed(SLICE))
    setup.objects.there[MirrorKind.SLICE, SLICE.name]["metadata"]["annotations"].clear()
    setup.begins()
    assert setup.writer.digest != SLICE.digest
    setup.hears(changed(SLICE, after=SECOND))
    assert setup.writer.digest == SLICE.digest


@pytest.mark.parametrize("digest", ["-5", "9" * 30])
def test_no_digest_that_somebody_writes_can_make_a_heartbeat_invalid(setup: Setup, digest: str) -> None:
    setup.hears(changed(SLICE))
    setup.objects.there[MirrorKind.SLICE, SLICE.name]["metadata"]["annotations"] |= {DIGEST: digest}
    setup.begins()
    assert setup.writer.digest == 1


@pytest.mark.parametrize("annotations", [{}, {DIGEST: "7", OBSERVED: "9999-01-01T00:00:00+00:00", UID: "uid"}])
def test_an_object_that_somebody_else_made_is_deleted_by_a_list(setup: Setup, annotations: dict[str, str]) -> None:
    setup.hears(changed(SLICE))
    setup.objects.there[MirrorKind.SLICE, SLICE.name]["metadata"]["annotations"] = annotations
    setup.begins()
    assert setup.writer.digest == 1
    setup.hears(MirrorListed(objects=(), after=None, up_to=None, at=NOW + SECOND))
    assert setup.objects.there == {}


def test_an_object_that_may_not_be_written_does_not_hold_up_the_others(setup: Setup) -> None:
    setup.objects.forbidden = SLICE.name
    setup.writer.put(changed(SLICE, a_workload()))
    with pytest.raises(Temporary):
        setup.writer.turn()
    assert setup.writer.turn()
    assert setup.objects.writes == ["jobset-llama"]
    with pytest.raises(Temporary):
        setup.writer.turn()
    setup.objects.forbidden = ""
    setup.turns()
    assert setup.objects.writes == ["jobset-llama", SLICE.name]


def test_what_cannot_be_written_now_is_written_later(setup: Setup) -> None:
    setup.objects.error = Temporary("away")
    setup.writer.put(changed(SLICE))
    with pytest.raises(Temporary):
        setup.writer.turn()
    setup.objects.error = None
    setup.turns()
    assert setup.objects.writes == [SLICE.name]


def test_what_the_api_server_refuses_holds_up_nothing_else(setup: Setup) -> None:
    setup.objects.error = Permanent("invalid")
    setup.writer.put(changed(SLICE))
    assert setup.writer.turn()
    setup.objects.error = None
    setup.hears(changed(a_workload()))
    assert setup.objects.writes == ["jobset-llama"]


def test_of_a_namespace_that_is_gone_nothing_is_tried_again_and_the_digest_does_not_differ(setup: Setup) -> None:
    setup.objects.namespace_is_gone = True
    setup.hears(changed(SLICE), changed(SLICE, after=SECOND))
    assert setup.objects.writes == [SLICE.name]
    assert setup.writer.digest == SLICE.digest


def test_where_the_kinds_are_not_installed_one_line_says_so_and_they_are_looked_for_again(
    setup: Setup, lines: Lines
) -> None:
    setup.objects.error = NotInstalled("tpuslices: 404")
    setup.begins()
    for _ in range(5):
        setup.now += LISTED_EVERY
        setup.hears(changed(SLICE))
    assert [line["severity"] for line in lines() if line["event"] == "mirror.off"] == ["WARNING"]
    assert setup.writer.digest is None
    setup.objects.error = None
    setup.now += LISTED_EVERY
    setup.turns()
    assert setup.writer.digest == 0


def test_that_all_is_right_is_shown_once_all_is_written(setup: Setup) -> None:
    setup.objects.error = Temporary("away")
    for told in (changed(SLICE), MirrorConfirmed(at=NOW)):
        setup.writer.put(told)
    with pytest.raises(Temporary):
        setup.writer.turn()
    assert not setup.objects.confirmed
    setup.objects.error = None
    setup.turns()
    assert setup.objects.confirmed == [
        {
            "apiVersion": "tpu-provisioner.cloud.google.com/v1alpha1",
            "kind": "TPUMirror",
            "metadata": {"name": "tpu-slice-provisioner"},
            "status": {"cluster": "demo", "confirmedAt": "2026-03-01T12:00:00Z"},
        }
    ]
