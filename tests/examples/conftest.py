"""One stack with a real control plane for all examples that are run, and their stories, which begin together.

The admission policy is on: no pod of one workload comes to the slice of another, however many are of one shape.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from infra.local.cluster_choice import Built
from infra.local.plan import Plan
from infra.local.stack import running
from tests.examples.cluster import FAST, Cluster, asked_by_a_user, seed
from tests.examples.stories import EXAMPLES, HALL, OFFICE, STATIC, STORIES, static_slice
from tpu_standins.kubernetes.programs import Programs
from tpu_standins.prerequisites import Tools

FILLED_BY_HAND = ("--fill-seconds", "100000")


@pytest.fixture(scope="package")
def cluster(programs: Programs, tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The stack, on which everything is applied, as users would."""
    state, arguments = tmp_path_factory.mktemp("examples"), (*FAST, *FILLED_BY_HAND)
    plan = Plan(state=state, sweep_seconds=10, cluster=Built(programs), queues=True, gke_arguments=arguments)
    with running(plan, seed) as stack, asked_by_a_user(stack, tools) as found:
        for name in (STATIC, HALL, OFFICE):
            static_slice(found.addresses, name)  # before others use up GKE's operations
        found.pin()
        found.kubectl("apply", *(part for example in EXAMPLES for part in ("-f", str(example))))
        for name, begin in STORIES.items():
            found.create([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])
            begin(found.within(name))
        yield found
