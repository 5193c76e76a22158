"""What an operator names is what is edited: never the slice that took the place of the one that was named."""

from __future__ import annotations

import pytest

from tests.builders import CLUSTER, a_spec, unclaimed
from tests.domain.cases import ready, requested
from tests.flows.unclaimed import a_world
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows.edits import find
from tpu_slices.ports.errors import Permanent

CLAIM = ready(attempt=2, earlier=(1,))
BEFORE = unclaimed(requested())


def names(name: str, *records: SliceRecord) -> list[str]:
    return [each.name for each in find(CLUSTER, name, a_world(*records).store)]


def test_the_name_of_a_node_pool_is_that_of_the_slice_which_has_it_alone() -> None:
    assert names(CLAIM.pool_of(1), CLAIM, BEFORE) == [BEFORE.name]
    assert names(CLAIM.pool_of(2), CLAIM, BEFORE) == [CLAIM.name]


def test_the_name_of_a_node_pool_that_is_gone_is_nobodys() -> None:
    with pytest.raises(Permanent, match="not found"):
        names(CLAIM.pool_of(1), ready(attempt=2))


def test_the_name_of_a_claim_is_also_that_of_the_slices_that_it_had_and_that_still_stand() -> None:
    assert names(CLAIM.name, CLAIM, BEFORE) == [CLAIM.name, BEFORE.name]
    assert sorted(names("research/llama-slice-0", CLAIM, BEFORE)) == sorted([CLAIM.name, BEFORE.name])


def test_the_name_of_each_job_that_shares_a_slice_is_that_of_the_slice() -> None:
    shared = ready(spec=a_spec(jobs=4))
    assert names("research/llama-slice-3", shared) == [shared.name]
    with pytest.raises(Permanent, match="not found"):
        names("research/llama-slice-4", shared)


def test_the_name_of_an_adopted_pool_is_that_of_the_slice_which_has_it() -> None:
    adopted = ready(attempt=0, legacy_pool="llama-4f2a1")
    assert names("llama-4f2a1", adopted) == [adopted.name]
    with pytest.raises(Permanent, match="not found"):
        names("llama-4f2a1", ready(attempt=1, legacy_pool="llama-4f2a1"))
