"""The webhook on a real API server, which evaluates its conditions: every pod of the golden table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from tests.infra.admission.case import Case
from tests.infra.admission.cases import CASES
from tests.infra.admission.judges import options_of
from tests.infra.admission.pods import IDLE, a_pod, of_jobset
from tests.infra.admission.settings import ALL_SETTINGS
from tests.kubernetes.admission.created import Outcome, created, placement_of
from tests.kubernetes.cluster import Cluster
from tests.relay.webhook.process import Site, site
from tpu_standins.ports import free_ports
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]
CANARY = of_jobset()


@pytest.fixture(scope="module")
def where(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(cluster.plane.kubeconfig, tmp_path_factory.mktemp("webhook")) as made:
        yield made


def is_placed(cluster: Cluster) -> bool:
    found = created(cluster, CANARY).object
    return found is not None and placement_of(found) != placement_of(CANARY)


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a case as an operator gives them to the webhook."""
    options = options_of(settings)
    return {
        "STRIP_SPOT_AND_RESERVATION": str(options.strips_capacity).lower(),
        "LOCATION_HINT": options.location_hint,
        "SERVE": ",".join(options.serve),
        "GANGS": options.gangs,
    }


@pytest.fixture(scope="module")
def outcomes(cluster: Cluster, where: Site) -> dict[str, Outcome]:
    bare = {case.name: created(cluster, case.pod) for case in CASES}
    found: dict[str, Outcome] = {}
    for settings in ALL_SETTINGS:
        (port,) = free_ports(1)
        with where.replica(port, **environment(settings)):
            where.call(port, conditions=True)
            until(lambda: is_placed(cluster), "the webhook to be called")
            of_these = [case for case in CASES if case.settings == settings]
            found |= {case.name: Outcome(bare[case.name], created(cluster, case.pod)) for case in of_these}
            where.uncall()
            until(lambda: not is_placed(cluster), "the webhook to be called no more")
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_pod_runs_where_the_table_says_and_nothing_else_of_it_changes(
    case: Case, outcomes: dict[str, Outcome]
) -> None:
    outcomes[case.name].check(case)


def test_without_the_webhook_pods_with_chips_are_refused_and_no_others(cluster: Cluster, where: Site) -> None:
    (port,) = free_ports(1)
    with where.replica(port):
        where.call(port, conditions=True)
        until(lambda: is_placed(cluster), "the webhook to be called")
    until(lambda: created(cluster, CANARY).refused, "a refusal")
    assert "pods.tpu-slice-provisioner.google.com" in created(cluster, CANARY).refused
    assert created(cluster, a_pod(IDLE)).object
    where.uncall()
    until(lambda: created(cluster, CANARY).object, "the webhook to be called no more")
