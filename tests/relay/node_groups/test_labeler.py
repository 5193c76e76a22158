"""Nodes that came without labels get those of their slice, if their machines are instances of its group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from relay import translate
from relay.node_groups.labeler import EXPECTED_FOR, NodeLabeler
from relay.objects import PoolKey
from tests.builders import NOW, with_fields
from tests.domain.planning.test_node_groups import self_managed
from tests.domain.reporting.test_node_groups import at
from tests.relay.node_groups.objects import SLICE, Json
from tpu_slices.domain.model.node_groups import NodesExpected
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.planning.expected_nodes import nodes_expected
from tpu_slices.domain.planning.tpu_operator import operator_names
from tpu_slices.ports.errors import Temporary
from tpu_slices_simulator.objects import patched

MACHINE = f"gce://demo-project/us-central1-c/{SLICE}-1-x7k2"
HOSTS_IN = "projects/demo-project/locations/us-central1"
SLICE_ID = "google.com/tpu-slice-id"


def expected() -> NodesExpected:
    found = nodes_expected(at(Reason.HOSTS_JOINING), self_managed())
    assert found is not None
    return found


@dataclass
class Site:
    """Nodes, and a clock."""

    stored: dict[str, Json] = field(default_factory=dict)
    lists: int = 0
    now: datetime = NOW
    error: Exception | None = None
    refused: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.labeler = NodeLabeler(self, lambda: self.now)

    def joins(self, name: str = "host-a", provider: str = MACHINE, **labels: str) -> None:
        metadata = {"name": name, "uid": name, "resourceVersion": "5", "labels": labels}
        self.stored[name] = {"metadata": metadata, "spec": {"providerID": provider}, "status": {}}

    def nodes(self) -> Sequence[Json]:
        self.lists += 1
        if self.error is not None:
            raise self.error
        return list(self.stored.values())

    def patch_node(self, node: str, patch: Mapping[str, Any]) -> None:
        if node in self.refused:
            raise Temporary("the API server refused: 403 Forbidden")
        self.stored[node] = patched(self.stored[node], patch)

    def labels(self, name: str = "host-a") -> dict[str, str]:
        found: dict[str, str] = self.stored[name]["metadata"]["labels"]
        return found


@pytest.fixture
def site() -> Site:
    site = Site()
    site.labeler.expect(expected())
    return site


def test_a_node_without_labels_becomes_a_host_of_its_slice(site: Site) -> None:
    site.joins()
    site.labeler.look()
    assert site.labels() == dict(expected().labels)
    host = translate.host(site.stored["host-a"], "projects/demo-project/locations/us-central1")
    assert host is not None
    assert host.pool == (SLICE, 1)


def test_labels_that_it_has_stay_as_they_are(site: Site) -> None:
    site.joins(
        team="a", **{"topology.kubernetes.io/zone": "us-central1-c", "node.kubernetes.io/instance-type": "other"}
    )
    site.labeler.look()
    assert (site.labels()["team"], site.labels()["node.kubernetes.io/instance-type"]) == ("a", "other")


@pytest.mark.parametrize(
    "provider",
    [
        f"gce://other-project/us-central1-c/{SLICE}-1-x7k2",
        f"gce://demo-project/us-central1-a/{SLICE}-1-x7k2",
        f"gce://demo-project/us-central1-c/{SLICE}-2-x7k2",
        "gce://demo-project/us-central1-c/somebody-elses",
        "",
    ],
)
def test_a_node_on_another_machine_is_left_alone(site: Site, provider: str) -> None:
    site.joins(provider=provider)
    site.labeler.look()
    assert site.labels() == {}


def adopted(site: Site, node: str) -> None:
    """Let a node be on a machine of TPU operator's, whose slice was adopted; `node`: the end of the machine's name."""
    record = at(Reason.ADOPTED)
    names = operator_names(record.owner)
    found = nodes_expected(with_fields(record, attempt=0, legacy_pool=names.group), self_managed())
    assert found is not None
    site.labeler.expect(found)
    site.joins(provider=f"gce://demo-project/us-central1-c/{names.group}{node}")
    site.labeler.look()


def test_a_host_of_an_adopted_slice_is_one_of_attempt_0(site: Site) -> None:
    adopted(site, "-x7k2")
    host = translate.host(site.stored["host-a"], HOSTS_IN)
    assert host is not None
    assert host.pool == PoolKey(SLICE, 0)


def test_labels_of_attempt_0_on_a_machine_that_tpu_operator_did_not_make_for_it_make_no_host(site: Site) -> None:
    adopted(site, "-x7k2")
    labelled = site.stored["host-a"]
    other = {**labelled, "spec": {"providerID": "gce://demo-project/us-central1-c/my-group-mig-00000000-x7k2"}}
    assert translate.host(other, HOSTS_IN) is None
    unnamed = patched(labelled, {"metadata": {"labels": {"google.com/tpu-provisioner-parent-name": None}}})
    assert translate.host(unnamed, HOSTS_IN) is None


def test_a_node_that_says_it_is_another_slices_is_left_alone(site: Site) -> None:
    site.joins(**{SLICE_ID: "tpu-other-0-aaaaaaaaaaaaa"})
    site.labeler.look()
    assert site.labels() == {SLICE_ID: "tpu-other-0-aaaaaaaaaaaaa"}


def test_a_node_that_has_its_labels_is_not_written(site: Site) -> None:
    site.joins()
    site.labeler.look()
    before = dict(site.stored)
    site.labeler.look()
    assert site.stored == before


def test_nodes_are_listed_only_while_some_are_expected(site: Site) -> None:
    site.now += EXPECTED_FOR - timedelta(seconds=1)
    site.labeler.look()
    site.now += timedelta(seconds=1)
    site.labeler.look()
    assert site.lists == 1


def test_what_is_said_again_lasts_longer(site: Site) -> None:
    site.now += timedelta(minutes=20)
    site.labeler.expect(expected())
    site.now += timedelta(minutes=20)
    site.joins()
    site.labeler.look()
    assert site.labels()[SLICE_ID] == SLICE


def test_one_node_that_cannot_be_labelled_keeps_no_other_waiting(site: Site) -> None:
    site.joins("host-a")
    site.joins("host-b", f"{MACHINE}b")
    site.refused.add("host-a")
    with capture_logs() as lines:
        site.labeler.look()
    assert (site.labels("host-a"), site.labels("host-b")[SLICE_ID]) == ({}, SLICE)
    assert [line["error"] for line in lines] == ["host-a: the API server refused: 403 Forbidden"]


def test_a_failure_is_logged_once_and_tried_again(site: Site) -> None:
    site.joins()
    site.error = Temporary("the API server does not answer")
    with capture_logs() as lines:
        for _ in range(3):
            site.labeler.look()
    assert [line["event"] for line in lines] == ["node.label_failed"]
    site.error = None
    site.labeler.look()
    assert site.labels()[SLICE_ID] == SLICE
