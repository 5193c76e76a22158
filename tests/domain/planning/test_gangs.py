"""What excludes that a gang ever stands: pods that cannot be held, and more chips than a limit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import a_request
from tests.domain.asking import FLEX, outcome, refusal_of
from tpu_slices.domain.model.clusters import Allowed, Policy
from tpu_slices.domain.model.gangs import GANG
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import SliceSpec
from tpu_slices.domain.planning.gangs import GangSize, beyond_limits
from tpu_slices.domain.planning.host_labels import FLEX_START
from tpu_slices.domain.planning.specs import gangs_of

TRAIN = a_request(replicated_job="train", gang="all")
"""Four slices of 16 chips."""
EVALUATE = a_request(replicated_job="evaluate", replicas=1, first_job=4, gang="all")
WHOLE = GangSize(slices=5, chips=80)
IN_NAMESPACE, IN_CLUSTER = "chips_per_namespace", "chips_per_cluster"


def at_most(setting: str, chips: int) -> Policy:
    if setting == IN_CLUSTER:
        return Policy(chips_per_cluster=chips)
    return Policy(everyone=Allowed(chips_per_namespace=chips))


def test_a_gang_is_as_large_as_all_slices_of_its_templates() -> None:
    assert gangs_of([TRAIN, EVALUATE, a_request()]) == {"all": WHOLE}
    assert gangs_of([replace(TRAIN, gang="train"), replace(EVALUATE, gang="evaluate")]) == {
        "train": GangSize(slices=4, chips=64),
        "evaluate": GangSize(slices=1, chips=16),
    }


@pytest.mark.parametrize("setting", [IN_NAMESPACE, IN_CLUSTER])
def test_a_gang_of_more_chips_than_a_limit_never_stands(setting: str) -> None:
    assert [*beyond_limits(WHOLE, "research", at_most(setting, 79))] == [
        f"policy.{setting}: its 5 slices need 80 chips together, and at most 79 are allowed"
    ]


@pytest.mark.parametrize("policy", [at_most(IN_NAMESPACE, 80), at_most(IN_CLUSTER, 80), Policy()])
def test_a_gang_of_as_many_chips_as_a_limit_may(policy: Policy) -> None:
    assert [*beyond_limits(WHOLE, "research", policy)] == []


def test_flex_start_hosts_come_for_no_pods_that_are_held() -> None:
    refused = refusal_of(replace(FLEX, gang="all"))
    assert refused.reason is Reason.DOES_NOT_FIT
    held = f"{GANG}: the pods of a gang are held until all of its slices stand, and GKE adds flex-start hosts"
    assert held in refused.message
    assert FLEX_START in refused.message
    assert isinstance(outcome(FLEX), SliceSpec)
