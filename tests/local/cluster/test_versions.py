"""Lists of past versions, watches by name, and expiry."""

from datetime import timedelta
from typing import Any

import pytest

from infra.local.cluster.errors import ApiError
from tests.local.cluster.world import PODS, World, pod

EVENTS = "/api/v1/namespaces/default/events"
MERGE = "application/merge-patch+json"


def names(listed: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


def event(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "involvedObject": {"kind": "Pod", "namespace": "default"}}


def test_an_exact_version_is_listed_as_it_was() -> None:
    world = World()
    world.call("POST", PODS, pod("one", labels={"a": "1"}))
    world.call("POST", PODS, pod("two"))
    then = str(world.objects.version)
    world.call("PATCH", f"{PODS}/one", {"metadata": {"labels": {"a": "2"}}}, kind=MERGE)
    world.call("DELETE", f"{PODS}/two")
    world.call("POST", PODS, pod("three"))
    listed = world.call("GET", PODS, resourceVersion=then, resourceVersionMatch="Exact")
    assert (names(listed), listed["metadata"]["resourceVersion"]) == (["one", "two"], then)
    assert listed["items"][0]["metadata"]["labels"] == {"a": "1"}
    assert names(world.call("GET", PODS, resourceVersion=then, limit="5")) == ["one", "two"]
    later = world.call("GET", PODS, resourceVersion=then, resourceVersionMatch="NotOlderThan")
    assert names(later) == ["one", "three"]


def test_a_version_that_is_forgotten_is_gone() -> None:
    world = World()
    world.call("POST", PODS, pod("one"))
    then = str(world.objects.version)
    world.call("POST", PODS, pod("two"))
    world.objects.expire_history()
    with pytest.raises(ApiError) as gone:
        world.call("GET", PODS, resourceVersion=then, resourceVersionMatch="Exact")
    assert gone.value.code == 410


@pytest.mark.parametrize(
    "params",
    [
        {"resourceVersionMatch": "Exact"},
        {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
        {"resourceVersionMatch": "Exact", "resourceVersion": "1", "continue": "x"},
        {"resourceVersionMatch": "Newer", "resourceVersion": "1"},
        {"resourceVersionMatch": "NotOlderThan", "resourceVersion": "1", "watch": "true"},
    ],
)
def test_a_match_that_goes_with_nothing_is_refused(params: dict[str, str]) -> None:
    with pytest.raises(ApiError, match="resourceVersionMatch") as refused:
        World().call("GET", PODS, **params)
    assert refused.value.code == 422


def test_an_event_expires_an_hour_after_it_was_last_written() -> None:
    world = World()
    world.call("POST", EVENTS, event("old"))
    world.call("POST", EVENTS, event("renewed"))
    world.now += timedelta(minutes=50)
    world.call("PATCH", f"{EVENTS}/renewed", {"count": 2}, kind=MERGE)
    world.now += timedelta(minutes=10)
    assert names(world.call("GET", EVENTS)) == ["renewed"]
    world.now += timedelta(minutes=50)
    with pytest.raises(ApiError) as gone:
        world.call("GET", f"{EVENTS}/renewed")
    assert gone.value.code == 404


def test_watchers_see_that_an_event_expired() -> None:
    world = World()
    world.call("POST", EVENTS, event("old"))
    seen = world.objects.version
    world.now += timedelta(hours=1)
    world.call("POST", EVENTS, event("new"))
    changes = [(change.type, change.object["metadata"]["name"]) for change in world.objects.changes("events", seen)]
    assert sorted(changes) == [("ADDED", "new"), ("DELETED", "old")]


def test_a_day_of_events_leaves_those_of_the_last_hour() -> None:
    world = World()
    for index in range(24 * 12):
        world.now += timedelta(minutes=5)
        world.objects.create("events", event(f"event-{index}"))
    assert len(world.objects.list("events")) == 12
