"""Since when a slice is paid for without use."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from tests.builders import MINUTE, NOW, a_record, unclaimed, with_fields
from tpu_slices.domain.model.observations import Cause
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.records.returning import Returning
from tpu_slices.domain.records.slices import Desire, SliceRecord
from tpu_slices.domain.records.spending import paid_since

BOUGHT, MISSING, WAITED, UNREAD = (NOW - minutes * MINUTE for minutes in (70, 40, 200, 90))
VAIN = {Reason.HOSTS_NOT_USABLE: 2}
BOUGHT_ALONE = {"create_requested_at": BOUGHT}
STANDS = {**BOUGHT_ALONE, "hosts_awaited_since": MISSING}
WAITS = {"waits_since": WAITED}
OVER = Returning(cause=Cause.UPGRADE, since=WAITED, counts_from=WAITED, over_at=NOW - 5 * MINUTE)


@pytest.mark.parametrize(
    ("reason", "fields", "since"),
    [
        pytest.param(Reason.CREATING, BOUGHT_ALONE, BOUGHT, id="its creation lasts"),
        pytest.param(Reason.HOSTS_JOINING, STANDS, MISSING, id="its hosts are missing"),
        pytest.param(Reason.HOSTS_LOST, STANDS, MISSING, id="its hosts are lost"),
        pytest.param(Reason.HOSTS_LOST, {**STANDS, "returning": OVER}, NOW - 5 * MINUTE, id="they did not come back"),
        pytest.param(Reason.GKE_UPGRADES, STANDS, None, id="its hosts come back"),
        pytest.param(Reason.AWAITING_FLEX_START, {**BOUGHT_ALONE, **WAITS}, None, id="it waits for flex-start"),
        pytest.param(Reason.AWAITING_CAPACITY, {**BOUGHT_ALONE, **WAITS}, None, id="it waits for capacity"),
        pytest.param(Reason.USED_BY_OTHERS, STANDS, None, id="somebody uses its hosts"),
        pytest.param(Reason.STOCKOUT, {**WAITS, "setbacks": {Reason.STOCKOUT: 9}}, None, id="out of stock"),
        pytest.param(Reason.HOSTS_NOT_USABLE, {**WAITS, "setbacks": VAIN}, WAITED, id="bought twice in vain"),
        pytest.param(
            Reason.STOCKOUT, {**WAITS, "setbacks": {**VAIN, Reason.STOCKOUT: 1}}, WAITED, id="and now out of stock"
        ),
        pytest.param(Reason.AWAITING_TURN, {**WAITS, "setbacks": VAIN}, WAITED, id="and in line again"),
        pytest.param(Reason.CREATING, {**BOUGHT_ALONE, **WAITS, "setbacks": VAIN}, WAITED, id="and a third time"),
        pytest.param(
            Reason.HOSTS_NOT_USABLE, {**WAITS, "setbacks": {Reason.HOSTS_NOT_USABLE: 1}}, None, id="once in vain"
        ),
        pytest.param(Reason.DEMAND_STALE, {**WAITS, "setbacks": VAIN}, None, id="nobody waits for it any more"),
        pytest.param(Reason.CHIP_LIMIT_REACHED, {**WAITS, "setbacks": VAIN}, None, id="it is not bought any more"),
        pytest.param(Reason.READY, BOUGHT_ALONE, None, id="it serves"),
        pytest.param(Reason.READY, {**BOUGHT_ALONE, "earlier": (1,)}, None, id="it serves, and one that it had stays"),
        pytest.param(Reason.PODS_NOT_RUNNING, BOUGHT_ALONE, NOW, id="its pods do not run"),
        pytest.param(Reason.IDLE, BOUGHT_ALONE, NOW, id="nobody uses it"),
        pytest.param(Reason.READY, {"unreadable_since": MISSING}, MISSING, id="its pool cannot be read"),
        pytest.param(Reason.CREATING, {**BOUGHT_ALONE, "unreadable_since": UNREAD}, UNREAD, id="the earliest counts"),
    ],
)  # fmt: skip
def test_a_slice_that_is_needed(reason: Reason, fields: dict[str, Any], since: datetime | None) -> None:
    assert paid_since(a_record(phase=reason.phase, reason=reason, **fields)) == since


def test_one_that_cannot_be_read_counts_as_what_it_was() -> None:
    lost = a_record(phase=Phase.READY, **STANDS).transitioned(MISSING, Reason.HOSTS_LOST, "")
    assert paid_since(lost.transitioned(NOW, Reason.POOL_UNREADABLE, "503")) == MISSING


LOST = a_record(setbacks=VAIN, hosts_awaited_since=WAITED, **BOUGHT_ALONE).transitioned(WAITED, Reason.HOSTS_LOST, "")
RELEASED = with_fields(LOST, phase=Phase.RELEASING, **WAITS)


@pytest.mark.parametrize(
    "record",
    [replace(RELEASED, desire=Desire.ABSENT), replace(RELEASED, let_go="nobody used it"), unclaimed(RELEASED)],
    ids=["it is not needed", "it goes", "no claim has it"],
)
@pytest.mark.parametrize(
    ("reason", "unread", "since"),
    [
        pytest.param(Reason.DELETION_REFUSED, None, None, id="counted as a release"),
        pytest.param(Reason.POOL_UNREADABLE, UNREAD, UNREAD, id="it cannot be read"),
    ],
)
def test_a_slice_that_is_released(
    record: SliceRecord, reason: Reason, unread: datetime | None, since: datetime | None
) -> None:
    assert paid_since(with_fields(record, reason=reason, unreadable_since=unread)) == since
