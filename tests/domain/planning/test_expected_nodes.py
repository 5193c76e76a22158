"""Which nodes the relay labels as a slice's hosts, and how."""

from __future__ import annotations

import pytest

from tests.builders import NOW, a_record, settings, with_fields
from tests.domain.planning.test_node_groups import self_managed
from tests.domain.reporting.test_node_groups import a_group_record, at
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.planning.expected_nodes import nodes_expected

AWAITED = (
    Reason.ADOPTED,
    Reason.AWAITING_CAPACITY,
    Reason.HOSTS_JOINING,
    Reason.HOSTS_LOST,
    Reason.PREEMPTED,
    Reason.UNDER_MAINTENANCE,
    Reason.POOL_BUSY,
)


@pytest.mark.parametrize("reason", Reason)
def test_nodes_are_expected_while_hosts_are_missing(reason: Reason) -> None:
    assert (nodes_expected(at(reason), self_managed()) is not None) is (reason in AWAITED)


def test_nodes_are_expected_though_the_group_cannot_be_read_meanwhile() -> None:
    lost = at(Reason.HOSTS_LOST)
    unread = lost.transitioned(NOW, Reason.POOL_UNREADABLE, "403")
    assert nodes_expected(unread, self_managed()) == nodes_expected(lost, self_managed()) is not None


def test_they_are_the_instances_of_the_pools_group_in_its_zone() -> None:
    record = at(Reason.HOSTS_JOINING)
    expected = nodes_expected(record, self_managed())
    assert expected is not None
    assert expected.instances == f"gce://demo-project/us-central1-c/{record.pool}-"
    assert (expected.slice_id, expected.attempt) == (record.maker, 1)


def test_they_get_the_labels_that_a_host_has_which_joined_by_our_script() -> None:
    record = at(Reason.HOSTS_JOINING)
    expected = nodes_expected(record, self_managed())
    assert expected is not None
    labels = dict(expected.labels)
    assert labels["cloud.google.com/gke-tpu-accelerator"] == "tpu7x"
    assert labels["cloud.google.com/gke-tpu-topology"] == "2x2x2"
    assert labels["cloud.google.com/gke-accelerator-count"] == "4"
    assert labels["cloud.google.com/gke-nodepool"] == record.pool
    assert labels["google.com/nodepool-manager"] == "tpu-provisioner"
    assert (labels["google.com/tpu-slice-id"], labels["google.com/tpu-slice-attempt"]) == (record.maker, "1")
    assert labels["cloud.google.com/tpu-node-group-name"] == "my-group"
    assert all(labels.values())
    assert "iam.gke.io/gke-metadata-server-enabled" not in labels


def test_those_of_an_adopted_slice_are_the_instances_of_tpu_operators_group() -> None:
    record = with_fields(at(Reason.ADOPTED), attempt=0, legacy_pool="my-group-mig-1ec0000c")
    expected = nodes_expected(record, self_managed())
    assert expected is not None
    assert (expected.attempt, expected.instances) == (0, "gce://demo-project/us-central1-c/my-group-mig-1ec0000c-")
    assert dict(expected.labels)["cloud.google.com/gke-nodepool"] == "my-group-mig-1ec0000c"


def test_hosts_of_gke_are_labelled_by_gke() -> None:
    assert nodes_expected(at(Reason.HOSTS_JOINING, a_record()), settings()) is None


def test_without_a_spec_nothing_is_known_of_them() -> None:
    assert nodes_expected(at(Reason.HOSTS_JOINING, a_group_record(spec=None)), self_managed()) is None
