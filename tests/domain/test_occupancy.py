"""Whose demand is in doubt once a leader is bound to a slice's hosts."""

import pytest

from tests.builders import NOW, a_job, a_jobset, a_record, an_occupant
from tpu_slices.domain.model.facts import LeaderBound
from tpu_slices.domain.model.slices import WorkloadUid, slice_id
from tpu_slices.domain.reconciling.occupancy import demand_in_doubt, with_stale_demand

GEMMA = a_job(name="gemma", uid=WorkloadUid("uid-gemma"), replicated_job="big-slice", job_index=3)


def leader_bound(jobset: str = "gemma", job: str = "gemma-big-slice-3", *, bound: bool = True) -> LeaderBound:
    return LeaderBound(slice_id=a_record().id, attempt=1, occupant=an_occupant(jobset, job=job), bound=bound)


def test_a_leader_of_another_jobset_puts_the_demand_of_both_in_doubt() -> None:
    assert demand_in_doubt(leader_bound(), a_record()) == (
        (a_record().job.owner.uid, a_record().id),
        (GEMMA.owner.uid, slice_id(GEMMA)),
    )


@pytest.mark.parametrize("job", ["gemma-big-slice-x", "gemma", "other-0", "gemma-"])
def test_an_unparseable_job_name_still_puts_the_slices_own_demand_in_doubt(job: str) -> None:
    assert demand_in_doubt(leader_bound(job=job), a_record())[0] == (a_record().job.owner.uid, a_record().id)


def test_a_sibling_jobs_leader_and_an_unbound_leader_put_nothing_in_doubt() -> None:
    assert demand_in_doubt(leader_bound("llama", "llama-slice-1"), a_record()) == ()
    assert demand_in_doubt(leader_bound(bound=False), a_record()) == ()


def test_demand_in_doubt_stays_but_unconfirmed() -> None:
    record = a_record()
    jobset = a_jobset(demand={record.id: NOW})
    assert with_stale_demand(jobset, record.id).demand == {record.id: None}
