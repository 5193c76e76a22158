"""Requests without a network: what is served, what is refused, and the messages."""

from typing import Any

import pytest

from infra.local.cluster import discovery
from infra.local.cluster.objects import RESOURCES, ApiError
from infra.local.cluster.targets import SERVED
from tests.local.cluster.world import JOBSETS, PODS, World, jobset, pod

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def refusal(world: World, method: str, path: str, body: Any = None, **more: str) -> ApiError:
    with pytest.raises(ApiError) as refused:
        world.call(method, path, body, **more)
    return refused.value


def test_discovery_shows_exactly_what_is_served() -> None:
    shown = set()
    for api_version in {resource.api_version for resource in RESOURCES.values()}:
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        listed = discovery.answer(root)
        assert listed is not None
        shown |= {(row["name"], tuple(row["verbs"])) for row in listed["resources"]}
    served = {
        (plural + (f"/{subresource}" if subresource else ""), tuple(sorted(verbs)))
        for (plural, subresource), verbs in SERVED.items()
    }
    assert shown == served | {("serviceaccounts/token", ("create",))}


def test_openapi_lets_kubectl_leave_validation_to_the_server() -> None:
    index = discovery.answer("/openapi/v3")
    assert index is not None
    versions = {resource.api_version for resource in RESOURCES.values()}
    assert set(index["paths"]) == {("apis/" if "/" in version else "api/") + version for version in versions}
    for entry in index["paths"].values():
        described = discovery.answer(entry["serverRelativeURL"])
        assert described is not None
        for path in described["paths"].values():
            if "patch" in path:
                assert "fieldValidation" in [parameter["name"] for parameter in path["patch"]["parameters"]]


def test_an_object_is_created_read_and_listed() -> None:
    world = World()
    answer = world.answer("POST", JOBSETS, jobset())
    assert answer.code == 201
    assert world.call("GET", f"{JOBSETS}/train") == answer.body
    listed = world.call("GET", "/apis/jobset.x-k8s.io/v1alpha2/jobsets")
    assert (listed["kind"], listed["items"]) == ("JobSetList", [answer.body])
    assert listed["metadata"]["resourceVersion"] == str(world.objects.version)


@pytest.mark.parametrize("validation", ["Strict", "Warn", "Ignore", ""])
def test_an_unknown_field_is_refused_warned_of_or_dropped(validation: str) -> None:
    world = World()
    body = jobset(foo=1)
    params = {"fieldValidation": validation} if validation else {}
    if validation == "Strict":
        refused = refusal(world, "POST", JOBSETS, body, **params)
        assert refused.code == 400
        assert refused.message == (
            'JobSet in version "v1alpha2" cannot be handled as a JobSet: '
            'strict decoding error: unknown field "spec.foo"'
        )
        return
    answer = world.answer("POST", JOBSETS, body, **params)
    assert isinstance(answer.body, dict)
    assert "foo" not in answer.body["spec"]
    assert list(answer.warnings) == ([] if validation == "Ignore" else ['unknown field "spec.foo"'])


def test_an_unknown_field_in_a_patch_is_the_patch_s_fault() -> None:
    world = World()
    world.call("POST", JOBSETS, jobset())
    patch = {"spec": {"foo": 1}}
    refused = refusal(world, "PATCH", f"{JOBSETS}/train", patch, kind=MERGE, fieldValidation="Strict")
    assert (refused.code, refused.details["causes"][0]["field"]) == (422, "patch")
    assert 'strict decoding error: unknown field "spec.foo"' in refused.message


def test_a_patch_of_the_status_leaves_the_spec_alone() -> None:
    world = World()
    world.call("POST", JOBSETS, jobset())
    patch = {"spec": {"suspend": True}, "status": {"restarts": 2}}
    patched = world.call("PATCH", f"{JOBSETS}/train/status", patch, kind=MERGE)
    assert (patched["status"], "suspend" in patched["spec"]) == ({"restarts": 2}, False)


