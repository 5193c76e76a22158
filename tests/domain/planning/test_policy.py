"""What tenants may request, and how much: refused with the key, the value and what is allowed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import a_spec
from tpu_slices.domain.model.clusters import Allowed, Policy
from tpu_slices.domain.model.slices import Capacity, CapacityKind, Network, SliceSpec
from tpu_slices.domain.planning.policy import Held, disallowed, over_budget

SPOT = Capacity(CapacityKind.SPOT)
RESERVED = Capacity(CapacityKind.RESERVATION, "projects/hall/reservations/r1/reservationBlocks/b1")


def policy(**allowed: Any) -> Policy:
    return Policy(everyone=Allowed(**allowed))


def why_not(spec: SliceSpec, namespace: str, rules: Policy) -> list[str]:
    return [each.message for each in disallowed(spec, namespace, rules)]


@pytest.mark.parametrize(
    ("requested", "allowed", "message"),
    [
        pytest.param(
            {"service_account": "root@p.iam.gserviceaccount.com"},
            {},
            "tpu-provisioner.cloud.google.com/node-service-account: root@p.iam.gserviceaccount.com is not allowed: "
            "policy.service_accounts of the cluster's settings allows none",
            id="a service account, by default",
        ),
        pytest.param(
            {"service_account": "root@p.iam.gserviceaccount.com"},
            {"service_accounts": ("tpu-*@p.iam.gserviceaccount.com",)},
            "tpu-provisioner.cloud.google.com/node-service-account: root@p.iam.gserviceaccount.com is not allowed: "
            "policy.service_accounts of the cluster's settings allows tpu-*@p.iam.gserviceaccount.com",
            id="another service account",
        ),
        pytest.param(
            {"networks": (Network("vpc-1", "a"), Network("secret", "b"))},
            {"additional_networks": ("vpc-*:*",)},
            "tpu-provisioner.cloud.google.com/additional-node-networks: secret:b is not allowed: "
            "policy.additional_networks of the cluster's settings allows vpc-*:*",
            id="one network of two",
        ),
        pytest.param(
            {"copied_labels": ("team", "cost")},
            {"copied_labels": ("team",)},
            "tpu-provisioner.cloud.google.com/copy-labels: cost is not allowed: "
            "policy.copied_labels of the cluster's settings allows team",
            id="a label",
        ),
        pytest.param(
            {"workload_policy": "tpu7x-16-2x2x2-placement-policy"},
            {},
            "cloud.google.com/placement-policy-name: tpu7x-16-2x2x2-placement-policy is not allowed: "
            "policy.workload_policies of the cluster's settings allows none",
            id="a workload policy, by default",
        ),
        pytest.param(
            {"capacity": SPOT},
            {"capacity": (CapacityKind.ON_DEMAND, CapacityKind.RESERVATION)},
            "capacity: spot is not allowed in namespace research: "
            "policy.capacity of the cluster's settings allows on_demand, reservation",
            id="a kind of capacity",
        ),
        pytest.param(
            {"capacity": RESERVED},
            {"reservations": ("hall-7", "projects/other/*")},
            "reservations: projects/hall/reservations/r1 is not allowed in namespace research: "
            "policy.reservations of the cluster's settings allows hall-7, projects/other/*",
            id="a reservation",
        ),
        pytest.param(
            {},
            {"zones": ("us-central2-a", "us-east5-*")},
            "zones: us-central2-b is not allowed in namespace research: "
            "policy.zones of the cluster's settings allows us-central2-a, us-east5-*",
            id="a zone",
        ),
        pytest.param(
            {},
            {"accelerators": ("tpu-v5*", "tpu7x")},
            "accelerators: tpu-v6e-slice is not allowed in namespace research: "
            "policy.accelerators of the cluster's settings allows tpu-v5*, tpu7x",
            id="an accelerator",
        ),
        pytest.param(
            {},
            {"accelerators": ()},
            "accelerators: tpu-v6e-slice is not allowed in namespace research: "
            "policy.accelerators of the cluster's settings allows none",
            id="any accelerator",
        ),
        pytest.param(
            {"hosts": 4, "chips_per_host": 4},
            {"chips_per_slice": 8},
            "policy.chips_per_slice: this slice has 16 chips, and at most 8 are allowed",
            id="chips of a slice",
        ),
        pytest.param(
            {"jobset_chips": 512},
            {"chips_per_jobset": 256},
            "policy.chips_per_jobset: the slices of the JobSet have 512 chips, and at most 256 are allowed",
            id="chips of a JobSet",
        ),
        pytest.param(
            {"hosts": 4, "chips_per_host": 4},
            {"chips_per_namespace": 15},
            "policy.chips_per_namespace: this slice has 16 chips, and at most 15 are allowed",
            id="more than the whole namespace may have",
        ),
    ],
)
def test_a_request_that_is_not_allowed_is_refused(
    requested: dict[str, Any], allowed: dict[str, Any], message: str
) -> None:
    assert why_not(a_spec(**requested), "research", policy(**allowed)) == [message]


@pytest.mark.parametrize(
    ("requested", "allowed"),
    [
        pytest.param({"capacity": SPOT}, {}, id="spot, by default"),
        pytest.param({"capacity": RESERVED}, {}, id="any reservation, by default"),
        pytest.param({"copied_labels": ("team",)}, {}, id="any label, by default"),
        pytest.param({"capacity": RESERVED}, {"reservations": ("projects/hall/reservations/r1",)}, id="a part of one"),
        pytest.param({}, {"zones": ("us-central2-*",), "accelerators": ("tpu-v6e-*",)}, id="zone and accelerator"),
        pytest.param({"hosts": 4, "chips_per_host": 4}, {"chips_per_slice": 16}, id="exactly as many chips"),
    ],
)
def test_a_request_that_is_allowed_passes(requested: dict[str, Any], allowed: dict[str, Any]) -> None:
    assert not why_not(a_spec(**requested), "research", policy(**allowed))


def test_a_namespaces_own_rules_replace_those_for_everyone() -> None:
    rules = Policy(everyone=Allowed(chips_per_slice=4), namespaces={"research": Allowed(chips_per_slice=64)})
    assert not why_not(a_spec(), "research", rules)
    assert "chips_per_slice" in why_not(a_spec(), "vision", rules)[0]


def test_a_namespace_can_be_kept_to_a_zone_that_others_do_not_get() -> None:
    rules = Policy(
        everyone=Allowed(zones=("us-central2-a",)), namespaces={"research": Allowed(zones=("us-central2-b",))}
    )
    assert not why_not(a_spec(zone="us-central2-b"), "research", rules)
    assert not why_not(a_spec(zone="us-central2-a"), "vision", rules)
    for zone, namespace in (("us-central2-a", "research"), ("us-central2-b", "vision")):
        assert (
            f"zones: {zone} is not allowed in namespace {namespace}" in why_not(a_spec(zone=zone), namespace, rules)[0]
        )


def test_a_slice_larger_than_the_cluster_may_hold_is_refused_for_good() -> None:
    assert why_not(a_spec(), "research", Policy(chips_per_cluster=8)) == [
        "policy.chips_per_cluster: this slice has 16 chips, and at most 8 are allowed"
    ]


def test_chips_that_the_namespace_holds_count_towards_its_limit() -> None:
    rules = Policy(everyone=Allowed(chips_per_namespace=64))
    over = over_budget(a_spec(), "research", Held(in_namespace=56, in_cluster=56), rules)
    assert over == "policy.chips_per_namespace: this slice has 16 chips, and the namespace research holds 56 of 64"


def test_chips_of_other_namespaces_count_towards_the_clusters_limit_only() -> None:
    rules = Policy(everyone=Allowed(chips_per_namespace=64), chips_per_cluster=128)
    over = over_budget(a_spec(), "research", Held(in_namespace=0, in_cluster=120), rules)
    assert over == "policy.chips_per_cluster: this slice has 16 chips, and the cluster holds 120 of 128"


limits = st.one_of(st.none(), st.integers(16, 200))


@given(st.integers(0, 200), st.integers(0, 200), limits, limits)
def test_a_slice_is_within_budget_if_and_only_if_it_exceeds_no_limit(
    mine: int, others: int, per_namespace: int | None, per_cluster: int | None
) -> None:
    rules = Policy(everyone=Allowed(chips_per_namespace=per_namespace), chips_per_cluster=per_cluster)
    held = Held(in_namespace=mine, in_cluster=mine + others)
    fits = (per_namespace is None or mine + 16 <= per_namespace) and (
        per_cluster is None or mine + others + 16 <= per_cluster
    )
    assert (over_budget(a_spec(), "research", held, rules) is None) is fits


def test_held_chips_are_counted_only_where_a_limit_applies() -> None:
    rules = Policy(namespaces={"research": Allowed(chips_per_namespace=64)})
    assert rules.counts("research")
    assert not rules.counts("vision")
    assert Policy(chips_per_cluster=64).counts("vision")


@pytest.mark.parametrize(
    ("account", "pattern", "allowed"),
    [
        ("tpu-a@p.iam.gserviceaccount.com", "tpu-*@p.iam.gserviceaccount.com", True),
        ("tpu-a@p.iam.gserviceaccount.com", "*", True),
        ("tpu-a@other.iam.gserviceaccount.com", "tpu-*", False),
        ("root@evil@p.iam.gserviceaccount.com", "*@p.iam.gserviceaccount.com", False),
        ("root@evil.example.com", "root*.com", False),
        ("root", "root@evil.example.com", False),
        ("root@evil.example.com", "!root@evil.example.com", False),
    ],
)
def test_a_star_in_a_service_account_stays_on_its_side_of_the_at_sign(
    account: str, pattern: str, *, allowed: bool
) -> None:
    rules = policy(service_accounts=(pattern,))
    assert (not why_not(a_spec(service_account=account), "research", rules)) is allowed


def test_everything_that_is_not_allowed_is_told_at_once() -> None:
    spec = a_spec(copied_labels=("team", "cost", "tier"), capacity=SPOT)
    rules = policy(copied_labels=("team",), capacity=(CapacityKind.ON_DEMAND,), chips_per_slice=8)
    keys = [
        message.partition(" is not allowed")[0].partition(" this slice")[0] for message in why_not(spec, "r", rules)
    ]
    assert keys == [
        "tpu-provisioner.cloud.google.com/copy-labels: cost",
        "tpu-provisioner.cloud.google.com/copy-labels: tier",
        "capacity: spot",
        "policy.chips_per_slice:",
    ]


@pytest.mark.parametrize(("held", "over"), [(111, False), (112, False), (113, True)])
def test_a_cluster_may_hold_exactly_its_limit(held: int, *, over: bool) -> None:
    rules = Policy(chips_per_cluster=128)
    found = over_budget(a_spec(), "research", Held(in_namespace=0, in_cluster=held), rules)
    assert (found is not None) is over
