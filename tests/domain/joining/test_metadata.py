"""What a slice's instances on Compute Engine have in their metadata."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import NOW, a_job, a_spec, self_managed
from tpu_slices.adapters.startup import STARTUP_SCRIPT, startup_script
from tpu_slices.domain.model.joining import JoinToken, Kubeadm
from tpu_slices.domain.model.slices import Taint, claim_id, pool_name
from tpu_slices.domain.planning import joining
from tpu_slices.domain.planning.joining import (
    changed_items,
    host_metadata,
    join_metadata,
    kubelet_may_set,
    node_labels,
    template_metadata,
    topology_id,
    with_labels,
)
from tpu_slices.domain.planning.pool_labels import labels_of, missing_proof

JOB = a_job()
POOLS = self_managed().pools
KUBEADM = Kubeadm("1.36", "10.0.0.2:6443")
TOKEN = JoinToken(
    slice_id=claim_id(JOB),
    attempt=2,
    token="abcdef.0123456789abcdef",
    ca_hashes=("sha256:aa", "sha256:bb"),
    expires_at=NOW,
)


def test_a_host_registers_with_the_labels_that_it_would_have_on_gke() -> None:
    labels = node_labels(JOB, 2, a_spec(), POOLS)
    assert labels["cloud.google.com/gke-tpu-accelerator"] == "tpu-v6e-slice"
    assert labels["cloud.google.com/gke-tpu-topology"] == "4x4"
    assert labels["cloud.google.com/gke-accelerator-count"] == "4"
    assert labels["cloud.google.com/gke-nodepool"] == pool_name(claim_id(JOB), 2)
    assert labels["topology.kubernetes.io/zone"] == "us-central2-b"
    assert labels["topology.kubernetes.io/region"] == "us-central2"
    assert labels.items() >= labels_of(JOB, 2, a_spec()).items()
    assert missing_proof(labels, JOB) is None


def test_a_host_does_not_claim_what_gke_alone_has() -> None:
    labels = node_labels(JOB, 2, a_spec(), POOLS)
    assert "iam.gke.io/gke-metadata-server-enabled" not in labels
    assert "cloud.google.com/placement-policy-name" not in labels
    assert "" not in labels.values()


@pytest.mark.parametrize(
    ("key", "allowed"),
    [
        ("kubernetes.io/hostname", True),
        ("topology.kubernetes.io/zone", True),
        ("node.kubernetes.io/instance-type", True),
        ("node.kubernetes.io/whatever", True),
        ("kubelet.kubernetes.io/whatever", True),
        ("a.node.kubernetes.io/whatever", True),
        ("google.com/tpu-slice-id", True),
        ("cloud.google.com/gke-tpu-topology", True),
        ("team", True),
        ("kubernetes.io/role", False),
        ("node-role.kubernetes.io/worker", False),
        ("node-restriction.kubernetes.io/team", False),
        ("alpha.jobset.sigs.k8s.io/namespaced-job", False),
        ("k8s.io/a", False),
    ],
)
def test_a_kubelet_sets_what_node_restriction_admits(key: str, allowed: bool) -> None:
    assert kubelet_may_set(key) is allowed


def test_the_label_of_exclusive_placement_is_left_to_the_relay() -> None:
    labels = node_labels(JOB, 2, a_spec(exclusive_nodes=True), POOLS)
    assert "alpha.jobset.sigs.k8s.io/namespaced-job" not in labels
    assert labels["google.com/tpu-slice-exclusive-nodes"] == "true"


def test_the_labels_and_taints_are_such_that_the_startup_script_takes_them() -> None:
    spec = a_spec(taints=(Taint("cloud.google.com/gke-spot", "true"), Taint("empty", "")))
    metadata = template_metadata(JOB, 2, spec, POOLS, KUBEADM)
    for key, pattern in re.findall(r"^  require (\S+) '(.+)'$", startup_script(), re.MULTILINE):
        assert re.fullmatch(pattern.replace("[][", r"[\]\["), metadata[key]), key
    assert metadata["kube-taints"] == (
        "google.com/tpu=present:NoSchedule,cloud.google.com/gke-spot=true:NoSchedule,empty=:NoSchedule"
    )


def test_the_device_plugin_finds_its_labels_whatever_template_is_used() -> None:
    [(key, labels)] = host_metadata(JOB, 2, a_spec(hosts=1), POOLS).items()
    assert key == "kube-labels"
    assert dict(each.split("=") for each in labels.split(",")) == node_labels(JOB, 2, a_spec(hosts=1), POOLS)


def test_hosts_that_are_wired_together_have_one_topology_id_and_others_have_another() -> None:
    one, same = topology_id(JOB, 2, a_spec()), topology_id(JOB, 2, a_spec())
    assert one == same != topology_id(JOB, 3, a_spec())
    assert list(json.loads(one)) == ["4x4"]
    assert host_metadata(JOB, 2, a_spec(), POOLS)["accelerator_topology_id"] == one


def test_without_kubeadm_a_template_has_nothing_of_it() -> None:
    metadata = template_metadata(JOB, 2, a_spec(), POOLS, None)
    assert set(metadata) == {"kube-labels", "accelerator_topology_id", "enable-guest-attributes"}


def test_an_instance_gets_what_the_operator_gives_it() -> None:
    assert join_metadata(TOKEN, KUBEADM) == {
        "kubeadm-join-token": "abcdef.0123456789abcdef",
        "kubeadm-control-plane-ip": "10.0.0.2",
        "kubeadm-ca-hash": "sha256:aa,sha256:bb",
    }


@pytest.mark.parametrize(
    ("control_plane", "endpoint", "address"),
    [
        ("10.0.0.2:443", "10.0.0.2:443", "10.0.0.2"),
        ("10.0.0.2", "10.0.0.2:6443", "10.0.0.2"),
        ("api.shop", "api.shop:6443", "api.shop"),
        ("[fd00::1]:443", "[fd00::1]:443", "fd00::1"),
        ("[fd00::1]", "[fd00::1]:6443", "fd00::1"),
    ],
)
def test_a_control_plane_without_a_port_has_the_usual_one(control_plane: str, endpoint: str, address: str) -> None:
    kubeadm = Kubeadm("1.36", control_plane)
    assert template_metadata(JOB, 2, a_spec(), POOLS, kubeadm)["kubeadm-control-plane"] == endpoint
    assert join_metadata(TOKEN, kubeadm)["kubeadm-control-plane-ip"] == address


def test_a_token_is_taken_out_again() -> None:
    present = [("a", "1"), *((key, value or "") for key, value in join_metadata(TOKEN, KUBEADM).items())]
    assert changed_items(present, join_metadata(None, KUBEADM)) == [("a", "1")]


def test_a_token_is_in_no_text_of_its_values() -> None:
    assert TOKEN.token not in f"{TOKEN} {TOKEN!r} {replace(TOKEN, attempt=3)}"


def test_metadata_of_others_stays_in_its_order() -> None:
    present = [("b", "1"), ("kubeadm-ca-hash", "old"), ("a", "2"), ("", "lost")]
    assert changed_items(present, {"kubeadm-ca-hash": "new", "c": "3"}) == [
        ("b", "1"),
        ("kubeadm-ca-hash", "new"),
        ("a", "2"),
        ("c", "3"),
    ]


def test_labels_of_others_stay_beside_ours() -> None:
    present = "cloud.google.com/gke-tpu-topology=2x2,worker,zone=a"
    changed = changed_items([("kube-labels", present)], {"kube-labels": "cloud.google.com/gke-tpu-topology=4x4"})
    assert changed == [("kube-labels", "cloud.google.com/gke-tpu-topology=4x4,worker=,zone=a")]


_TEXT = st.text("abc=,- ", max_size=6)
_ITEMS = st.dictionaries(st.sampled_from(["a", "b", joining.KUBE_LABELS, joining.TOKEN]), _TEXT)


@given(_ITEMS, st.dictionaries(st.sampled_from(["a", joining.KUBE_LABELS, joining.TOKEN]), st.none() | _TEXT))
def test_what_has_all_that_is_wanted_is_not_changed_again(
    present: dict[str, str], wanted: dict[str, str | None]
) -> None:
    changed = changed_items([*present.items()], wanted)
    if changed is not None:
        assert changed_items(changed, wanted) is None


@given(_TEXT, _TEXT)
def test_the_later_labels_win(present: str, labels: str) -> None:
    assert with_labels(with_labels(present, labels), labels) == with_labels(present, labels)


def test_the_startup_script_is_a_script() -> None:
    assert startup_script().startswith("#!/usr/bin/env bash\n")
    assert STARTUP_SCRIPT == "startup-script"
    assert len(startup_script().encode()) < 256 * 1024, "the most that Compute Engine takes for a value of metadata"
