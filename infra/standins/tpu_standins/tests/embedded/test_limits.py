"""What is the embedded server's alone: what it does not serve, how much it remembers, kinds that come and go."""

from __future__ import annotations

from typing import Any

import pytest

from tpu_standins.embedded.store.errors import ApiError
from tpu_standins.tests.embedded.world import CRDS, PODS, World, definition, pod

TOYS = "/apis/example.com/v1/namespaces/default/toys"
SERVICES = "/api/v1/namespaces/default/services"


def refusal(world: World, method: str, path: str, body: Any = None, **more: str) -> ApiError:
    with pytest.raises(ApiError) as refused:
        world.answer(method, path, body, **more)
    return refused.value


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/apis/apps/v1/statefulsets", None),
        ("GET", "/api/v1/replicationcontrollers", None),
        ("GET", f"{PODS}/one/exec", None),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {}),
        ("POST", SERVICES, {"metadata": {"name": "open"}, "spec": {"ports": []}}),
        ("POST", CRDS, definition() | {"spec": definition()["spec"] | {"conversion": {"strategy": "Webhook"}}}),
    ],
)
def test_what_is_not_covered_answers_501_and_names_the_remedy(method: str, path: str, body: Any) -> None:
    world = World()
    world.call("POST", PODS, pod())
    refused = refusal(world, method, path, body)
    assert (refused.code, "use a real control plane" in refused.message) == (501, True)


def test_a_group_that_nobody_defined_is_not_found() -> None:
    assert refusal(World(), "GET", TOYS).code == 404


def test_a_definition_registers_a_kind_and_takes_it_away_again() -> None:
    world = World()
    world.call("POST", CRDS, definition())
    world.call("POST", TOYS, {"metadata": {"name": "ball"}, "spec": {"size": 3}, "status": {"lost": True}})
    shown = world.call("GET", f"{TOYS}/ball")
    assert (shown["metadata"]["generation"], "status" in shown) == (1, False)
    assert world.call("GET", "/apis/example.com/v1")["resources"][0]["kind"] == "Toy"
    world.call("DELETE", f"{CRDS}/toys.example.com")
    assert refusal(world, "GET", TOYS).code == 404


def test_a_defined_kind_has_its_own_columns() -> None:
    world = World()
    world.call("POST", CRDS, definition())
    world.call("POST", TOYS, {"metadata": {"name": "ball"}, "spec": {"size": 3}})
    kind = world.objects.kinds["toys.example.com"]
    (toy,) = world.objects.stored(kind)
    assert [column.cell(toy, {}, world.now) for column in kind.columns] == ["ball", 3]


def test_of_rules_that_it_does_not_check_it_says_so_to_who_writes_the_spec() -> None:
    world = World()
    ruled = definition()
    small = {"type": "object", "x-kubernetes-validations": [{"rule": "self.size < 3"}]}
    ruled["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": {"properties": {"spec": small}}}
    world.call("POST", CRDS, ruled)
    made = world.answer("POST", TOYS, {"metadata": {"name": "ball"}, "spec": {"size": 3}})
    assert "x-kubernetes-validations" in made.warning
    status = world.answer("PATCH", f"{TOYS}/ball/status", {"status": {}}, "application/merge-patch+json")
    assert (status.warning, world.answer("GET", TOYS).warning) == ("", "")


def test_of_a_kind_without_rules_nothing_is_said() -> None:
    world = World()
    world.call("POST", CRDS, definition())
    assert world.answer("POST", TOYS, {"metadata": {"name": "ball"}}).warning == ""


@pytest.mark.parametrize("more", [{"immutable": True}, {"stringData": {"a": "b"}}, {"type": "kubernetes.io/tls"}])
def test_of_secrets_it_has_those_that_hosts_join_with(more: dict[str, Any]) -> None:
    secret = {"metadata": {"name": "one"}}
    assert refusal(World(), "POST", "/api/v1/namespaces/default/secrets", secret | more).code == 501


def test_a_watch_from_before_the_window_is_told_that_it_is_too_late() -> None:
    world = World(window=2)
    version = str(world.objects.version)
    for index in range(4):
        world.call("POST", PODS, pod(f"pod-{index}"))
    (event,) = world.seen(PODS, 1, resourceVersion=version)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def test_versions_rise_over_all_events_of_an_object() -> None:
    world = World()
    version = str(world.objects.version)
    world.call("POST", PODS, pod())
    status = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    world.call("PATCH", f"{PODS}/one/status", status, "application/merge-patch+json")
    world.call("DELETE", f"{PODS}/one")
    events = world.seen(PODS, 4, resourceVersion=version)
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]
    assert versions == sorted(set(versions))


def test_an_object_of_wrong_types_is_a_bad_request() -> None:
    refused = refusal(World(), "POST", PODS, {"metadata": {"name": "one"}, "spec": {"containers": ["main"]}})
    assert (refused.code, refused.reason) == (400, "BadRequest")


def test_pages_are_of_one_snapshot() -> None:
    world = World()
    for index in range(5):
        world.call("POST", PODS, pod(f"pod-{index}"))
    first = world.call("GET", PODS, limit="2")
    world.call("DELETE", f"{PODS}/pod-4")
    rest = world.call("GET", PODS, **{"continue": first["metadata"]["continue"]})
    assert [item["metadata"]["name"] for item in rest["items"]] == ["pod-2", "pod-3", "pod-4"]


def test_who_is_told_of_a_change_finds_it_made() -> None:
    world = World()
    seen: list[tuple[int, list[str]]] = []

    def look() -> None:
        found = world.objects.stored(world.objects.kinds["pods"])
        seen.append((world.objects.version, [each["metadata"]["resourceVersion"] for each in found]))

    world.objects.listeners.append(look)
    world.call("POST", PODS, pod())
    world.call("DELETE", f"{PODS}/one", {"gracePeriodSeconds": 0})
    assert [versions for _, versions in seen if versions] == [[str(told)] for told, versions in seen if versions]
    assert seen[-1][1] == []
