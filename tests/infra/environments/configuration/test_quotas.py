"""Quotas of the training environment: computed from static slices, and from what the provisioner is allowed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from infra.preflight.kueue import LONGEST_CREATION
from tests.infra.environments.configuration.configured import CLUSTER, Configured, configured, outputs_of
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.wire.cluster_settings import decode_settings

pytestmark = [
    pytest.mark.emulators,
    pytest.mark.enable_socket,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed"),
]

Json = dict[str, Any]
POOLS: Json = {
    "a": {"type": "v4-32", "slices": 2},
    "b": {"type": "v4-32", "capacity": "reservation", "reservation": "hall-7"},
    "c": {"type": "v4-32", "capacity": "spot", "autoscaling": True},
    "d": {"type": "v4-8"},
}
SETTINGS: list[tuple[Json, int]] = [
    ({"policy": {"chips_per_cluster": 64}}, 7 * 24 * 60),
    ({"policy": {"chips_per_namespace": 16, "capacity": ["spot"]}}, 90),
    (
        {
            "policy": {"chips_per_cluster": 40, "chips_per_namespace": 16, "capacity": ["SPOT"]},
            "limits": {"create_timeout": 90, "hosts_timeout": "1.5h"},
        },
        132,
    ),
    (
        {"policy": {"chips_per_cluster": 40, "chips_per_namespace": 8, "capacity": ["spot", "Flex-Start"]}},
        7 * 24 * 60,
    ),
    (
        {
            "policy": {
                "chips_per_namespace": 16,
                "namespaces": {"vision": {"chips_per_namespace": 48}, "speech": {"capacity": ["spot"]}},
            }
        },
        7 * 24 * 60,
    ),
    (
        {
            "policy": {
                "chips_per_cluster": 100,
                "capacity": ["spot"],
                "namespaces": {"vision": {"chips_per_namespace": 48, "capacity": ["flex_start"]}},
            }
        },
        7 * 24 * 60,
    ),
    ({"policy": {"chips_per_cluster": 100, "chips_per_namespace": None, "namespaces": None}}, 7 * 24 * 60),
]
"""What the provisioner may do, and the minutes in which pods of it are to be ready."""
TEAMS: Json = {"vision": {}, "speech": {"weight": 2}}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Json:
    return outputs_of(tmp_path_factory.mktemp("infrastructure"), tpu_pools=POOLS)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Json:
    return outputs_of(tmp_path_factory.mktemp("empty"), num_tpu_pools=0)


def quotas(found: Configured, kind: str = "ClusterQueue", name: str = "cluster-queue") -> dict[str, int]:
    """Return the chips of a queue by flavor, in its order."""
    [group] = found.manifests(kind)[name]["spec"]["resourceGroups"]
    return {each["name"]: int(each["resources"][0]["nominalQuota"]) for each in group["flavors"]}


def allowed(settings: Json) -> int | None:
    """Return how many chips the provisioner itself would let these namespaces have together; None: no limit."""
    policy = decode_settings(ClusterId("trainer"), {"path": CLUSTER, **settings}, "").policy
    each = [policy.allowed(name).chips_per_namespace for name in ("tpu-training", *TEAMS)]
    together = None if None in each else sum(chips or 0 for chips in each)
    return min((limit for limit in (policy.chips_per_cluster, together) if limit is not None), default=None)


def test_slices_of_one_shape_count_together_but_for_spot_which_comes_first(tmp_path: Path, outputs: Json) -> None:
    """Nothing keeps a pod away from a reserved slice of its shape; spot's taint does."""
    found = configured(tmp_path, outputs)
    assert list(quotas(found).items()) == [
        ("tpu-v4-podslice-2x2x4-spot", 16),
        ("tpu-v4-podslice-2x2x1", 4),
        ("tpu-v4-podslice-2x2x4", 48),
        ("provisioned", 0),
    ]
    assert found.plan.outputs["chips"] == outputs["chips"] == 68


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, empty: Json) -> Callable[[int], Configured]:
    """Return what plans one of SETTINGS, once."""

    @cache
    def plan(index: int) -> Configured:
        settings, _ = SETTINGS[index]
        return configured(tmp_path_factory.mktemp("settings"), empty, settings, teams=TEAMS)

    return plan


