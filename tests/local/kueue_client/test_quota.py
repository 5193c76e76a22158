from __future__ import annotations

from typing import Any

import pytest

from infra.local.kueue.quota import Why, decide
from tests.local.kueue_client.builders import FLAVORS, V5E, V6E, admitted, flavor, queue, replicated, workload

Json = dict[str, Any]


def decisions(
    cluster_queue: Json, waiting: list[Json], holders: list[Json] | None = None, **flavors: Json
) -> dict[str, Json | Why]:
    found = decide(cluster_queue, waiting, holders or [], FLAVORS | flavors)
    return {one["metadata"]["name"]: decision for one, decision in found}


def admissions(found: dict[str, Json | Why]) -> list[str]:
    return [name for name, decision in found.items() if not isinstance(decision, Why)]


def message(decision: Json | Why) -> str:
    assert isinstance(decision, Why)
    return decision.message


def flavors(decision: Json | Why) -> list[str]:
    assert not isinstance(decision, Why)
    return [name for row in decision["podSetAssignments"] for name in row["flavors"].values()]


def test_the_higher_priority_goes_first_then_the_older_then_by_name() -> None:
    waiting = [workload("b", age=1), workload("a", age=1), workload("old", age=2), workload("high", priority=1)]
    assert list(decisions(queue(chips=64), waiting)) == ["high", "old", "a", "b"]


def test_quota_is_given_once_and_the_next_is_told_what_it_lacks() -> None:
    found = decisions(queue(chips=16), [workload("one", age=2), workload("two", age=1)])
    assert admissions(found) == ["one"]
    assert found["two"] == Why(
        "WaitingForQuota",
        "couldn't assign flavors to pod set workers: "
        "insufficient unused quota for google.com/tpu in flavor v5e, 16 more needed",
    )


def test_what_is_held_counts_even_if_the_quota_was_lowered_since() -> None:
    found = decisions(queue(chips=8), [workload("two", replicated(hosts=2))], [admitted(workload("one"))])
    assert "16 more needed" in message(found["two"])


def test_a_small_workload_passes_a_big_one_but_not_in_a_strict_queue() -> None:
    waiting = [workload("big", replicated(hosts=8), age=2), workload("small", age=1)]
    assert admissions(decisions(queue(chips=16), waiting)) == ["small"]
    assert list(decisions(queue(chips=16, queueingStrategy="StrictFIFO"), waiting)) == ["big"]


def test_all_slices_of_all_replicated_jobs_need_quota_and_pods_without_chips_need_none() -> None:
    asking = workload("many", replicated(replicas=2), replicated("more"), replicated("driver", hosts=1, chips=0))
    assert admissions(decisions(queue(chips=47), [asking])) == []
    admission = decisions(queue(chips=48), [asking])["many"]
    assert isinstance(admission, dict)
    rows = [(row["name"], row.get("resourceUsage")) for row in admission["podSetAssignments"]]
    assert rows == [("workers", {"google.com/tpu": "32"}), ("more", {"google.com/tpu": "16"}), ("driver", None)]


def test_a_workload_gets_the_flavor_that_its_pods_select() -> None:
    found = decisions(queue(chips=16, v6e=16), [workload("one"), workload("two", replicated(nodeSelector=V6E))])
    assert {name: flavors(decision) for name, decision in found.items()} == {"one": ["v5e"], "two": ["v6e"]}


def test_pods_that_select_nothing_get_the_first_flavor_with_room() -> None:
    waiting = [workload(name, replicated(nodeSelector={})) for name in ("one", "two", "three")]
    found = decisions(queue(chips=16, v6e=16), waiting)
    assert {name: flavors(found[name]) for name in admissions(found)} == {"one": ["v5e"], "three": ["v6e"]}
    assert "v5e, 16 more needed, insufficient unused quota for google.com/tpu in flavor v6e" in message(found["two"])


SPOT = {"key": "cloud.google.com/gke-spot", "value": "true", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "allowed"),
    [
        (SPOT, True),
        ({"operator": "Exists"}, True),
        ({"key": SPOT["key"], "operator": "Exists"}, True),
        (SPOT | {"value": "false"}, False),
        (SPOT | {"key": "google.com/tpu"}, False),
        (SPOT | {"effect": "NoExecute"}, False),
    ],
)
def test_a_flavor_with_a_taint_is_for_pods_that_tolerate_it(toleration: Json, allowed: bool) -> None:
    tainted = flavor("v5e", V5E, nodeTaints=[SPOT])
    asking = workload("one", replicated(tolerations=[toleration]))
    assert bool(admissions(decisions(queue(), [asking], v5e=tainted))) is allowed
    assert admissions(decisions(queue(), [workload("two")], v5e=tainted)) == []


def test_a_flavor_may_tolerate_its_taint_for_all() -> None:
    tainted = flavor("v5e", V5E, nodeTaints=[SPOT], tolerations=[SPOT])
    assert admissions(decisions(queue(), [workload("one")], v5e=tainted)) == ["one"]


def test_pods_that_no_flavor_fits_are_told_so() -> None:
    found = decisions(queue(chips=16), [workload("one", replicated(nodeSelector=V6E))])
    assert found["one"] == Why(
        "NoMatchingFlavor",
        "couldn't assign flavors to pod set workers: no flavor of google.com/tpu has the pods' node selector",
    )


@pytest.mark.parametrize("written", ["1.5", "4Gi", ""])
def test_chips_that_no_pod_can_have_harm_no_other_workload(written: str) -> None:
    found = decisions(queue(chips=16), [workload("strange", replicated(chips=written)), workload("train")])
    assert "train" in admissions(found)
