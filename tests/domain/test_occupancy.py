"""Which wants are in doubt once a leader came to a slice's hosts."""

import pytest

from tests.builders import NOW, a_job, a_jobset, a_record, an_occupant
from tpu_slices.domain.model.facts import LeaderBound
from tpu_slices.domain.model.slices import WorkloadUid, slice_id
from tpu_slices.domain.reconciling.occupancy import demand_in_doubt, with_stale_demand

GEMMA = a_job(name="gemma", uid=WorkloadUid("uid-gemma"), replicated_job="big-slice", job_index=3)


def came(jobset: str = "gemma", job: str = "gemma-big-slice-3", *, bound: bool = True) -> LeaderBound:
    return LeaderBound(slice_id=a_record().id, attempt=1, occupant=an_occupant(jobset, job=job), bound=bound)


def test_where_another_jobset_comes_both_wants_are_in_doubt() -> None:
    assert demand_in_doubt(came(), a_record()) == (
        (a_record().job.owner.uid, a_record().id),
        (GEMMA.owner.uid, slice_id(GEMMA)),
    )


@pytest.mark.parametrize("job", ["gemma-big-slice-x", "gemma", "other-0", "gemma-"])
def test_of_a_job_whose_name_tells_no_place_only_the_slices_own_want_is(job: str) -> None:
    assert demand_in_doubt(came(job=job), a_record())[0] == (a_record().job.owner.uid, a_record().id)


def test_within_a_jobset_and_on_leaving_nothing_is_in_doubt() -> None:
    assert demand_in_doubt(came("llama", "llama-slice-1"), a_record()) == ()
    assert demand_in_doubt(came(bound=False), a_record()) == ()


def test_a_doubted_want_stays_a_want_that_nobody_confirmed() -> None:
    record = a_record()
    jobset = a_jobset(demand={record.id: NOW})
    assert with_stale_demand(jobset, record.id).demand == {record.id: None}
