"""The watch cache of Kubernetes' own API server."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.kubernetes.cluster import Cluster
from tpu_standins.clients.api import Api
from tpu_standins.clients.cache import Cache, NotListed, watching
from tpu_standins.clients.errors import ApiError
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.testing.parts import waited
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


@pytest.fixture
def api(cluster: Cluster) -> Iterator[Api]:
    connected = Api.of(cluster.plane.kubeconfig)
    yield connected
    connected.close()


@pytest.fixture
def cache(api: Api) -> Iterator[Cache]:
    with watching(api, {"services": {}, "events": {"fieldSelector": "reason=Chosen"}}) as objects:
        yield objects


def service(name: str) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"clusterIP": "None"}}


def names(cache: Cache) -> set[str]:
    return {each["metadata"]["name"] for each in cache.stored("services", "default")}


def test_own_writes_are_seen_at_once(cache: Cache) -> None:
    made = cache.create("services", service("own"))
    assert "own" in names(cache)
    made["metadata"]["labels"] = {"a": "b"}
    cache.update("services", made)
    assert cache.get("services", "default", "own")["metadata"]["labels"] == {"a": "b"}
    cache.patch("services", "default", "own", {"metadata": {"labels": {"a": "c"}}})
    assert cache.get("services", "default", "own")["metadata"]["labels"] == {"a": "c"}
    cache.delete("services", "default", "own")
    assert "own" not in names(cache)
    with pytest.raises(ApiError) as refused:
        cache.get("services", "default", "own")
    assert (refused.value.code, refused.value.reason) == (404, "NotFound")


def test_nothing_is_watched_any_more_once_it_has_ended(api: Api) -> None:
    """Watches of other tests may take a while to end."""
    until(lambda: _followed() == [], "the end of other watches")
    with watching(api, ["services"]):
        assert _followed() == ["watch of services"]
    until(lambda: _followed() == [], "the end of the watch")


def _followed() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("watch of ")]


def test_writes_of_others_are_seen_soon_and_counted(cache: Cache, api: Api) -> None:
    before = cache.changes
    api.create("services", service("others"))
    assert cache.wait_for_change(before, within=PATIENCE_SECONDS) > before
    waited(lambda: "others" in names(cache), "the service")
    api.delete("services", "default", "others")
    waited(lambda: "others" not in names(cache), "its end")


def test_objects_have_their_types_although_lists_leave_them_out(cache: Cache) -> None:
    assert {(each["apiVersion"], each["kind"]) for each in cache.stored("services")} == {("v1", "Service")}


def test_only_what_is_selected_is_kept(cache: Cache, api: Api) -> None:
    for reason in ("Other", "Chosen"):
        event = {"metadata": {"name": f"e-{reason.lower()}"}, "involvedObject": {"namespace": "default"}}
        api.create("events", event | {"reason": reason})
    waited(lambda: cache.stored("events"), "the event")
    assert {each["reason"] for each in cache.stored("events")} == {"Chosen"}


def test_what_is_not_watched_is_asked_for(cache: Cache) -> None:
    assert cache.get("namespaces", None, "default")["kind"] == "Namespace"


def test_an_older_version_is_refused(cache: Cache) -> None:
    made = cache.create("services", service("old"))
    cache.patch("services", "default", "old", {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(ApiError) as refused:
        cache.update("services", made)
    assert (refused.value.code, refused.value.reason) == (409, "Conflict")


def test_what_is_applied_again_stays_the_same(api: Api) -> None:
    first = api.apply("services", service("applied"), manager="test")
    second = api.apply("services", service("applied"), manager="test")
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]


def test_a_kind_that_is_not_served_is_said(api: Api) -> None:
    unserved = Cache(api, {"workloads": {}})
    unserved.start()

    def told() -> str:
        with pytest.raises(NotListed) as missing:
            unserved.wait_until_listed(0)
        return str(missing.value).partition("no answer")[0]

    try:
        until(lambda: "404" in told(), "an answer")
        assert told().startswith("cannot list workloads in 0 s: the API server answers 404")
    finally:
        unserved.stop()
