"""What a report says of slices that are held for the others of their gang."""

from __future__ import annotations

import pytest

from tests.builders import MINUTE, NOW, a_jobset, a_spec, settings
from tests.domain.gangs.test_deciding import RESERVED, a_gang, standing
from tpu_slices.domain.model.slices import SliceSpec
from tpu_slices.domain.records.gangs import GangState
from tpu_slices.domain.reporting.gangs import gangs_told


@pytest.mark.parametrize(("spec", "deadline"), [(a_spec(), True), (RESERVED, False)])
def test_the_deadline_of_holding_is_told_where_there_is_one(spec: SliceSpec, deadline: bool) -> None:
    held = standing(2, spec=spec, ordered=spec)
    gang = a_gang(state=GangState.FORMS, held_since=NOW - 10 * MINUTE)
    told = gangs_told(a_jobset(demand={}, gangs={"all": gang}), held, settings(), NOW)
    assert "Those that stand have been held since" in told
    assert ("all are let go if the others have not come" in told) is deadline
    assert ("they are of a reservation" in told) is not deadline
