"""An accelerator that no release knows: it is refused until the operator names its hosts in the cluster's settings."""

from __future__ import annotations

from tests.builders import a_request, settings
from tests.tpu9x import CELLS
from tests.world import World
from tpu_slices.domain.model.clusters import CatalogueSettings
from tpu_slices.domain.model.reasons import Phase, Reason


def test_a_jobset_of_an_accelerator_that_is_not_known_runs_once_the_operator_has_named_its_hosts() -> None:
    world = World()
    jobset = world.jobset_appears(request=a_request("tpu9x", "4x4"))
    world.settle(minutes=10)
    record = world.record(jobset)
    assert (record.phase, record.reason, world.pools) == (Phase.REFUSED, Reason.IMPOSSIBLE_SHAPE, [])
    assert '"tpu9x" is unknown: use tpu-v4-podslice' in record.message

    world.store.put_settings(settings(catalogue=CatalogueSettings(machines=(tuple(CELLS.items()),))))
    world.settle(minutes=20)
    record = world.record(jobset)
    assert (record.phase, jobset.bound) == (Phase.READY, {0}), record.message
    assert record.spec is not None
    assert (record.spec.machine_type, record.spec.hosts, record.spec.jobset_chips) == ("tpu9x-standard-4t", 4, 16)

    world.ends(jobset)
    world.settle(minutes=20)
    assert world.pools == []