def test_a_strategic_merge_patch_is_for_core_kinds() -> None:
    world = World()
    world.call("POST", PODS, pod())
    patch = {"spec": {"containers": [{"name": "main", "image": "python:3.13"}]}}
    patched = world.call("PATCH", f"{PODS}/one", patch, kind=STRATEGIC)
    assert patched["spec"]["containers"][0]["image"] == "python:3.13"
    world.call("POST", JOBSETS, jobset())
    refused = refusal(world, "PATCH", f"{JOBSETS}/train", {}, kind=STRATEGIC)
    assert (refused.code, refused.reason) == (415, "UnsupportedMediaType")


def test_a_patch_with_an_old_version_is_a_conflict() -> None:
    world = World()
    world.call("POST", JOBSETS, jobset())
    patch = {"metadata": {"resourceVersion": "1", "labels": {"a": "b"}}}
    assert refusal(world, "PATCH", f"{JOBSETS}/train", patch, kind=MERGE).code == 409


def test_a_dry_run_answers_and_stores_nothing() -> None:
    world = World()
    assert world.call("POST", PODS, pod(), dryRun="All")["status"]["phase"] == "Pending"
    assert world.call("GET", PODS)["items"] == []
    world.call("POST", JOBSETS, jobset())
    version = world.objects.version
    patch = {"spec": {"suspend": True}}
    assert world.call("PATCH", f"{JOBSETS}/train", patch, kind=MERGE, dryRun="All")["spec"]["suspend"]
    assert world.objects.version == version


def test_a_pod_is_replaced_by_what_it_was_made_from() -> None:
    world = World()
    wanted = pod()
    wanted["spec"]["containers"][0]["resources"] = {"limits": {"google.com/tpu": "4"}}
    made = world.call("POST", PODS, wanted)
    assert world.call("PUT", f"{PODS}/one", wanted)["spec"] == made["spec"]


def test_a_custom_object_is_replaced_with_its_version_only() -> None:
    world = World()
    made = world.call("POST", JOBSETS, jobset())
    version = made["metadata"].pop("resourceVersion")
    refused = refusal(world, "PUT", f"{JOBSETS}/train", made)
    assert "metadata.resourceVersion: Invalid value: 0x0: must be specified for an update" in refused.message
    made["metadata"] |= {"resourceVersion": version, "labels": {"a": "b"}}
    assert world.call("PUT", f"{JOBSETS}/train", made)["metadata"]["labels"] == {"a": "b"}


@pytest.mark.parametrize(
    ("method", "path", "more", "code"),
    [
        ("PATCH", f"{PODS}/one", {"kind": "application/apply-patch+cbor"}, 501),
        ("POST", PODS, {"kind": "application/vnd.kubernetes.protobuf"}, 501),
        ("POST", PODS, {"kind": "application/yaml"}, 501),
        ("POST", PODS, {"kind": "text/plain"}, 415),
        ("POST", PODS, {"dryRun": "Some"}, 422),
        ("DELETE", f"{PODS}/one", {"dryRun": "Some"}, 422),
        ("POST", f"{PODS}/one/binding", {"dryRun": "All"}, 501),
        ("GET", f"{PODS}/one/exec", {}, 501),
        ("POST", f"{PODS}/one/eviction", {"kind": "application/yaml"}, 501),
        ("DELETE", "/api/v1/namespaces", {}, 501),
        ("GET", f"{PODS}/one/status", {"watch": "true"}, 501),
        ("POST", "/api/v1/pods", {}, 405),
        ("POST", f"{PODS}/one", {}, 405),
        ("PUT", PODS, {}, 405),
        ("GET", "/api/v1/namespaces/default/secrets", {}, 501),
        ("GET", "/apis/apps/v1/statefulsets", {}, 501),
        ("GET", "/apis/jobset.x-k8s.io/v1/jobsets", {}, 501),
        ("GET", "/api/v1/namespaces/default/nodes", {}, 501),
        ("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/one", {}, 404),
        ("GET", "/api/v1/namespaces/default/resourcequotas", {}, 404),
        ("GET", PODS, {"accept": "application/vnd.kubernetes.protobuf"}, 406),
        ("GET", PODS, {"resourceVersion": "999999"}, 504),
        ("GET", PODS, {"limit": "many"}, 400),
        ("GET", PODS, {"watch": "true", "timeoutSeconds": "soon"}, 400),
        ("POST", f"{PODS}/one/binding", {}, 422),
        ("GET", PODS, {"watch": "true", "sendInitialEvents": "true"}, 422),
    ],
)
def test_what_is_not_in_the_table_is_refused(method: str, path: str, more: dict[str, str], code: int) -> None:
    world = World()
    world.call("POST", PODS, pod())
    refused = refusal(world, method, path, {} if method != "GET" else None, **more)
    assert refused.code == code
    assert refused.status()["kind"] == "Status"


