"""The CRD is structural, and the API server calls the webhooks for what JobSet's own ones match."""

from __future__ import annotations

from collections.abc import Iterator

from infra.local.clients.objects import Object
from infra.local.jobset.manifests import SCHEMA, WEBHOOKS, configurations, crd
from infra.local.jobset.schema import text


def parts(path: str, schema: Object) -> Iterator[tuple[str, Object]]:
    yield path, schema
    for key, value in schema.get("properties", {}).items():
        yield from parts(f"{path}.{key}", value)
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if key in schema:
            yield from parts(path + mark, schema[key])


def fields() -> dict[str, Object]:
    (version,) = crd()["spec"]["versions"]
    return dict(parts("", version["schema"]["openAPIV3Schema"]))


def test_the_schema_is_that_of_the_published_models() -> None:
    remedy = "`python -m infra.local.jobset.schema` writes it"
    assert text() == SCHEMA.read_text(encoding="utf-8"), remedy


def test_every_field_has_one_type() -> None:
    for path, schema in fields().items():
        assert ("type" in schema) != ("x-kubernetes-int-or-string" in schema), path


def test_no_field_takes_what_the_api_server_cannot_check() -> None:
    assert [path for path, schema in fields().items() if "x-kubernetes-preserve-unknown-fields" in schema] == []


def test_items_of_keyed_lists_have_their_keys() -> None:
    keyed = {path: schema for path, schema in fields().items() if "x-kubernetes-list-map-keys" in schema}
    assert set(keyed) == {
        ".spec.replicatedJobs",
        ".spec.replicatedJobs[].dependsOn",
        ".status.conditions",
        ".status.replicatedJobsStatus",
    }
    for path, schema in keyed.items():
        assert set(schema["x-kubernetes-list-map-keys"]) <= set(schema["items"]["required"]), path


def test_what_the_webhook_defaults_is_not_required() -> None:
    rule = fields()[".spec.failurePolicy.rules[]"]
    assert "name" not in rule["required"]


def test_quantities_and_ports_are_numbers_or_texts() -> None:
    pod = ".spec.replicatedJobs[].template.spec.template.spec"
    found = fields()
    for path in ("containers[].resources.limits{}", "containers[].livenessProbe.httpGet.port", "overhead{}"):
        assert found[f"{pod}.{path}"] == {"x-kubernetes-int-or-string": True}


def test_kubectl_explains_jobsets_own_fields() -> None:
    assert fields()[".spec.replicatedJobs"]["description"]


def test_the_webhooks_match_what_jobsets_own_match_and_complete_updates_too() -> None:
    called: dict[str, tuple[Object, Object | None]] = {}
    for configuration in configurations("https://127.0.0.1:1", b"PEM").values():
        for webhook in configuration["webhooks"]:
            assert webhook["failurePolicy"] == "Fail"
            assert webhook["clientConfig"]["caBundle"] == "UEVN"
            address, slash, path = webhook["clientConfig"]["url"].rpartition("/")
            assert address == "https://127.0.0.1:1"
            called[slash + path] = (webhook["rules"][0], webhook.get("objectSelector"))
    assert called.keys() == WEBHOOKS.keys()
    assert {path: rule["operations"] for path, (rule, _) in called.items()} == {
        "/mutate-jobset": ["CREATE", "UPDATE"],
        "/mutate-pod": ["CREATE"],
        "/validate-jobset": ["CREATE", "UPDATE"],
        "/validate-pod": ["CREATE"],
    }
    of_a_jobset = {"matchExpressions": [{"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}]}
    assert called["/mutate-pod"][1] == called["/validate-pod"][1] == of_a_jobset
