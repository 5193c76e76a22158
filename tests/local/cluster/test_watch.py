import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from tests.local.cluster.world import PODS, World, pod

DEADLINE = 5.0


def told(story: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(story, DEADLINE))


async def take(events: AsyncIterator[dict[str, Any]], count: int) -> list[tuple[str, str]]:
    """Return the next events, as type and name."""
    seen = []
    for _ in range(count):
        event = await anext(events)
        seen.append((event["type"], event["object"]["metadata"].get("name", "")))
    return seen


def relabelled(world: World, name: str, **labels: str) -> None:
    found = world.objects.get("pods", "default", name)
    found["metadata"]["labels"] = labels
    world.objects.update("pods", found)


def test_a_watch_without_a_version_begins_with_what_is_there() -> None:
    async def story() -> None:
        world = World()
        world.objects.create("pods", pod("old"))
        events = world.watch(PODS)
        assert await take(events, 1) == [("ADDED", "old")]
        world.objects.create("pods", pod("new"))
        world.objects.delete("pods", "default", "old")
        assert await take(events, 2) == [("ADDED", "new"), ("DELETED", "old")]

    told(story())


def test_a_watch_goes_on_from_the_version_of_a_list() -> None:
    async def story() -> None:
        world = World()
        world.objects.create("pods", pod("old"))
        version = world.call("GET", PODS)["metadata"]["resourceVersion"]
        world.objects.create("pods", pod("meanwhile"))
        events = world.watch(PODS, resourceVersion=version)
        assert await take(events, 1) == [("ADDED", "meanwhile")]

    told(story())


def test_entering_a_selection_is_added_and_leaving_it_is_deleted() -> None:
    async def story() -> None:
        world = World()
        world.objects.create("pods", pod("one"))
        events = world.watch(PODS, labelSelector="app=a", resourceVersion=str(world.objects.version))
        relabelled(world, "one", app="a")
        relabelled(world, "one", app="a", more="x")
        relabelled(world, "one", app="b")
        left = world.objects.version
        relabelled(world, "one", app="c")
        world.objects.delete("pods", "default", "one")
        world.objects.create("pods", pod("two", labels={"app": "a"}))
        assert await take(events, 2) == [("ADDED", "one"), ("MODIFIED", "one")]
        deleted = await anext(events)
        assert deleted["object"]["metadata"]["labels"] == {"app": "a", "more": "x"}
        assert deleted["object"]["metadata"]["resourceVersion"] == str(left)
        assert (deleted["type"], await take(events, 1)) == ("DELETED", [("ADDED", "two")])

    told(story())


def test_bookmarks_say_how_far_the_watch_is() -> None:
    async def story() -> None:
        world = World(bookmark_seconds=0.01)
        events = world.watch(PODS, allowWatchBookmarks="true", resourceVersion=str(world.objects.version))
        world.objects.create("nodes", {"metadata": {"name": "unwatched"}})
        bookmark = await anext(events)
        assert (bookmark["type"], bookmark["object"]["kind"]) == ("BOOKMARK", "Pod")
        assert bookmark["object"]["metadata"]["resourceVersion"] == str(world.objects.version)

    told(story())


def test_a_forgotten_version_is_an_error_in_the_stream() -> None:
    async def story() -> None:
        world = World()
        old = str(world.objects.version)
        world.objects.create("pods", pod())
        world.objects.expire_history()
        (event,) = [event async for event in world.watch(PODS, resourceVersion=old)]
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")

    told(story())


def test_a_watch_ends_at_its_timeout() -> None:
    async def story() -> None:
        world = World()
        events = world.watch(PODS, timeoutSeconds="1", resourceVersion=str(world.objects.version))
        assert [event async for event in events] == []

    told(story())


def test_a_closed_watch_ends() -> None:
    async def story() -> None:
        world = World()
        world.objects.create("pods", pod())
        events = world.watch(PODS)
        await take(events, 1)
        assert (world.watches.close("nodes"), world.watches.close("pods")) == (0, 1)
        assert [event async for event in events] == []

    told(story())


def test_a_silent_watch_stays_open_and_says_nothing() -> None:
    async def story() -> None:
        world = World(bookmark_seconds=0.01)
        world.objects.create("pods", pod("first"))
        silent, other = world.watch(PODS, allowWatchBookmarks="true"), world.watch(PODS)
        await take(silent, 1)
        assert world.watches.silence() == 1
        await take(other, 1)
        waiting = asyncio.ensure_future(anext(silent))
        world.objects.create("pods", pod("second"))
        assert await take(other, 1) == [("ADDED", "second")]
        done, _ = await asyncio.wait({waiting}, timeout=0.05)
        assert not done
        waiting.cancel()

    told(story())


def test_kubectl_watches_a_table() -> None:
    async def story() -> None:
        world = World()
        world.objects.create("pods", pod())
        event = await anext(world.watch(PODS, accept="application/json;as=Table;v=v1;g=meta.k8s.io"))
        assert (event["object"]["kind"], event["object"]["rows"][0]["cells"][0]) == ("Table", "one")

    told(story())


def test_a_server_that_stops_lets_no_watch_begin() -> None:
    async def seen() -> list[dict[str, Any]]:
        world = World()
        world.objects.create("pods", pod())
        world.watches.end()
        return [event async for event in world.watch(PODS, timeoutSeconds="30")]

    assert [event["type"] for event in told(seen())] == ["ADDED"]