EACH = pytest.mark.parametrize("index", range(len(SETTINGS)))


@EACH
def test_what_may_be_bought_is_what_the_provisioner_allows(found: Callable[[int], Configured], index: int) -> None:
    settings, _ = SETTINGS[index]
    assert quotas(found(index)) == {"provisioned": allowed(settings)}
    assert found(index).plan.outputs["chips"] == allowed(settings)


@EACH
def test_pods_may_take_as_long_as_the_provisioner_takes_to_make_a_slice(
    found: Callable[[int], Configured], index: int
) -> None:
    settings, minutes = SETTINGS[index]
    limits = decode_settings(ClusterId("trainer"), {"path": CLUSTER, **settings}, "").limits
    assert found(index).kueue()["waitForPodsReady"]["timeout"] == f"{minutes}m"
    assert timedelta(minutes=minutes) >= LONGEST_CREATION + limits.create_timeout + limits.hosts_timeout


def test_static_slices_and_what_may_be_bought_are_added(tmp_path: Path, outputs: Json) -> None:
    found = configured(tmp_path, outputs, {"policy": {"chips_per_cluster": 64}})
    assert quotas(found)["provisioned"] == 64
    assert found.plan.outputs["chips"] == outputs["chips"] + 64
    assert found.plan.outputs["quotas"] == quotas(found)


def test_teams_share_all_chips_by_weight_and_buy_no_more_than_they_may(tmp_path: Path, outputs: Json) -> None:
    policy = {"chips_per_cluster": 64, "namespaces": {"vision": {"chips_per_namespace": 16}}}
    found = configured(tmp_path, outputs, {"policy": policy}, teams=TEAMS, cohort=True)
    queues = found.manifests("ClusterQueue")

    assert sum(quotas(found, "Cohort", "teams").values()) == found.plan.outputs["chips"]
    assert {name: sum(quotas(found, name=name).values()) for name in queues} == dict.fromkeys(queues, 0)
    assert {
        name: (each["spec"]["cohortName"], each["spec"]["fairSharing"]["weight"]) for name, each in queues.items()
    } == {
        "tpu-training": ("teams", "1"),
        "vision": ("teams", "1"),
        "speech": ("teams", "2"),
    }
    borrowing = {
        name: flavor["resources"][0]["borrowingLimit"]
        for name, each in queues.items()
        for flavor in each["spec"]["resourceGroups"][0]["flavors"]
        if "borrowingLimit" in flavor["resources"][0]
    }
    assert borrowing == {"vision": "16"}
    assert found.kueue()["fairSharing"]["preemptionStrategies"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            {"path": "projects/shop-project/locations/us-central2/clusters/other"},
            "clusters/other, not of",
        ),
        ({}, "must have policy.chips_per_cluster"),
        ({"policy": {"namespaces": {"vision": {"chips_per_namespace": 8}}}}, "must have policy.chips_per_cluster"),
    ],
)
def test_settings_without_a_quota_for_this_cluster_are_refused(
    tmp_path: Path, empty: Json, settings: Json, says: str
) -> None:
    with pytest.raises(AssertionError, match=says):
        configured(tmp_path, empty, settings, teams=TEAMS)


def test_static_slices_of_flex_start_are_waited_for_too(tmp_path: Path, empty: Json, outputs: Json) -> None:
    flexible = {name: {**flavor, "capacity": "flex_start"} for name, flavor in outputs["flavors"].items()}
    for folder, flavors, minutes in (("plain", {}, 90), ("flexible", flexible, 10080)):
        (tmp_path / folder).mkdir()
        found = configured(tmp_path / folder, {**empty, "flavors": flavors})
        assert found.plan.outputs["pods_ready_timeout"] == minutes


def test_the_least_time_for_pods_is_that_of_the_preflight(tmp_path: Path, empty: Json) -> None:
    least = int(LONGEST_CREATION / timedelta(minutes=1))
    assert configured(tmp_path, empty, pods_ready_timeout=least).plan.outputs["pods_ready_timeout"] == least
    with pytest.raises(AssertionError, match="GKE tries for 35 minutes"):
        configured(tmp_path / "less", empty, pods_ready_timeout=least - 1)
