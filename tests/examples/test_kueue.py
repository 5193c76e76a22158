"""JobSets in a queue of Kueue: no slice is created before Kueue admits one, and its report says what it waits for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from infra.local.demo.http import get_json
from infra.local.plan import REPOSITORY, Plan
from infra.local.prerequisites import Tools
from infra.local.stack import running
from tests.examples.cluster import FAST, PATIENCE, Cluster, seed, until_over

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.timeout(180)]

KUEUE = REPOSITORY / "examples" / "kueue"


@pytest.fixture(scope="module")
def cluster(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    state = tmp_path_factory.mktemp("kueue")
    with running(Plan(state=state, sweep_seconds=1, queues=True, gke_arguments=FAST), seed) as stack:
        found = Cluster(stack.addresses, tools)
        found.kubectl("apply", "-f", str(KUEUE / "queues.yaml"))
        found.kubectl("apply", "-f", str(KUEUE / "jobsets.yaml"))
        yield found


def until(message: Callable[[], str], words: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while words not in (last := message()):
        assert time.monotonic() < deadline, f"waited for {words!r}; last: {last}"
        time.sleep(0.3)


def pools_of(cluster: Cluster, jobset: str) -> list[str]:
    pools: list[str] = [pool["name"] for pool in get_json(f"{cluster.addresses.buttons}/pools")["pools"]]
    return [pool for pool in pools if jobset in pool]


# The second may run on the slice that was created for the first, before that is released, or on its own.
def test_a_jobset_that_is_not_admitted_creates_nothing_is_reported_and_runs_later(cluster: Cluster) -> None:
    until(
        lambda: cluster.kubectl("describe", "jobset", "kueue-second"),
        'The JobSet is suspended by Kueue in queue "team-a" (see `kubectl describe workloads -n default`);',
    )
    until(lambda: cluster.kubectl("get", "events"), "1 of 1 slices ready.")
    assert pools_of(cluster, "kueue-second") == []
    until_over(cluster, "kueue-first")
    until_over(cluster, "kueue-second")
    deadline = time.monotonic() + PATIENCE
    while left := get_json(f"{cluster.addresses.buttons}/pools")["pools"]:
        assert time.monotonic() < deadline, left
        time.sleep(0.3)


def test_a_jobset_without_a_slice_can_be_explained(cluster: Cluster) -> None:
    cluster.kubectl("create", "-f", "-", text=QUEUELESS)
    until(lambda: cluster.kubectl("get", "events"), 'in queue "nowhere"')
    report = cluster.slices("explain", "default/queueless")["report"]
    assert (report["reason"], report["requested"]) == ("NoSlicesRequested", 0)


QUEUELESS = (
    (KUEUE / "jobsets.yaml")
    .read_text()
    .partition("---")[0]
    .replace("kueue-first", "queueless")
    .replace("queue-name: team-a", "queue-name: nowhere")
)
