"""Everything that stands in the way of a slice is told at once, each with its key."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import a_request
from tests.domain.asking import SHAPE, refusal_of, selecting, spec_of
from tpu_slices.domain.model.clusters import Allowed, Policy, PoolSettings
from tpu_slices.domain.model.facts import (
    INJECT_SLICE_SELECTOR,
    SLICE_TOPOLOGY,
    MountedVolume,
    Requirement,
    TemplateRequest,
)
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import CapacityKind
from tpu_slices.domain.model.texts import MESSAGE_CHARACTERS
from tpu_slices.domain.planning.host_labels import ACCELERATOR, PLACEMENT_POLICY, TOPOLOGY

CLOUD = "cloud.google.com"


def keys(message: str) -> list[str]:
    """Return the key of each obstacle, in order."""
    return re.findall(r"\(\d+\) (.+?): ", message)


def test_every_obstacle_is_named_in_one_order_and_the_most_telling_reason_given() -> None:
    request = a_request(
        topology="3x5",
        node_selector=tuple(
            {
                **SHAPE,
                TOPOLOGY: "3x5",
                f"{CLOUD}/gke-queued": "true",
                f"{CLOUD}/compute-class": "tpus",
                "kubernetes.io/hostname": "node-1",
                f"{CLOUD}/gke-spot": "true",
            }.items()
        ),
        requested_annotations=(("tpu-provisioner.cloud.google.com/additional-node-networks", "vpc-2"),),
        volumes=(MountedVolume(name="data", zones=()),),
    )
    refusal = refusal_of(request, policy=Policy(everyone=Allowed(capacity=(CapacityKind.ON_DEMAND,))))
    assert refusal.reason is Reason.PROVISIONED_BY_GKE
    assert keys(refusal.message) == [
        f"{CLOUD}/compute-class",
        f"{CLOUD}/gke-queued",
        f"{CLOUD}/gke-tpu-topology",
        "tpu-provisioner.cloud.google.com/additional-node-networks",
        "kubernetes.io/hostname",
        f"{CLOUD}/gke-spot",
        "persistentVolumeClaim data",
        "capacity",
    ]


def test_one_obstacle_is_not_numbered() -> None:
    assert refusal_of(selecting({"kubernetes.io/hostname": "node-1"})).message == (
        'replicatedJob slice: kubernetes.io/hostname: the pod selects "node-1", which is not known before the node '
        "exists: remove the selector."
    )


def test_what_follows_from_an_obstacle_is_not_another_one() -> None:
    unknown = a_request(accelerator="tpu-v1", node_selector=((ACCELERATOR, "tpu-v1"), (TOPOLOGY, "4x4")))
    assert refusal_of(unknown).message.count("(1)") == 0
    wrong = selecting({f"{CLOUD}/reservation-name": "a/b", f"{CLOUD}/reservation-blocks": "b1"})
    assert refusal_of(wrong).message.count("(1)") == 0
    assert refusal_of(a_request(), zone="us-east5-a").message.count("(1)") == 0


def test_without_accelerator_and_topology_both_are_named() -> None:
    refusal = refusal_of(replace(a_request(), accelerator=None, topology=None, node_selector=()))
    assert (refusal.reason, keys(refusal.message)) == (
        Reason.IMPOSSIBLE_SHAPE,
        [f"{CLOUD}/gke-tpu-accelerator", f"{CLOUD}/gke-tpu-topology"],
    )


@given(st.integers(2, 60))
def test_a_message_is_bounded_and_keeps_the_first_keys(count: int) -> None:
    names = [f"cloud.google.com/label-{number:02}" for number in range(count)]
    message = refusal_of(selecting(dict.fromkeys(names, "v" * 60))).message
    assert len(message) <= MESSAGE_CHARACTERS
    assert all(name in message for name in names[:10])


def test_only_the_longest_messages_are_shortened() -> None:
    long_ = {f"cloud.google.com/{name}": "v" * 300 for name in ("a", "b", "c", "d")}
    message = refusal_of(selecting({**long_, "kubernetes.io/hostname": "node-1"})).message
    assert "which is not known before the node exists: remove the selector" in message
    assert len(message) > MESSAGE_CHARACTERS - 20
    assert keys(message) == [*long_, "kubernetes.io/hostname"]


# slices that GKE forms


@pytest.mark.parametrize("topology", [None, "4x4"])
def test_a_slice_of_parts_of_pools_is_refused_by_its_annotation(topology: str | None) -> None:
    selector = tuple((key, value) for key, value in SHAPE.items() if topology or key != TOPOLOGY)
    request = replace(a_request(), topology=topology, node_selector=selector, slicing=((SLICE_TOPOLOGY, "2x4"),))
    refusal = refusal_of(request)
    assert refusal.reason is Reason.DOES_NOT_FIT
    assert refusal.message.startswith(f'replicatedJob slice: {SLICE_TOPOLOGY}: the annotation is "2x4"')
    assert f'select "2x4" with {TOPOLOGY}, and remove the annotation' in refusal.message


def test_a_slice_topology_that_is_the_selected_one_asks_for_nothing_else() -> None:
    assert spec_of(a_request(slicing=((SLICE_TOPOLOGY, "4x4"),))) == spec_of(a_request())


def test_what_has_selectors_of_dynamic_slices_added_is_refused_by_its_label() -> None:
    refusal = refusal_of(a_request(slicing=((INJECT_SLICE_SELECTOR, "true"),)))
    assert refusal.message.startswith(f'replicatedJob slice: {INJECT_SLICE_SELECTOR}: "true" is for super-, sub-')


@pytest.mark.parametrize(
    "name", ["gke-tpu-slice", "gke-tpu-slice-2x4-id", "gke-tpu-partition-2x2x1-id", "gke-accelerator-topology-mode"]
)
def test_a_selector_of_dynamic_slices_is_refused_by_its_key(name: str) -> None:
    message = refusal_of(selecting({f"{CLOUD}/{name}": "x"})).message
    assert f'{CLOUD}/{name}: the pod selects "x", a label of super-, sub- or dynamic slicing' in message


# workload policies


def on_tpu7x(policy: str, topology: str = "2x2x2") -> TemplateRequest:
    selector = ((ACCELERATOR, "tpu7x"), (TOPOLOGY, topology), (PLACEMENT_POLICY, policy))
    return a_request("tpu7x", topology, node_selector=selector)


def test_the_settings_can_spell_the_names_of_xpk() -> None:
    pools = PoolSettings(workload_policy="tpu7x-{cores}-{topology}-placement-policy")
    spec = spec_of(on_tpu7x("tpu7x-16-2x2x2-placement-policy"), pools=pools)
    assert spec.workload_policy is None


def test_another_workload_policy_is_used_where_it_is_allowed() -> None:
    request = on_tpu7x("wired-2x2x2")
    assert refusal_of(request).reason is Reason.NOT_ALLOWED
    allowed = Policy(everyone=Allowed(workload_policies=("wired-*",)))
    assert spec_of(request, policy=allowed).workload_policy == "wired-2x2x2"


def test_a_name_that_no_policy_can_have_is_refused() -> None:
    allowed = Policy(everyone=Allowed(workload_policies=("*",)))
    message = refusal_of(on_tpu7x("A/b"), policy=allowed).message
    assert f'{PLACEMENT_POLICY}: "A/b" is not a name' in message


def test_a_workload_policy_for_hosts_without_one_is_refused() -> None:
    for request in (selecting({PLACEMENT_POLICY: "p"}), on_tpu7x("p", topology="2x2x1")):
        assert (
            "only slices of several hosts of tpu7x or tpu7 are placed by a workload policy"
            in refusal_of(request).message
        )


# accelerator and topology by node affinity


def test_hosts_meet_an_affinity_that_names_their_shape() -> None:
    term = tuple(Requirement(key=key, operator="In", values=(value,)) for key, value in SHAPE.items())
    spec = spec_of(a_request(node_selector=(), affinity=(term,)))
    assert spec == spec_of(a_request())


# pool settings


def test_a_pod_may_select_the_network_driver_of_hosts_with_a_profile() -> None:
    driver = {"cloud.google.com/gke-networking-dra-driver": "true"}
    v5e = {ACCELERATOR: "tpu-v5-lite-podslice", TOPOLOGY: "4x4", **driver}
    without = a_request("tpu-v5-lite-podslice", "4x4", node_selector=tuple(v5e.items()))
    profiled = PoolSettings(accelerator_network_profile="auto")
    assert spec_of(selecting(driver), pools=profiled).node_labels == ()
    assert "gke-networking-dra-driver" in refusal_of(selecting(driver)).message
    assert "gke-networking-dra-driver" in refusal_of(without, pools=profiled).message
