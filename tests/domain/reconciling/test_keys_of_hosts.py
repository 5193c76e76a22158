"""Hosts that carry another key than that of the claim that has their slice: what is asked of the relay, and when."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.builders import MINUTE, NOW, a_jobset, a_spec, asked_to_close, asked_to_open, heard, settings, some_hosts
from tests.domain.cases import GUEST, GUEST_LEFT, HOUR, LEFT, OURS, OWN, in_use, ready, seen, with_hosts
from tests.domain.deleting import GRANTED, followed
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.hosts import HostKey
from tpu_slices.domain.model.observations import Creating, PoolSeen
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.decisions import CloseHosts, Decision, OpenHosts
from tpu_slices.domain.reconciling.inventory import Records, check_inventory
from tpu_slices.domain.records.hosts import Hosts
from tpu_slices.domain.records.slices import SliceRecord

KEY, OTHER = "u-1.j0", "u-2.j0"
RIGHT, WRONG = (HostKey(KEY, 4),), (HostKey(OTHER, 4),)
LIMITS = Limits()


def keyed(*keys: HostKey, **changes: Any) -> Hosts:
    return some_hosts(keys=keys, **changes)


def having(hosts: Hosts, **changes: Any) -> SliceRecord:
    """Return a slice whose claim has a key."""
    return ready(hosts=hosts, spec=a_spec(key=KEY), demand_confirmed_at=NOW, **changes)


def decided(record: SliceRecord, *, after: timedelta = timedelta()) -> Decision:
    known = heard()
    known = replace(known, relay=replace(known.relay, last_at=NOW + after))
    return decide(record, seen(OURS), NOW + after, settings(), known)


@pytest.mark.parametrize(
    "hosts",
    [
        pytest.param(keyed(HostKey("", 4), occupants=(OWN,)), id="none, as of an adopted pool"),
        pytest.param(keyed(HostKey(KEY, 3), HostKey(OTHER, 1)), id="a host that came back with its pool's"),
        pytest.param(keyed(*WRONG, occupants=(OWN,)), id="another's, and its Job is there"),
    ],
)
def test_hosts_get_the_key_of_the_claim_that_has_them(hosts: Hosts) -> None:
    decision = decided(having(hosts))
    assert decision.actions == (OpenHosts(1, 1, KEY),)
    assert decision.record.current.hosts.asked == asked_to_open(NOW, key=KEY)


def test_hosts_that_nobody_of_the_claim_uses_are_closed_before_they_get_its_key() -> None:
    """They were another's, whose pods may be there: the relay is asked, as before a deletion."""
    asked = decided(having(keyed(*WRONG)))
    assert (asked.actions, asked.reason) == ((CloseHosts(1, 1),), Reason.HOSTS_JOINING)
    assert "which were another's, become its own: its hosts are being closed" in asked.message
    assert asked.record.next_reconcile_at == NOW + LIMITS.requeue_after
    assert decided(asked.record).actions == ()
    proven = with_hosts(asked.record, usable=0, closed=4, answered=1, vacant_since=NOW - HOUR)
    assert decided(proven).actions == (OpenHosts(1, 2, KEY),)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        pytest.param({"departures": GUEST_LEFT}, "may restart there", id="another may come back"),
        pytest.param({"closed": 4, "usable": 0}, "are being closed", id="it was not answered"),
    ],
)
def test_hosts_that_somebody_else_may_use_do_not_get_the_key(changes: dict[str, Any], told: str) -> None:
    hosts = keyed(*WRONG, asked=asked_to_close(NOW - MINUTE / 2), vacant_since=NOW - HOUR)
    decision = decided(having(replace(hosts, **changes)))
    assert [each for each in decision.actions if isinstance(each, OpenHosts)] == []
    assert (decision.reason, told in decision.message) == (Reason.HOSTS_JOINING, True), decision.message


def test_pods_of_the_claims_own_job_that_may_come_back_keep_no_host_from_its_key() -> None:
    closed = keyed(*WRONG, usable=0, closed=4, departures=LEFT, asked=asked_to_close(), answered=1)
    assert decided(having(closed)).actions == (OpenHosts(1, 2, KEY),)


@pytest.mark.parametrize(
    "hosts",
    [
        pytest.param(keyed(*RIGHT), id="it is theirs"),
        pytest.param(keyed(), id="it is not known which they carry"),
    ],
)
def test_nothing_is_asked_of_hosts_whose_key_is_not_known_to_be_another(hosts: Hosts) -> None:
    assert decided(having(hosts)).actions == ()


def test_a_claim_whose_pods_have_no_key_takes_hosts_as_they_are() -> None:
    unkeyed = ready(hosts=keyed(*WRONG), spec=a_spec(key=""), demand_confirmed_at=NOW)
    assert decided(unkeyed).actions == ()


def test_no_key_is_asked_for_the_hosts_of_a_node_group() -> None:
    record = having(keyed(*WRONG))
    declared = replace(record, owner=replace(record.owner, kind=OwnerKind.TPU_NODE_GROUP))
    assert declared.key == ""


def test_it_is_asked_again_after_a_while_and_not_before() -> None:
    asked = decided(having(keyed(*WRONG, occupants=(OWN,)))).record
    assert asked.next_reconcile_at is not None
    assert asked.next_reconcile_at <= NOW + LIMITS.resync_after
    assert decided(asked, after=LIMITS.requeue_after / 2).actions == ()
    again = decided(asked, after=LIMITS.resync_after)
    assert again.actions == (OpenHosts(1, 2, KEY),)


def test_a_slice_whose_hosts_carry_their_key_is_not_looked_at_for_it() -> None:
    answered = with_hosts(decided(having(keyed(*WRONG, occupants=(OWN,)))).record, keys=RIGHT, answered=1)
    assert decided(answered, after=MINUTE).record.next_reconcile_at is None


def test_closed_hosts_are_opened_with_the_key() -> None:
    closed = keyed(*RIGHT, usable=0, closed=4, asked=asked_to_close(number=3), answered=3)
    assert decided(having(closed)).actions == (OpenHosts(1, 4, KEY),)


def test_a_key_that_was_asked_for_another_claim_is_asked_anew_at_once() -> None:
    hosts = keyed(*WRONG, occupants=(OWN,), asked=asked_to_open(NOW, key=OTHER), answered=1)
    assert decided(having(hosts)).actions == (OpenHosts(1, 2, KEY),)


def test_hosts_of_a_slice_that_no_claim_has_are_opened_with_its_own_name_which_no_pod_has() -> None:
    closed = some_hosts(occupants=(GUEST,), closed=4, keys=WRONG, asked=asked_to_close(number=3))
    record = in_use(GUEST, hosts=closed)
    assert record.key == record.id
    assert followed(record, known=GRANTED).actions == (OpenHosts(1, 4, record.id),)


def test_no_key_is_asked_for_while_the_pool_is_created_without_it() -> None:
    made = having(keyed(HostKey(KEY, 2), usable=2, joined=2))
    assert decide(made, seen(Creating()), NOW, settings(), heard()).actions == ()


def test_the_inventory_check_finds_settled_slices_whose_hosts_carry_another_key() -> None:
    record = having(keyed(*WRONG, occupants=(OWN,)), create_requested_at=NOW, next_reconcile_at=None)
    own = a_jobset()
    records = Records(workloads={own.owner.uid: own}, slices={record.id: record})
    pool = PoolSeen(name=record.pool, slice_id=record.maker, attempt=1, job=record.job)
    mended = check_inventory(records, [pool], NOW).mended
    assert [after.next_reconcile_at for _, after in mended] == [NOW]
