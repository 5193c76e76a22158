"""One stack with a real control plane for all stories of ladders, warm slices and gangs, each in its namespace."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from infra.local.addresses import Addresses
from infra.local.cluster_choice import Built
from infra.local.plan import Plan
from infra.local.settings import checked, put
from infra.local.stack import running
from tests.examples.cluster import FAST, asked_by_a_user
from tests.local.stack.capacity.site import NAMESPACES, Site, settings_for
from tpu_slices.domain.model.slices import ClusterId
from tpu_standins.kubernetes.programs import Programs
from tpu_standins.prerequisites import Tools

SHORT = ("--stockout-seconds", "0.5", "--fill-seconds", "0.5", "--repair-seconds", "0.5")


@pytest.fixture(scope="package")
def site(programs: Programs, tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The stack, with a namespace for each story."""
    state = tmp_path_factory.mktemp("capacity")
    plan = Plan(state=state, sweep_seconds=1, cluster=Built(programs), gke_arguments=(*FAST, *SHORT))
    with running(plan, seed) as stack, asked_by_a_user(stack, tools) as cluster:
        cluster.pin()
        for name in NAMESPACES:
            cluster.create([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])
        yield Site(plan, stack, cluster)


def seed(addresses: Addresses) -> None:
    put(checked(settings_for(addresses.cluster_path), ClusterId(addresses.cluster_id)), addresses)
