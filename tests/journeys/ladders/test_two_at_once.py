"""A workload that steps while one of its creations is decided buys in one zone."""

from __future__ import annotations

from functools import partial

import pytest

from tests.builders import CLUSTER
from tests.journeys.ladders.stories import B, appears, had, laddered, rung
from tests.world import World
from tpu_slices.domain.model.observations import Failure, FailureKind, Outcome, Refused
from tpu_slices.flows import reconcile
from tpu_slices.ports.backend import PoolOrder

LIST_IN_C = "on-demand in us-central2-c"


@pytest.mark.parametrize("name", ["llama", "gemma", "b7"])
def test_a_creation_that_is_decided_while_its_workload_steps_is_decided_again(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first Job may have a slice in B, where the others are refused while that is decided."""
    world = World(of_cluster=laddered(rung("list"), rung("list-elsewhere")))
    create = partial(type(world.backend)._create, world.backend)

    def of_the_first_alone(order: PoolOrder) -> Outcome:
        beyond = order.spec is not None and order.spec.zone == B and order.job.job_index != 0
        return Refused(Failure(FailureKind.QUOTA, "quota: one slice only.")) if beyond else create(order)

    world.backend._create = of_the_first_alone  # type: ignore[method-assign]
    jobset, real, interrupted = appears(world, name, 3), reconcile._remember, list[str]()

    def remember(decided: reconcile._Decided, *rest: object) -> object:
        if decided.decision.creates and decided.before.job_index == 0 and not interrupted:
            interrupted.append(decided.before.id)
            for index in (1, 2):
                world._reconcile(CLUSTER, world.record(jobset, index).last_claim)
        return real(decided, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(reconcile, "_remember", remember)
    world.settle(minutes=40, until=lambda: jobset.served)
    assert interrupted
    assert jobset.served
    assert had(world) == {LIST_IN_C: 3}
