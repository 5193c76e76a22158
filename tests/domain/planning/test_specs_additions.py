"""What a pod adds to its template's request: labels, requested annotations, and what the settings allow of them."""

from __future__ import annotations

import pytest

from tests.builders import a_leader, a_request
from tests.domain.asking import EVERYTHING, SHAPE, refusal_of, selecting, spec_of
from tpu_slices.domain.model.clusters import Allowed, Policy, PoolSettings
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import Network

# what admission adds to the pod


def test_a_selector_that_admission_added_becomes_a_node_label() -> None:
    leader = a_leader(node_selector=(*SHAPE.items(), ("team", "vision")))
    assert spec_of(a_request(), leader).node_labels == (("team", "vision"),)


def test_a_forged_pod_cannot_change_the_capacity_of_its_slice() -> None:
    leader = a_leader(node_selector=(*SHAPE.items(), ("cloud.google.com/gke-spot", "true")))
    assert refusal_of(a_request(tolerations=(EVERYTHING,)), leader).reason is Reason.DOES_NOT_FIT


def test_a_pods_additions_do_not_change_the_fingerprint() -> None:
    leader = a_leader(node_selector=(*SHAPE.items(), ("team", "vision")), labels=(("x", "y"),))
    assert spec_of(a_request(), leader).fingerprint == spec_of(a_request()).fingerprint


# labels that are copied

V5E = a_request("tpu-v5-lite-podslice", "4x4")
COPY = "tpu-provisioner.cloud.google.com/copy-labels"


def test_labels_are_copied_by_settings_and_by_annotation() -> None:
    request = a_request(
        labels=(("team", "vision"), ("tier", "gold"), ("x", "y")), requested_annotations=((COPY, "tier, missing"),)
    )
    spec = spec_of(request, pod_to_node_labels=("team", "absent"))
    assert spec.node_labels == (("team", "vision"), ("tier", "gold"))
    assert spec.copied_labels == ("tier", "missing")


def test_labels_that_only_the_pod_has_are_copied_too() -> None:
    spec = spec_of(a_request(), a_leader(labels=(("team", "vision"),)), pod_to_node_labels=("team",))
    assert spec.node_labels == (("team", "vision"),)


def test_a_selector_overrides_a_copied_label_of_the_same_key() -> None:
    request = a_request(node_selector=(*SHAPE.items(), ("team", "a")), labels=(("team", "b"),))
    assert spec_of(request, pod_to_node_labels=("team",)).node_labels == (("team", "a"),)


@pytest.mark.parametrize(
    "key",
    [
        "jobset.sigs.k8s.io/jobset-name",
        "google.com/nodepool-manager",
        "Google.com/nodepool-manager",
        "google.com./nodepool-manager",
        "cloud.GOOGLE.com./x",
    ],
)
def test_a_system_label_is_not_copied_but_refused(key: str) -> None:
    refusal = refusal_of(a_request(requested_annotations=((COPY, key),), labels=((key, "x"),)))
    assert (refusal.reason, key in refusal.message) == (Reason.DOES_NOT_FIT, True)


@pytest.mark.parametrize(
    "key",
    ["Cloud.Google.com/x", "GOOGLE.COM/x", "google.com./x", "K8S.io/x", "K8S.io./x", "a.kubernetes.io./x", "GKE.IO/x"],
)
def test_a_selector_under_a_system_domain_is_refused_by_name_however_the_domain_is_written(key: str) -> None:
    refusal = refusal_of(selecting({key: "v"}))
    assert (refusal.reason, key in refusal.message) == (Reason.DOES_NOT_FIT, True)


@pytest.mark.parametrize("key", ["cloud.google.com/gke-tpu-ici-resiliency", "cloud.google.com/gke-location-hint"])
def test_two_of_googles_keys_may_be_set_by_tenants(key: str) -> None:
    assert spec_of(selecting({key: "x"})).node_labels == ((key, "x"),)


# the annotations that a tenant requests

ACCOUNT = "tpu-provisioner.cloud.google.com/node-service-account"
NETWORKS = "tpu-provisioner.cloud.google.com/additional-node-networks"


def test_requested_annotations_are_in_the_spec() -> None:
    requested_annotations = (
        (NETWORKS, "vpc-2:subnet-2, vpc-3 : subnet-3"),
        (ACCOUNT, "mine@p.iam.gserviceaccount.com"),
    )
    allowed = Policy(everyone=Allowed(service_accounts=("*",), additional_networks=("vpc-*:*",)))
    spec = spec_of(a_request(requested_annotations=requested_annotations), policy=allowed)
    assert spec.service_account == "mine@p.iam.gserviceaccount.com"
    assert spec.networks == (Network("vpc-2", "subnet-2"), Network("vpc-3", "subnet-3"))


def test_without_requested_annotations_the_settings_decide() -> None:
    spec = spec_of(a_request())
    assert (spec.service_account, spec.networks) == (None, None)


@pytest.mark.parametrize("text", ["vpc-2", "vpc-2:", ":subnet-2", "a:b, c", "a:b," * 17])
def test_malformed_networks_are_refused_by_their_annotation(text: str) -> None:
    refusal = refusal_of(a_request(requested_annotations=((NETWORKS, text),)))
    assert refusal.reason is Reason.DOES_NOT_FIT
    assert NETWORKS in refusal.message


def test_a_requested_annotation_changes_the_fingerprint() -> None:
    policy = Policy(everyone=Allowed(service_accounts=("*",)))
    annotated = spec_of(a_request(requested_annotations=((ACCOUNT, "mine@p.iam.gserviceaccount.com"),)), policy=policy)
    assert annotated.fingerprint != spec_of(a_request()).fingerprint


def test_a_requested_annotation_that_the_settings_do_not_allow_is_refused() -> None:
    refusal = refusal_of(a_request(requested_annotations=((ACCOUNT, "mine@p.iam.gserviceaccount.com"),)))
    assert refusal.reason is Reason.NOT_ALLOWED
    assert ACCOUNT in refusal.message


# disks


def test_the_settings_choose_among_the_disks_that_the_hosts_support() -> None:
    assert spec_of(V5E, pools=PoolSettings(boot_disk_type="pd-ssd")).boot_disk == "pd-ssd"


def test_a_disk_that_the_hosts_do_not_support_is_refused_by_its_setting() -> None:
    refusal = refusal_of(V5E, pools=PoolSettings(boot_disk_type="pd-standard"))
    assert "pools.boot_disk_type" in refusal.message
    assert "pd-balanced or pd-ssd" in refusal.message


def test_confidential_storage_is_refused_with_a_disk_that_lacks_it() -> None:
    safe = PoolSettings(confidential_storage=True)
    refusal = refusal_of(V5E, pools=safe)
    assert "pools.confidential_storage: only hyperdisk-balanced supports it" in refusal.message
    assert spec_of(a_request(), pools=safe).boot_disk == "hyperdisk-balanced"
