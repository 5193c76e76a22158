"""What a heartbeat says of the relay, of the JobSets and of the hosts on record."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from tests.builders import CLUSTER, MINUTE, NOW, a_heartbeat
from tpu_slices.domain.model.facts import Heartbeat
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.domain.reconciling.inventory import hosts_to_be_listed, silent_since, with_heartbeat
from tpu_slices.domain.records.heartbeats import SILENT_AFTER, RelayHeartbeat
from tpu_slices.domain.records.standings import digest_of

ONE, OTHER = WorkloadUid("uid-one"), WorkloadUid("uid-other")


@pytest.mark.parametrize(
    ("heartbeat", "since"),
    [
        pytest.param(None, None, id="no sweep yet"),
        pytest.param(RelayHeartbeat(cluster=CLUSTER), None, id="not expected yet"),
        pytest.param(a_heartbeat(received_at=NOW - SILENT_AFTER), None, id="heard"),
        pytest.param(a_heartbeat(received_at=NOW - 4 * MINUTE), NOW - 4 * MINUTE, id="silent"),
        pytest.param(a_heartbeat(received_at=None, expected_since=NOW - 3 * MINUTE), None, id="expected"),
        pytest.param(a_heartbeat(received_at=None, expected_since=NOW - 9 * MINUTE), NOW - 9 * MINUTE, id="never"),
        pytest.param(
            a_heartbeat(received_at=NOW - MINUTE, expected_since=NOW - 9 * MINUTE), None, id="heard since it started"
        ),
    ],
)
def test_a_relay_is_silent_without_a_heartbeat_for_3_minutes(
    heartbeat: RelayHeartbeat | None, since: datetime | None
) -> None:
    assert silent_since(heartbeat, NOW) == since


def test_equal_sets_have_equal_digests_whatever_their_order() -> None:
    assert digest_of({ONE: "a", OTHER: "b"}) == digest_of({OTHER: "b", ONE: "a"})
    assert len({digest_of({ONE: "a"}), digest_of({OTHER: "a"}), digest_of({ONE: "b"})}) == 3


def test_only_the_first_heartbeat_of_a_relay_makes_the_inventory_check_due() -> None:
    known = a_heartbeat(next_inventory_check_at=NOW + 9 * MINUTE)
    beat = Heartbeat(count=1, digest="d", hosts_digest=0)
    assert with_heartbeat(known, beat, 0, NOW).next_inventory_check_at == NOW + 9 * MINUTE
    assert with_heartbeat(known, replace(beat, first=True), 0, NOW).next_inventory_check_at is None


@pytest.mark.parametrize(("recorded", "confirmed_at"), [(7, NOW), (8, NOW - MINUTE)])
def test_a_heartbeat_confirms_the_hosts_on_record_if_their_digests_agree(recorded: int, confirmed_at: datetime) -> None:
    known = a_heartbeat(hosts_confirmed_at=NOW - MINUTE)
    after = with_heartbeat(known, Heartbeat(count=1, digest="d", hosts_digest=7), recorded, NOW)
    assert after.hosts_confirmed_at == confirmed_at


@pytest.mark.parametrize(
    ("last", "since"),
    [
        pytest.param(NOW - SILENT_AFTER, NOW - 60 * MINUTE, id="without a gap"),
        pytest.param(NOW - 4 * MINUTE, NOW, id="after a silence"),
        pytest.param(None, NOW, id="the first heartbeat"),
    ],
)
def test_a_silence_is_remembered(last: datetime | None, since: datetime) -> None:
    known = a_heartbeat(received_at=last, uninterrupted_since=NOW - 60 * MINUTE)
    after = with_heartbeat(known, Heartbeat(count=1, digest="d", hosts_digest=0), 0, NOW)
    assert after.uninterrupted_since == since


@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        pytest.param({"hosts_confirmed_at": NOW - 2 * MINUTE}, False, id="they agreed lately"),
        pytest.param({"hosts_confirmed_at": NOW - 4 * MINUTE}, True, id="they differ"),
        pytest.param({"uninterrupted_since": NOW - 4 * MINUTE}, True, id="they never agreed"),
        pytest.param({"uninterrupted_since": NOW - 3 * MINUTE}, False, id="the relay is heard again since moments ago"),
        pytest.param({"hosts_confirmed_at": NOW - 9 * MINUTE, "hosts_asked_at": NOW - 4 * MINUTE}, True, id="asked"),
        pytest.param(
            {"hosts_confirmed_at": NOW - 9 * MINUTE, "hosts_asked_at": NOW - MINUTE}, False, id="asked moments ago"
        ),
        pytest.param(
            {"hosts_confirmed_at": NOW - 9 * MINUTE, "received_at": NOW - 4 * MINUTE}, False, id="the relay is silent"
        ),
    ],
)
def test_the_relay_is_asked_for_all_hosts_if_they_differ_for_a_while(
    changes: dict[str, object], *, asked: bool
) -> None:
    assert hosts_to_be_listed(a_heartbeat(**changes), NOW) is asked


def test_a_heartbeat_that_was_published_before_the_last_one_changes_nothing() -> None:
    known = RelayHeartbeat(cluster=CLUSTER, received_at=NOW, uninterrupted_since=NOW - 60 * MINUTE, count=2, digest="d")
    beat = Heartbeat(count=1, digest="e", hosts_digest=5, first=True)
    assert with_heartbeat(known, beat, 5, NOW - timedelta(seconds=1)) == known
    assert with_heartbeat(known, beat, 5, NOW).count == 1
