"""A gang that may form does, whichever requests for its claims are lost."""

from __future__ import annotations

import pytest

from tests.builders import CLUSTER, settings
from tests.journeys.gangs.test_gangs import SLICE, a_gang, at_most, gang_of
from tpu_slices.domain.model.clusters import Allowed, Policy
from tpu_slices.flows import sweep
from tpu_slices.flows.gangs.settling import settle


def test_the_claims_of_a_gang_that_forms_are_requested_again_whose_first_requests_are_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The instance that saved that it forms dies at once. New settings ask for them nowhere, as of a reservation."""
    monkeypatch.setattr(sweep, "ask_under_new_settings", lambda *_: False)
    world = at_most(3 * SLICE)
    gang = a_gang(world)
    world.settle(minutes=5)
    world.store.put_settings(settings(policy=Policy(everyone=Allowed(chips_per_namespace=8 * SLICE))))
    assert settle(CLUSTER, gang.ref.owner.uid, world.deps), "those requests are lost"
    assert gang_of(world, gang).forms
    world.settle(minutes=15, until=lambda: gang.served)
    assert gang.served
