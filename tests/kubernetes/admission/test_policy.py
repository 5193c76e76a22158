"""The policy by which pods run on hosts that are meant for them: every pod of the golden table on a real API server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from relay.cluster import Cluster as Calls
from relay.connection import Connection
from tests.infra.admission.case import Case
from tests.infra.admission.cases import CASES
from tests.infra.admission.pods import (
    SELECTOR,
    a_container,
    a_pod,
    of_jobset,
    requiring,
    term,
    terms_of,
    together,
    within,
)
from tests.infra.admission.settings import (
    ALL_SETTINGS,
    BINDING,
    DEFINED,
    GANGS,
    GANGS_BINDING,
    HINT,
    MANIFEST,
    OFF,
    POLICY,
    STRIP,
)
from tests.kubernetes.admission.created import Outcome, Placement, created, placement_of
from tests.kubernetes.cluster import Cluster
from tpu_slices.domain.planning.host_labels import CAPACITY_KEYS
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

CANARIES = (
    of_jobset(nodeSelector={**SELECTOR, **dict.fromkeys(CAPACITY_KEYS, "true")}),
    a_pod(a_container(chips="16"), by=("apps/v1", "ReplicaSet", "web")),
)
"""Pods that show each setting: the second that of `serve`."""
Seen = list[Placement]
KIND = "mutatingadmissionpolicy"
SERVER_SIDE = ("apply", "--server-side", "-f")


def manifest(settings: Mapping[str, str]) -> str:
    """Return the manifest with these settings, as an operator would edit it."""
    policy: dict[str, Any] = json.loads(json.dumps(DEFINED))
    for variable in policy["spec"]["variables"]:
        variable["expression"] = settings.get(variable["name"], variable["expression"])
    return yaml.safe_dump_all([policy, BINDING, GANGS, GANGS_BINDING])


UNJUDGED: Seen = [placement_of(each) for each in CANARIES]


def seen(cluster: Cluster) -> Seen:
    """Return where the pods may run that show each setting."""
    replies = [created(cluster, each) for each in CANARIES]
    assert all(each.object for each in replies), [each.refused for each in replies]
    return [placement_of(each.object) for each in replies if each.object]


def expected(settings: Mapping[str, str]) -> Seen:
    return [placement_of(POLICY.admitted(each, **settings)) for each in CANARIES]


def awaited(cluster: Cluster, settings: Mapping[str, str] | None) -> None:
    """Wait until pods are created under these settings, or without the policy."""
    placement = UNJUDGED if settings is None else expected(settings)
    until(lambda: seen(cluster) == placement, f"the settings {settings}")


def apply(cluster: Cluster, settings: Mapping[str, str]) -> None:
    said = cluster.kubectl(*SERVER_SIDE, "-", stdin=manifest(settings))
    assert (said.code, said.error) == (0, ""), said.error


@pytest.fixture(autouse=True, scope="module")
def removed(cluster: Cluster) -> Iterator[None]:
    """Leave nothing of the policy to the other files."""
    yield
    cluster.unpin()


@pytest.fixture
def without(cluster: Cluster) -> Cluster:
    """A control plane on which nothing of the policy is left."""
    cluster.unpin()
    return cluster


@pytest.fixture(scope="module")
def outcomes(cluster: Cluster) -> dict[str, Outcome]:
    cluster.unpin()
    bare = {case.name: created(cluster, case.pod) for case in CASES}
    found: dict[str, Outcome] = {}
    for settings in ALL_SETTINGS:
        apply(cluster, settings)
        awaited(cluster, settings)
        of_these = [case for case in CASES if case.settings == settings]
        found |= {case.name: Outcome(bare[case.name], created(cluster, case.pod)) for case in of_these}
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_pod_runs_where_the_table_says_and_nothing_else_of_it_changes(
    case: Case, outcomes: dict[str, Outcome]
) -> None:
    outcomes[case.name].check(case)


def test_a_pod_may_require_one_of_many_hosts(outcomes: dict[str, Outcome], cluster: Cluster) -> None:
    """Judging again costs the API server most, and it allows an expression only so much."""
    assert outcomes
    apply(cluster, OFF)
    awaited(cluster, OFF)
    hosts = [term(within("kubernetes.io/hostname", f"host-{number}")) for number in range(500)]
    reply = created(cluster, of_jobset(annotations=together(), affinity=requiring(*hosts)))
    assert reply.object, reply.refused
    assert len(terms_of(reply.object)) == 3 * len(hosts)


def test_it_is_applied_without_a_warning_and_again_without_a_change(without: Cluster) -> None:
    generations = []
    for _ in range(2):
        said = without.kubectl(*SERVER_SIDE, str(MANIFEST))
        assert (said.code, said.error) == (0, ""), said.error
        generations.append(version_of(without))
    assert generations[0] == generations[1]
    awaited(without, OFF)


def version_of(cluster: Cluster) -> Any:
    said = cluster.kubectl("get", f"{KIND},{KIND}binding", "-o", "json")
    return [each["metadata"]["resourceVersion"] for each in json.loads(said.out)["items"]]


def test_it_is_applied_server_side_after_it_was_applied_client_side(without: Cluster) -> None:
    first = without.kubectl("apply", "-f", str(MANIFEST))
    assert (first.code, first.error) == (0, "")
    second = without.kubectl(*SERVER_SIDE, str(MANIFEST))
    assert (second.code, second.error) == (0, "")
    awaited(without, OFF)


def test_settings_that_are_changed_in_place_count(without: Cluster) -> None:
    for settings in (OFF, STRIP, HINT, OFF):
        apply(without, settings)
        awaited(without, settings)


def test_settings_that_are_changed_while_it_is_off_count_from_the_first_pod_on(without: Cluster) -> None:
    apply(without, OFF)
    awaited(without, OFF)
    without.unpin()
    apply(without, STRIP)
    assert first_pinned(without) == expected(STRIP)


def test_settings_count_when_only_the_binding_is_made_anew(without: Cluster, tmp_path: Path) -> None:
    apply(without, STRIP)
    awaited(without, STRIP)
    binding = tmp_path / "binding.yaml"
    binding.write_text(yaml.safe_dump(BINDING))
    assert without.kubectl("delete", "-f", str(binding)).code == 0
    awaited(without, None)
    apply(without, HINT)
    awaited(without, HINT)


def first_pinned(cluster: Cluster) -> Seen:
    """Return where the first pod may run that the policy changes."""
    shown: list[Seen] = []

    def pinned() -> bool:
        shown.append(seen(cluster))
        return shown[-1] != UNJUDGED

    until(pinned, "the policy to take effect")
    return shown[-1]


def test_the_relay_sees_whether_jobs_are_pinned(without: Cluster) -> None:
    with Connection({"KUBECONFIG": str(without.plane.kubeconfig)}) as connection:
        assert Calls(connection).has_policy() is False
        apply(without, OFF)
        assert Calls(connection).has_policy() is True
        connection.rest_client.pool_manager.clear()
