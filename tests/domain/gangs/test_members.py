"""How the slices of a gang are, as far as the gang is concerned."""

from __future__ import annotations

from tests.builders import NOW, a_job, a_jobset
from tests.domain.gangs.test_deciding import a_gang, standing
from tpu_slices.domain.gangs.members import members_of
from tpu_slices.domain.model.slices import claim_id
from tpu_slices.domain.records.workloads import WorkloadRecord


def of_three(*over: int) -> WorkloadRecord:
    """Return a workload with a gang of three claims, for some of which no leader waits."""
    demand = {claim_id(a_job(job_index=index)): None if index in over else NOW for index in range(3)}
    return a_jobset(demand=demand, gangs={"all": a_gang()})


def test_a_claim_whose_job_was_over_for_so_long_that_its_record_expired_needs_no_slice() -> None:
    members = members_of(of_three(2), "all", standing(2))
    assert (members.satisfied, members.over) == (3, 1)


def test_a_claim_that_is_on_record_counts_once() -> None:
    assert members_of(of_three(2), "all", standing(3)).satisfied == 3
    assert members_of(of_three(), "all", standing(2)).satisfied == 2
