"""Whatever goes wrong: nothing in use is deleted, everybody is served in the end, and nothing is left behind."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.builders import CLUSTER
from tests.mischief import Mischief
from tpu_slices.domain.model.reasons import Phase

SEEDS = range(max(1, settings().max_examples // 5))
"""With --hypothesis-profile=deep, more."""


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_in_use_is_deleted_everybody_is_served_and_nothing_is_left(seed: int) -> None:
    mean = Mischief(seed)
    mean.lives(minutes=150)
    assert mean.deleted_in_use == []

    mean.calms()
    mean.lives(minutes=120)
    assert mean.deleted_in_use == []
    assert [jobset.ref.owner.name for jobset in mean.active if len(jobset.bound) < jobset.slices] == []
    standing = sorted(mean.world.backend.pools)
    used = sorted({name.rpartition("-")[0] for name in mean.world.cluster.used_nodes()})
    assert standing == used, "every pool that stands is used"

    for jobset in mean.active:
        mean.world.ends(jobset)
    mean.lives(minutes=60)
    assert mean.world.pools == []
    assert {record.phase for record in mean.world.records.values()} <= {Phase.GONE}
    assert mean.world.store.slots(CLUSTER) == ()
