"""The local API server as the relay uses it: through the official Python client."""

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import kubernetes.watch
import orjson
import pytest
from kubernetes.client import ApiException, CoreV1Api, CustomObjectsApi

from tests.local.cluster.served import PROMPTLY, Served, connected, ended, serving
from tests.local.cluster.world import jobset, pod

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.timeout(60)]

watch: Any = kubernetes.watch  # untyped, although the package claims to be typed
JOBSETS = {"group": "jobset.x-k8s.io", "version": "v1alpha2", "plural": "jobsets"}


@pytest.fixture
def connection(served: Served) -> Iterator[Any]:
    with connected(served) as made:
        yield made


@pytest.fixture
def core(connection: Any) -> Any:
    return CoreV1Api(connection)


@pytest.fixture
def jobsets(connection: Any) -> Any:
    return CustomObjectsApi(connection)


@pytest.fixture
def namespace(served: Served) -> str:
    return served.namespace()


def a_jobset(namespace: str) -> dict[str, Any]:
    made = jobset() | {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    made["metadata"]["namespace"] = namespace
    return made


def a_pod(name: str, namespace: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod"} | pod(name, namespace=namespace)


def raw_events(core: Any, namespace: str, **more: Any) -> Generator[dict[str, Any], None, None]:
    """Yield the raw events of a watch, as the relay reads them."""
    response = core.list_namespaced_pod(namespace, watch=True, _preload_content=False, _request_timeout=10, **more)
    rest = b""
    try:
        while chunk := response.read1(65536):
            *lines, rest = (rest + chunk).split(b"\n")
            yield from map(orjson.loads, lines)
    finally:
        response.close()


def test_a_jobset_is_created_patched_and_its_status_written(jobsets: Any, namespace: str) -> None:
    where = JOBSETS | {"namespace": namespace}
    jobsets.create_namespaced_custom_object(body=a_jobset(namespace), **where)
    jobsets.patch_namespaced_custom_object(name="train", body={"spec": {"suspend": True}}, **where)
    status = {"status": {"restarts": 1}}
    patched = jobsets.patch_namespaced_custom_object_status(name="train", body=status, **where)
    assert (patched["spec"]["suspend"], patched["status"], patched["metadata"]["generation"]) == (
        True,
        {"restarts": 1},
        2,
    )
    assert [item["metadata"]["name"] for item in jobsets.list_namespaced_custom_object(**where)["items"]] == ["train"]


def test_typed_objects_come_and_go(core: Any, namespace: str) -> None:
    made = core.create_namespaced_pod(namespace, a_pod("one", namespace))
    assert made.status.phase == "Pending"
    assert [item.metadata.name for item in core.list_namespaced_pod(namespace).items] == ["one"]
    assert core.delete_namespaced_pod("one", namespace).metadata.uid == made.metadata.uid
    with pytest.raises(ApiException) as missing:
        core.read_namespaced_pod("one", namespace)
    assert missing.value.status == 404


def test_an_event_is_created_once_and_renewed(core: Any, namespace: str) -> None:
    event = {
        "metadata": {"name": "train.waiting", "namespace": namespace},
        "involvedObject": {"kind": "JobSet", "name": "train", "namespace": namespace, "uid": "u"},
        "reason": "Waiting",
        "message": "0 of 4",
        "count": 1,
    }
    core.create_namespaced_event(namespace, event)
    with pytest.raises(ApiException) as taken:
        core.create_namespaced_event(namespace, event)
    assert taken.value.status == 409
    renewed = core.patch_namespaced_event("train.waiting", namespace, {"message": "1 of 4", "count": 2})
    assert (renewed.message, renewed.count) == ("1 of 4", 2)


def test_a_raw_watch_tells_changes_and_bookmarks(core: Any, namespace: str) -> None:
    version = core.list_namespaced_pod(namespace).metadata.resource_version
    core.create_namespaced_pod(namespace, a_pod("one", namespace))
    events = raw_events(core, namespace, resource_version=version, allow_watch_bookmarks=True)
    first, second = next(events), next(events)
    assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", "one")
    assert (second["type"], second["object"]["kind"]) == ("BOOKMARK", "Pod")
    core.delete_namespaced_pod("one", namespace)
    deleted = next(event for event in events if event["type"] != "BOOKMARK")
    assert deleted["type"] == "DELETED"
    events.close()


def test_an_expired_version_has_to_be_listed_again(served: Served, core: Any, namespace: str) -> None:
    version = core.list_namespaced_pod(namespace).metadata.resource_version
    core.create_namespaced_pod(namespace, a_pod("one", namespace))
    served.press("expire-history")
    with pytest.raises(ApiException) as gone:
        list(watch.Watch().stream(core.list_namespaced_pod, namespace, resource_version=version))
    assert gone.value.status == 410
    again = core.list_namespaced_pod(namespace).metadata.resource_version
    assert list(raw_events(core, namespace, resource_version=again, timeout_seconds=1)) == []


def test_a_closed_watch_ends_and_another_goes_on(served: Served, core: Any, namespace: str) -> None:
    core.create_namespaced_pod(namespace, a_pod("one", namespace))
    events = raw_events(core, namespace)
    assert next(events)["type"] == "ADDED"
    assert served.press("close-watches", resource="pods") == {"watches": 1}
    assert list(events) == []


def test_a_button_that_does_not_exist_is_refused(served: Served) -> None:
    with pytest.raises(OSError, match="422"):
        served.press("explode")


def test_a_server_ends_promptly_with_watches_open(tmp_path: Path) -> None:
    with serving(tmp_path) as one, connected(one) as connection:
        core: Any = CoreV1Api(connection)
        core.create_namespaced_pod("default", a_pod("one", "default"))
        events = raw_events(core, "default")
        assert next(events)["type"] == "ADDED"
        assert ended(one.process) < PROMPTLY
        events.close()
