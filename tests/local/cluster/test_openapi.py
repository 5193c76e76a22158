"""The OpenAPI documents: complete, consistent with the server, and readable by kubectl."""

from collections.abc import Iterator
from typing import Any

import pytest

from infra.local.cluster import discovery, gnostic, openapi
from infra.local.cluster.resources import RESOURCES
from infra.local.cluster.targets import SERVED
from tests.local.cluster.served import Served

JOBSET = "io.x-k8s.jobset.v1alpha2.JobSet"


def documents() -> list[dict[str, Any]]:
    index = discovery.answer("/openapi/v3")
    assert index is not None
    return [discovery.answer(entry["serverRelativeURL"]) or {} for entry in index["paths"].values()]


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].rpartition("/")[2]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from references(each)


def test_every_reference_leads_to_a_definition_of_its_own_document() -> None:
    for document in documents():
        schemas = document["components"]["schemas"]
        assert set(references(document)) <= set(schemas)
    assert set(references(openapi.v2())) <= set(openapi.v2()["definitions"])


def test_every_kind_is_defined_once_and_whole() -> None:
    defined = [
        (kind["group"], kind["kind"])
        for schema in openapi.v2()["definitions"].values()
        for kind in schema.get("x-kubernetes-group-version-kind", [])
    ]
    assert sorted(defined) == sorted((each.group, each.kind) for each in RESOURCES.values())


def test_every_verb_that_is_served_is_described() -> None:
    methods = {"create": "post", "delete": "delete", "get": "get", "list": "get", "patch": "patch", "update": "put"}
    described = openapi.v2()["paths"]
    for (plural, subresource), verbs in SERVED.items():
        paths = [path for path in described if f"/{plural}" in path and path.endswith(subresource)]
        found = {method for path in paths for method in described[path]}
        assert {methods[verb] for verb in verbs if verb in methods} <= found


def test_a_definition_is_named_after_its_go_package() -> None:
    names = set(openapi.v2()["definitions"])
    assert {
        "io.k8s.api.core.v1.Toleration",
        "io.k8s.api.core.v1.PodTemplateSpec",
        "io.k8s.api.core.v1.Event",
        "io.k8s.api.batch.v1.JobSpec",
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
        JOBSET,
    } <= names


def test_a_custom_kind_is_written_out_with_its_rules() -> None:
    spec = openapi.v2()["definitions"][JOBSET]["properties"]["spec"]["properties"]
    jobs = spec["replicatedJobs"]
    assert (jobs["x-kubernetes-list-type"], jobs["x-kubernetes-list-map-keys"]) == ("map", ["name"])
    assert jobs["items"]["properties"]["replicas"]["default"] == 1
    assert spec["startupPolicy"]["properties"]["startupPolicyOrder"]["enum"] == ["AnyOrder", "InOrder"]


def test_the_lists_of_core_kinds_say_how_patches_merge_them() -> None:
    definitions = openapi.v2()["definitions"]
    containers = definitions["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert (containers["x-kubernetes-patch-merge-key"], containers["x-kubernetes-patch-strategy"]) == ("name", "merge")
    tolerations = definitions["io.k8s.api.core.v1.PodSpec"]["properties"]["tolerations"]
    assert "x-kubernetes-patch-strategy" not in tolerations
    ports = definitions["io.k8s.api.core.v1.ServiceSpec"]["properties"]["ports"]
    assert ports["x-kubernetes-patch-merge-key"] == "port"


def inside(data: bytes, *numbers: int) -> list[bytes]:
    """Return the values of a protobuf message at a path of field numbers, all of them length-delimited."""
    if not numbers:
        return [data]
    found, at = [], 0
    while at < len(data):
        (key, at), size = number(data, at), 0
        size, at = number(data, at)
        assert key & 7 == 2
        if key >> 3 == numbers[0]:
            found += inside(data[at : at + size], *numbers[1:])
        at += size
    return found


def number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] & 0x80:
        value, at, shift = value | (data[at] & 0x7F) << shift, at + 1, shift + 7
    return value | data[at] << shift, at + 1


def test_a_document_in_protobuf_says_the_same() -> None:
    """Field numbers: openapi.v2.Document."""
    written = gnostic.document(openapi.v2())
    assert inside(written, 1) == [b"2.0"]
    definitions = dict(zip(inside(written, 9, 1, 1), inside(written, 9, 1, 2), strict=True))
    assert {name.decode() for name in definitions} == set(openapi.v2()["definitions"])
    toleration = definitions[b"io.k8s.api.core.v1.Toleration"]
    assert inside(toleration, 22, 1) == [b"object"]
    assert inside(toleration, 25, 1, 1) == [b"effect", b"key", b"operator", b"tolerationSeconds", b"value"]
    assert inside(toleration, 25, 1, 2, 22, 1) == [b"string", b"string", b"string", b"integer", b"string"]
    limits = inside(definitions[b"io.k8s.api.core.v1.ResourceRequirements"], 25, 1, 2, 21, 1, 1)
    assert limits == [b"#/definitions/io.k8s.apimachinery.pkg.api.resource.Quantity"] * 2
    assert inside(definitions[JOBSET.encode()], 31, 1) == [b"x-kubernetes-group-version-kind"]
    names = inside(written, 8, 2, 2, 8, 8, 1, 2, 3, 4)  # of the query parameters of the patches
    assert set(names) == {b"dryRun", b"fieldManager", b"fieldValidation", b"force"}


@pytest.mark.emulators
@pytest.mark.enable_socket
@pytest.mark.timeout(60)
class TestWithKubectl:
    def test_a_jobset_is_explained(self, client: Served) -> None:
        shown = client.kubectl("explain", "jobset").out
        assert "VERSION:    v1alpha2" in shown
        assert "spec is the specification for jobset" in shown

    def test_a_field_is_explained_with_all_below_it(self, client: Served) -> None:
        shown = client.kubectl("explain", "jobset.spec.replicatedJobs", "--recursive").out
        assert "FIELD: replicatedJobs <[]Object>" in shown
        assert "nodeSelector\t<map[string]string>" in shown

    def test_a_core_kind_is_explained_by_its_definitions(self, client: Served) -> None:
        shown = client.kubectl("explain", "pod.spec.tolerations").out
        assert "FIELD: tolerations <[]Toleration>" in shown
        assert "Effect indicates the taint effect to match" in shown
        resources = client.kubectl("explain", "pod.spec.containers.resources").out
        assert "limits\t<map[string]Quantity>" in resources

    def test_a_field_that_does_not_exist_is_not_explained(self, client: Served) -> None:
        refused = client.kubectl("explain", "jobset.spec.replicas")
        assert (refused.code, 'field "replicas" does not exist' in refused.error) == (1, True)
