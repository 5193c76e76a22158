"""What `slices list` and `slices explain` say of hosts and pools: those that there are."""

from __future__ import annotations

import pytest

from tests.builders import a_record, a_spec, an_occupant, some_hosts
from tests.cli.stage import Stage, out_of_stock, serving
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.ports.store import Change

OCCUPIED = some_hosts(usable=0, closed=4, sound=4, occupants=(an_occupant("gemma"),))
BOUGHT = {"create_requested_at": a_record().created_at, "ordered": a_spec()}


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(
            a_record(phase=Phase.RELEASING, reason=Reason.OCCUPIED, hosts=OCCUPIED, **BOUGHT), id="closed under a Job"
        ),
        pytest.param(
            a_record(spec=None, phase=Phase.REFUSED, reason=Reason.NOT_ALLOWED, hosts=some_hosts(), **BOUGHT),
            id="its request is refused by now",
        ),
        pytest.param(
            a_record(phase=Phase.READY, reason=Reason.SPEC_DRIFTED, spec=a_spec(hosts=8), hosts=some_hosts(), **BOUGHT),
            id="its request has more hosts by now",
        ),
    ],
)  # fmt: skip
def test_the_hosts_of_a_slice_are_those_that_there_are(stage: Stage, record: SliceRecord) -> None:
    stage.world.store.commit(Change(None, record))
    (row,) = stage.output_of("list").splitlines()[1:]
    assert "4/4" in row.split()


def test_a_pool_that_is_gone_is_left_out(stage: Stage) -> None:
    jobset = serving(stage)
    record = stage.world.record(jobset)
    stage.world.ends(jobset)
    stage.world.settle(minutes=10)
    text = stage.output_of("explain", record.maker)
    assert "GONE for " in text
    assert ("does not exist" in text, "attempt" in text, "\nPool " in text) == (False, False, False)


def test_a_pool_that_is_not_requested_yet_is_left_out(stage: Stage) -> None:
    out_of_stock(stage)
    text = stage.output_of("explain", "research/gemma-slice-0")
    assert ("does not exist" in text, "\nPool " in text) == (False, False)
