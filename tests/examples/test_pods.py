"""A Deployment on a self-managed cluster that serves such: a slice for each pod, handed on in a rolling update."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
import yaml

from infra.local.addresses import Addresses
from infra.local.cluster_choice import Built
from infra.local.demo.vendors import Compute
from infra.local.plan import SELF_MANAGED_ID, Plan
from infra.local.settings import checked, put
from infra.local.stack import running
from tests.examples.cluster import IN_SECONDS, Cluster, asked_by_a_user
from tests.examples.stories import FOLDER
from tpu_slices.domain.model.clusters import PodsOf
from tpu_slices.domain.model.slices import ClusterId
from tpu_standins.kubernetes.programs import Programs
from tpu_standins.prerequisites import Tools

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]
EXAMPLE, SETTINGS = FOLDER / "pods" / "deployment.yaml", FOLDER / "clusters" / "serving.yaml"
FAST = ("--create-seconds", "1", "--join-seconds", "0.2")


def seed(addresses: Addresses) -> None:
    """Write the settings of the example for the local cluster."""
    written = yaml.safe_load(SETTINGS.read_text())
    document = {**written, "path": addresses.cluster_path, "zone": f"{addresses.location}-b", "limits": IN_SECONDS}
    put(checked(yaml.safe_dump(document), ClusterId(addresses.cluster_id)), addresses)


@pytest.fixture(scope="module")
def serving(programs: Programs, tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    plan = Plan(
        state=tmp_path_factory.mktemp("serving"),
        sweep_seconds=10,
        cluster=Built(programs),
        cluster_id=SELF_MANAGED_ID,
        compute=True,
        unbooted="its hosts join by themselves",
        serve=(PodsOf.DEPLOYMENT,),
    )
    with running(plan, seed) as stack, asked_by_a_user(stack, tools) as found:
        yield found


def ready(cluster: Cluster) -> int:
    return int((cluster.get("deployments", "web").get("status") or {}).get("readyReplicas", 0))


def made(cluster: Cluster) -> set[str]:
    """Return the groups that were ever created."""
    calls = Compute(cluster.addresses).calls()
    return {each.pool for each in calls if (each.method, each.code) == ("instanceGroupManagers.insert", "OK")}


def test_each_pod_gets_a_slice_that_the_next_one_is_handed_and_nothing_is_left(serving: Cluster) -> None:
    pools = Compute(serving.addresses).pools
    serving.kubectl("apply", "-f", str(EXAMPLE))
    serving.until(lambda: ready(serving) == 2)
    first = set(pools())
    assert len(first) == 2

    before = set(serving.running("app=web"))
    serving.kubectl("rollout", "restart", "deployment/web")
    serving.until(lambda: len(now := set(serving.running("app=web"))) == 2 and not now & before)
    serving.until(lambda: ready(serving) == 2)
    assert (set(pools()), made(serving)) == (first, first)

    serving.kubectl("scale", "deployment/web", "--replicas=1")
    serving.until(lambda: len(pools()) == 1)
    assert ready(serving) == 1

    serving.kubectl("delete", "deployment/web")
    serving.until(lambda: not pools())
    serving.until(partial(no_nodes, serving))


def no_nodes(cluster: Cluster) -> bool:
    return not cluster.items("nodes", "google.com/tpu-slice-owner-uid")
