"""A slice of a gang that stands is not let go before its Job has begun, as long as others of the gang run."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.builders import MINUTE, NOW, a_jobset, heard, settings, some_hosts
from tests.domain.cases import OURS, ready, seen
from tests.domain.gangs.test_deciding import a_gang
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.records.gangs import GangState


@pytest.mark.parametrize(
    ("runs", "vacant_for", "goes"),
    [
        pytest.param(True, None, False, id="its Job has not begun"),
        pytest.param(False, None, True, id="no Job runs"),
        pytest.param(True, timedelta(minutes=40), True, id="its Job left"),
    ],
)
def test_it_waits_for_its_job_while_others_run(runs: bool, vacant_for: timedelta | None, goes: bool) -> None:
    stands = a_gang(state=GangState.STANDS, state_since=NOW - 60 * MINUTE, ran=True, runs=runs)
    workload = a_jobset(demand={}, gangs={"all": stands})
    slice_ = ready(90 * MINUTE)
    if vacant_for is not None:
        slice_ = slice_.with_current(hosts=some_hosts(vacant_since=NOW - vacant_for))
    known = heard(workloads={workload.owner.uid: workload})
    assert decide(slice_, seen(OURS), NOW, settings(), known).record.goes is goes
