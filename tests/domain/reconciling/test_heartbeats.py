"""What a heartbeat says of the relay, of the JobSets and of the hosts on record."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from tests.builders import CLUSTER, MINUTE, NOW, a_heartbeat, a_list, compared
from tpu_slices.domain.model.facts import Family, Heartbeat
from tpu_slices.domain.reconciling.inventory import to_be_listed
from tpu_slices.domain.records.heartbeats import SILENT_AFTER, RelayHeartbeat, silent_since, with_heartbeat, with_listed

NONE = dict.fromkeys(Family, 0)
BEAT = Heartbeat(count=1, digests=NONE)


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


def test_the_first_heartbeat_of_a_relay_and_that_after_a_silence_make_the_inventory_check_due() -> None:
    due = NOW + 9 * MINUTE
    known = a_heartbeat(next_inventory_check_at=due)
    silent = replace(known, received_at=NOW - 4 * MINUTE)
    assert with_heartbeat(known, BEAT, NONE, NOW).next_inventory_check_at == due
    assert with_heartbeat(known, replace(BEAT, first=True), NONE, NOW).next_inventory_check_at is None
    assert with_heartbeat(silent, BEAT, NONE, NOW).next_inventory_check_at is None


@pytest.mark.parametrize("family", Family)
@pytest.mark.parametrize(("recorded", "confirmed_at"), [(7, NOW), (8, NOW - MINUTE)])
def test_a_heartbeat_confirms_a_family_on_record_if_the_digests_agree(
    family: Family, recorded: int, confirmed_at: datetime
) -> None:
    known = a_heartbeat(**compared(family, NOW - MINUTE))
    after = with_heartbeat(known, replace(BEAT, digests={family: 7}), {**NONE, family: recorded}, NOW)
    assert {each: after.compared(each).confirmed_at for each in Family} == {
        **dict.fromkeys(Family),
        family: confirmed_at,
    }


def test_a_list_confirms_a_family_once_all_of_its_parts_agreed() -> None:
    known = a_heartbeat(**compared(Family.HOSTS, NOW))
    first, second = (a_list(Family.HOSTS, {}, part=part, parts=2) for part in range(2))
    begun = with_listed(known, first, NOW + MINUTE)
    done = with_listed(begun, second, NOW + 2 * MINUTE)
    later = with_heartbeat(done, BEAT, NONE, NOW + 3 * MINUTE)
    times = [each.compared(Family.HOSTS).confirmed_at for each in (begun, done, later)]
    assert times == [NOW, NOW + MINUTE, NOW + 3 * MINUTE]
    never = with_listed(a_heartbeat(), first, NOW).compared(Family.HOSTS).confirmed_at
    assert never is not None
    assert never < NOW - 1_000 * MINUTE


def test_parts_of_two_lists_confirm_nothing_together() -> None:
    known = a_heartbeat(**compared(Family.HOSTS, NOW))
    first = with_listed(known, a_list(Family.HOSTS, {}, parts=2), NOW + MINUTE)
    other = a_list(Family.HOSTS, {}, part=1, parts=2, asked_at=NOW + MINUTE)
    assert with_listed(first, other, NOW + 2 * MINUTE).compared(Family.HOSTS).confirmed_at == NOW


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
    after = with_heartbeat(known, BEAT, NONE, NOW)
    assert after.uninterrupted_since == since


@pytest.mark.parametrize("family", Family)
@pytest.mark.parametrize(
    ("confirmed", "asked", "changes", "expected"),
    [
        pytest.param(2, None, {}, False, id="they agreed lately"),
        pytest.param(4, None, {}, True, id="they differ"),
        pytest.param(None, None, {"uninterrupted_since": NOW - 4 * MINUTE}, True, id="they never agreed"),
        pytest.param(None, None, {"uninterrupted_since": NOW - 3 * MINUTE}, False, id="heard again since moments ago"),
        pytest.param(9, 4, {}, True, id="asked"),
        pytest.param(9, 1, {}, False, id="asked moments ago"),
        pytest.param(9, -20, {}, True, id="asked by a clock that is ahead"),
        pytest.param(9, None, {"received_at": NOW - 4 * MINUTE}, False, id="the relay is silent"),
    ],
)
def test_the_relay_is_asked_to_list_what_differs_for_a_while(
    family: Family, confirmed: int | None, asked: int | None, changes: dict[str, object], *, expected: bool
) -> None:
    times = [None if minutes is None else NOW - minutes * MINUTE for minutes in (confirmed, asked)]
    known = a_heartbeat(**{**compared(family, *times), **changes})
    assert (family in to_be_listed(known, NOW)) is expected


def test_a_heartbeat_that_was_published_before_the_last_one_changes_nothing() -> None:
    known = RelayHeartbeat(cluster=CLUSTER, received_at=NOW, uninterrupted_since=NOW - 60 * MINUTE, count=2)
    beat = replace(BEAT, first=True)
    assert with_heartbeat(known, beat, NONE, NOW - timedelta(seconds=1)) == known
    assert with_heartbeat(known, beat, NONE, NOW).count == 1
