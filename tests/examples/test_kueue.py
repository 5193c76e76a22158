"""JobSets in a queue of Kueue: no slice is bought before Kueue admits, and who waits is told what for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from infra.local.demo.http import get_json
from infra.local.prerequisites import Tools
from infra.local.stack import REPOSITORY, Plan, running
from tests.examples.cluster import FAST, PATIENCE, Cluster, seed, until_over

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.timeout(180)]

KUEUE = REPOSITORY / "examples" / "kueue"


@pytest.fixture(scope="module")
def cluster(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    state = tmp_path_factory.mktemp("kueue")
    with running(Plan(state=state, sweep_seconds=1, gke_arguments=FAST), seed) as stack:
        found = Cluster(stack.addresses, tools)
        found.kubectl("apply", "-f", str(KUEUE / "queues.yaml"))
        found.kubectl("apply", "-f", str(KUEUE / "jobsets.yaml"))
        yield found


def until(message: Callable[[], str], words: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while words not in (said := message()):
        assert time.monotonic() < deadline, f"waited for {words!r}; last: {said}"
        time.sleep(0.3)


def pools_of(cluster: Cluster, jobset: str) -> list[str]:
    pools: list[str] = [pool["name"] for pool in get_json(f"{cluster.addresses.buttons}/pools")["pools"]]
    return [pool for pool in pools if jobset in pool]


# The second may run on the slice that was made for the first, before that is given back, or on one of its own.
def test_who_is_not_admitted_buys_nothing_is_told_where_it_waits_and_has_its_turn(cluster: Cluster) -> None:
    until(
        lambda: cluster.kubectl("describe", "jobset", "kueue-second"),
        'It is suspended by Kueue, in the queue "team-a": see `kubectl describe workloads -n default`;',
    )
    until(lambda: cluster.kubectl("get", "events"), "1 of 1 slices ready.")
    assert pools_of(cluster, "kueue-second") == []
    until_over(cluster, "kueue-first")
    until_over(cluster, "kueue-second")
    deadline = time.monotonic() + PATIENCE
    while left := get_json(f"{cluster.addresses.buttons}/pools")["pools"]:
        assert time.monotonic() < deadline, left
        time.sleep(0.3)


def test_explain_answers_for_who_has_no_slice_yet(cluster: Cluster) -> None:
    cluster.kubectl("create", "-f", "-", text=QUEUELESS)
    until(lambda: cluster.kubectl("get", "events"), 'in the queue "nowhere"')
    report = cluster.slices("explain", "default/queueless")["report"]
    assert (report["reason"], report["wanted"]) == ("SlicesNotWanted", 0)


QUEUELESS = (
    (KUEUE / "jobsets.yaml")
    .read_text()
    .partition("---")[0]
    .replace("kueue-first", "queueless")
    .replace("queue-name: team-a", "queue-name: nowhere")
)
