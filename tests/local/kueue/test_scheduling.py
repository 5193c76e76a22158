from datetime import timedelta

import pytest

from infra.local.cluster.kueue.quota import written
from infra.local.cluster.kueue.scheduling import Verdict, decide
from infra.local.cluster.objects import Object
from tests.local.kueue.world import NOON, admitted, cluster_queue, flavor, pod_set, stored, workload

LOWER = {"withinClusterQueue": "LowerPriority"}
NEWER = {"withinClusterQueue": "LowerOrNewerEqualPriority"}


def verdicts(queue: Object, queued: list[Object], holders: list[Object] | None = None) -> list[Verdict]:
    return list(decide(stored(queue), queued, holders or [], {"tpu": stored(flavor())}))


def admissions(found: list[Verdict]) -> list[str]:
    return [one.workload["metadata"]["name"] for one in found if one.admission is not None]


def victims(found: list[Verdict]) -> list[str]:
    return [victim["metadata"]["name"] for one in found for victim in one.preempts]


def test_the_higher_priority_goes_first_and_then_the_older() -> None:
    queued = [workload("young", age=1), workload("old", age=2), workload("urgent", priority=1)]
    assert admissions(verdicts(cluster_queue(16), queued)) == ["urgent", "old"]


def test_after_a_timeout_a_workload_stands_behind_those_that_came_meanwhile() -> None:
    late = workload("late", age=60)
    late["status"] = {
        "conditions": [
            {
                "type": "Evicted",
                "status": "True",
                "reason": "PodsReadyTimeout",
                "lastTransitionTime": "2026-01-01T11:59:40Z",
            }
        ]
    }
    assert admissions(verdicts(cluster_queue(8), [late, workload("other", age=30)])) == ["other"]


def test_a_small_workload_passes_by_a_big_one_that_does_not_fit() -> None:
    queued = [workload("big", pod_set(count=3), age=2), workload("small", age=1)]
    assert admissions(verdicts(cluster_queue(12), queued, [admitted(workload("runs", pod_set(count=1)))])) == ["small"]


def test_under_strict_order_nothing_passes_by() -> None:
    queued = [workload("big", pod_set(count=3), age=2), workload("small", age=1)]
    found = verdicts(cluster_queue(8, queueingStrategy="StrictFIFO"), queued)
    assert [(one.workload["metadata"]["name"], one.reason) for one in found] == [("big", "ExceedsMaxQuota")]


def test_quota_is_given_once() -> None:
    found = verdicts(cluster_queue(8), [workload("one", age=2), workload("two", age=1)])
    assert admissions(found) == ["one"]
    assert found[1].reason == "WaitingForQuota"


def test_pods_that_have_succeeded_give_their_quota_to_others() -> None:
    runs = admitted(workload("runs", pod_set(), pod_set("driver")))
    runs["status"]["reclaimablePods"] = [{"name": "driver", "count": 2}]
    assert admissions(verdicts(cluster_queue(16), [workload("next")], [runs])) == ["next"]


def test_without_a_policy_nobody_is_preempted() -> None:
    found = verdicts(cluster_queue(8), [workload("urgent", priority=9)], [admitted(workload("runs"))])
    assert victims(found) == []
    assert found[0].reason == "WaitingForQuota"


def test_a_lower_priority_is_preempted_and_those_behind_wait() -> None:
    queued = [workload("urgent", priority=9), workload("small", pod_set(count=0))]
    found = verdicts(cluster_queue(8, preemption=LOWER), queued, [admitted(workload("runs"))])
    assert victims(found) == ["runs"]
    assert len(found) == 1
    assert found[0].reason == "WaitingForPreemptedWorkloads"
    assert found[0].message.endswith("8 more needed. Pending the preemption of 1 workload(s)")


def test_an_equal_priority_is_preempted_only_where_the_policy_says_newer() -> None:
    older, newer = workload("older", age=9), admitted(workload("newer", age=1))
    assert victims(verdicts(cluster_queue(8, preemption=LOWER), [older], [newer])) == []
    assert victims(verdicts(cluster_queue(8, preemption=NEWER), [older], [newer])) == ["newer"]
    eldest = admitted(workload("eldest", age=99))
    assert victims(verdicts(cluster_queue(8, preemption=NEWER), [older], [eldest])) == []


def test_the_least_important_and_the_latest_go_and_no_more_than_needed() -> None:
    holders = [
        admitted(workload("middle", priority=2)),
        admitted(workload("low-early", priority=1), NOON - timedelta(hours=2)),
        admitted(workload("low-late", priority=1), NOON - timedelta(hours=1)),
    ]
    queue = cluster_queue(24, preemption=LOWER)
    assert victims(verdicts(queue, [workload("urgent", priority=9)], holders)) == ["low-late"]
    two = workload("urgent", pod_set(count=4), priority=9)
    assert victims(verdicts(queue, [two], holders)) == ["low-late", "low-early"]


def test_a_small_victim_stays_when_a_big_one_has_to_go_anyway() -> None:
    holders = [
        admitted(workload("small", pod_set(count=1), priority=1)),
        admitted(workload("big", pod_set(count=3), priority=2)),
    ]
    found = verdicts(cluster_queue(16, preemption=LOWER), [workload("urgent", pod_set(count=3), priority=9)], holders)
    assert victims(found) == ["big"]


def test_nobody_is_preempted_in_vain() -> None:
    holders = [admitted(workload("low", priority=1)), admitted(workload("high", priority=9))]
    found = verdicts(cluster_queue(16, preemption=LOWER), [workload("wants", pod_set(count=4), priority=5)], holders)
    assert victims(found) == []


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("google.com/tpu", 8 * 10**9, "8"),
        ("google.com/tpu", 2000 * 10**9, "2k"),
        ("cpu", 1500 * 10**6, "1500m"),
        ("cpu", 3 * 10**9, "3"),
        ("memory", 16 * 2**30 * 10**9, "16Gi"),
        ("memory", 1000 * 10**9, "1000"),
        ("google.com/tpu", 0, "0"),
    ],
)
def test_amounts_are_written_as_quantities(resource: str, amount: int, text: str) -> None:
    assert written(resource, amount) == text