def test_a_body_that_is_no_json_is_refused() -> None:
    world = World()
    world.call("POST", PODS, pod())
    assert refusal(world, "POST", PODS, [1]).code == 400
    assert refusal(world, "PATCH", f"{PODS}/one", [1], kind=MERGE).code == 400
    assert refusal(world, "DELETE", f"{PODS}/one", [1]).code == 400
    assert refusal(world, "POST", f"{PODS}/one/binding", [1]).code == 400
    listed = {"spec": {"containers": [1]}}
    assert refusal(world, "PATCH", f"{PODS}/one", listed, kind=STRATEGIC).code == 400
    assert refusal(world, "POST", JOBSETS, {"metadata": 1}).code == 422


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (pod("other"), "the name of the object (other) does not match the name on the URL (one)"),
        (pod("one", namespace="team"), "the namespace of the provided object does not match the namespace sent"),
    ],
)
def test_body_and_path_agree(body: dict[str, Any], message: str) -> None:
    world = World()
    world.call("POST", PODS, pod())
    assert message in refusal(world, "PUT", f"{PODS}/one", body).message


def test_pages_are_of_one_snapshot() -> None:
    world = World()
    for index in range(5):
        world.call("POST", PODS, pod(f"pod-{index}"))
    page = world.call("GET", PODS, limit="2")
    assert page["metadata"]["remainingItemCount"] == 3
    world.call("POST", PODS, pod("pod-0-late"))
    world.call("DELETE", f"{PODS}/pod-4")
    seen = [item["metadata"]["name"] for item in page["items"]]
    while token := page["metadata"].get("continue"):
        page = world.call("GET", PODS, **{"limit": "2", "continue": token})
        seen += [item["metadata"]["name"] for item in page["items"]]
    assert seen == [f"pod-{index}" for index in range(5)]


def test_a_continue_token_that_is_forgotten_is_gone() -> None:
    assert refusal(World(), "GET", PODS, **{"continue": "bm9uZQ=="}).code == 410


def test_lists_are_chosen_by_selectors() -> None:
    world = World()
    world.call("POST", PODS, pod("one", labels={"app": "a"}))
    world.call("POST", PODS, pod("two", node="host"))
    by_label = world.call("GET", PODS, labelSelector="app=a")["items"]
    by_field = world.call("GET", "/api/v1/pods", fieldSelector="spec.nodeName=host")["items"]
    assert [item["metadata"]["name"] for item in by_label + by_field] == ["one", "two"]


def test_kubectl_gets_a_table() -> None:
    world = World()
    world.call("POST", PODS, pod())
    shown = world.call("GET", PODS, accept=TABLE)
    assert shown["kind"] == "Table"
    assert shown["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    whole = world.call("GET", PODS, accept=TABLE, includeObject="Object")
    assert whole["rows"][0]["object"]["kind"] == "Pod"
