from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from typing import Any

import pytest

from infra.local import messaging
from infra.local.functions import AS_DEPLOYED
from relay.settings import Settings as RelaySettings
from tests.infra.relay.manifests import the
from tests.infra.sources import FILES, ROOT, TERRAFORM, attributes, blocks, local, resource
from tpu_slices.app.settings import Settings, SettingsError
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.wire.topics import Topic

MESSAGING = messaging.read()
FUNCTIONS: Mapping[str, Mapping[str, Any]] = local("functions")
REFERENCE = re.compile(r"(?<![\w.])(?:(data)\.)?(google_\w+|archive_\w+|time_\w+|local|var)\.(\w+)")


class RecordingEnvironment(dict[str, str]):
    """An environment that records the names that were looked up."""

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__(given)
        self.names: set[str] = set()

    def get(self, name: str, default: str | None = None) -> str | None:  # type: ignore[override] # str keys suffice
        self.names.add(name)
        return super().get(name, default)


def service_config() -> Mapping[str, object]:
    [config] = resource("google_cloudfunctions2_function", "function")["service_config"]
    found: Mapping[str, object] = config
    return found


def entry_points() -> set[str]:
    tree = ast.parse((ROOT / "functions" / "main.py").read_text())
    decorated = {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list}
    return {name for name in decorated if not name.startswith("_")}


def gke_permissions(function: str) -> set[str]:
    return {permission for permissions in FUNCTIONS[function]["gke"].values() for permission in permissions}


def bodies(kind: str = "resource") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each resource's address and body, or each data source's."""
    for block in blocks(kind):
        for kind_of_resource, named in block.items():
            yield from ((f"{kind_of_resource}.{name}", body) for name, body in named.items())


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def test_each_function_is_an_entry_point_and_has_a_subscription() -> None:
    assert set(FUNCTIONS) == entry_points() == set(MESSAGING.functions)
    function = resource("google_cloudfunctions2_function", "function")
    assert function["for_each"] == "${local.functions}"
    assert function["build_config"][0]["entry_point"] == "${each.key}"


def test_a_functions_environment_is_what_it_reads_without_the_local_stacks() -> None:
    given = service_config()["environment_variables"]
    assert isinstance(given, dict)
    environment = RecordingEnvironment(dict.fromkeys(given, "demo-project"))
    Settings.from_env(environment)

    optional = {"NOTIFICATION_TARGETS"}
    required = {name for name in environment.names if not name.endswith("_EMULATOR_HOST")} - optional
    assert set(given) == {*required, *optional, "VERSION", *AS_DEPLOYED}, "VERSION is read where logs are configured"
    assert {name: given[name] for name in AS_DEPLOYED} == AS_DEPLOYED, "functions-framework reads these"
    for name in required:
        with pytest.raises(SettingsError, match=name):
            Settings.from_env({other: "demo-project" for other in given if other != name})


def test_no_function_has_a_public_address() -> None:
    assert service_config()["ingress_settings"] == "ALLOW_INTERNAL_ONLY"
    assert not [text for text in strings(FILES) if "allUsers" in text or "allAuthenticatedUsers" in text]
    invokers = [body for _, body in bodies() if body.get("role") == "roles/run.invoker"]
    assert invokers == [resource("google_cloud_run_v2_service_iam_member", "push")]
    assert invokers[0]["member"] == "${google_service_account.push[each.key].member}"


def test_only_notify_has_the_secrets_of_targets_and_it_has_neither_records_nor_topics_nor_clusters() -> None:
    of_notify = {"memory", "max_instances"}
    assert {key: value for key, value in FUNCTIONS["notify"].items() if key not in of_notify} == {
        "records": False,
        "publishes_to": [],
        "gke": {},
        "compute": {},
    }
    config: Any = service_config()
    [volumes] = config["dynamic"]
    assert volumes["secret_volumes"]["for_each"].startswith('${each.key == "notify" && var.notification_targets != ""')
    assert config["environment_variables"]["NOTIFICATION_TARGETS"].startswith('${each.key == "notify" &&')
    assert "if function.records" in resource("google_project_iam_member", "records")["for_each"]
    assert all(FUNCTIONS[name]["records"] for name in FUNCTIONS if name != "notify")


def test_a_functions_concurrency_is_the_number_of_its_frameworks_threads() -> None:
    config = service_config()
    assert config["max_instance_request_concurrency"] == 4 * int(str(config["available_cpu"]))


def test_every_subscription_never_expires_and_has_backoff_and_dead_letters() -> None:
    subscription = resource("google_pubsub_subscription", "subscription")
    assert subscription["expiration_policy"] == [{"ttl": ""}]
    assert subscription["retry_policy"] == [
        {"minimum_backoff": "${each.value.minimum_backoff}", "maximum_backoff": "${each.value.maximum_backoff}"}
    ]
    dynamic = {kind: body for block in subscription["dynamic"] for kind, body in block.items()}
    assert dynamic["dead_letter_policy"]["for_each"] == "${each.value.dead_letter_topic[*]}"
    assert {row.name for row in MESSAGING.subscriptions if row.dead_letter_topic is None} == {"dead-letters"}


def test_a_push_names_the_topic_in_its_path_and_the_service_as_its_audience() -> None:
    dynamic = resource("google_pubsub_subscription", "subscription")["dynamic"]
    [push] = [body for block in dynamic for kind, body in block.items() if kind == "push_config"]
    [content] = push["content"]
    [token] = content["oidc_token"]
    service = "google_cloudfunctions2_function.function[push_config.value].service_config[0].uri"

    assert content["push_endpoint"] == f'${{join("/", [{service}, google_pubsub_topic.topic[each.value.topic].id])}}'
    assert token["audience"] == f"${{{service}}}"
    assert token["service_account_email"] == "${google_service_account.push[push_config.value].email}"


def test_every_topic_has_a_publisher_and_a_subscription() -> None:
    functions = {topic for function in FUNCTIONS.values() for topic in function["publishes_to"]}
    relays = {"facts-{cluster}"}
    schedules = {schedule.topic for schedule in MESSAGING.schedules}
    dead_letters = {row.dead_letter_topic for row in MESSAGING.subscriptions if row.dead_letter_topic}
    sink = set(re.findall(r'topic\["([-a-z]+)"\]', json.dumps(FILES["log_sink.tf"]).replace("\\", "")))

    assert sink == {"cloud-operations"}
    assert functions | relays | schedules | dead_letters | sink == set(MESSAGING.topics)
    assert {row.topic for row in MESSAGING.subscriptions} == set(MESSAGING.topics)


def test_functions_publish_to_the_publishers_topics_and_the_relay_to_its_own() -> None:
    assert {topic for function in FUNCTIONS.values() for topic in function["publishes_to"]} == {
        topic.of(ClusterId("{cluster}"))
        for topic in (Topic.REQUESTS, Topic.UPDATES, Topic.QUESTIONS, Topic.NOTIFICATIONS)
    }
    settings = RelaySettings.read({"CLUSTER": "demo", "GOOGLE_CLOUD_PROJECT": "demo-project"})
    of_cluster = MESSAGING.of_cluster("demo")
    assert settings.topic.rpartition("/")[2] in of_cluster.topics
    pulled = {each.rpartition("/")[2] for each in settings.subscriptions}
    assert pulled == {row.name for row in of_cluster.subscriptions if row.name.endswith("-demo") and not row.function}
    assert {row.topic for row in of_cluster.subscriptions if row.name in pulled} == {"updates-demo", "questions-demo"}


def test_only_reconcile_may_change_a_cluster_or_act_as_its_nodes() -> None:
    changing = {
        name
        for name in FUNCTIONS
        if any(not permission.endswith((".get", ".list")) for permission in gke_permissions(name))
    }
    assert changing == {"reconcile"}
    assert gke_permissions("receive") == set()
    actor = resource("google_service_account_iam_member", "nodes")
    assert actor["member"] == '${google_service_account.function["reconcile"].member}'


GKE_PERMISSIONS = {
    "cancel_operation": "container.clusters.update",
    "create_node_pool": "container.clusters.update",
    "delete_node_pool": "container.clusters.update",
    "get_cluster": "container.clusters.get",
    "get_node_pool": "container.clusters.get",
    "get_operation": "container.operations.get",
    "list_node_pools": "container.clusters.get",
    "list_operations": "container.operations.list",
    "update_node_pool": "container.clusters.update",
}
"""By method, as in Google's page on GKE's audit logs ("API interface audit logs")."""


def test_reconcile_may_call_every_method_of_gke_that_the_adapter_calls_and_no_other() -> None:
    adapter = (ROOT / "shared" / "tpu_slices" / "adapters" / "gke" / "backend.py").read_text()
    called = set(re.findall(r"self\._client\.(\w+)\(", adapter))

    assert called == set(GKE_PERMISSIONS)
    granted = {permission for permission in gke_permissions("reconcile") if permission.startswith("container.")}
    assert granted == set(GKE_PERMISSIONS.values())


def test_what_concerns_clusters_is_granted_for_single_clusters() -> None:
    for function in FUNCTIONS.values():
        for scope, permissions in function["gke"].items():
            of_clusters = {permission.startswith("container.clusters.") for permission in permissions}
            assert of_clusters == {scope == "cluster"}


def test_a_role_of_the_whole_project_is_granted_with_a_condition_or_has_a_reason() -> None:
    """Logs, operations, and most of what is made on Compute Engine have no names that a condition could state."""
    of_projects = {name: body for name, body in bodies() if name.startswith("google_project_iam_member.")}
    without = {name.partition(".")[2] for name, body in of_projects.items() if "condition" not in body}
    assert without == {"build_logs", "gke_project", "compute_project"}


def test_only_these_roles_are_granted() -> None:
    roles = {role for text in strings(FILES) for role in re.findall(r"roles/[\w.]+", text)}

    assert roles == {
        "roles/artifactregistry.reader",
        "roles/artifactregistry.writer",
        "roles/datastore.user",
        "roles/iam.serviceAccountTokenCreator",
        "roles/iam.serviceAccountUser",
        "roles/logging.logWriter",
        "roles/pubsub.publisher",
        "roles/pubsub.subscriber",
        "roles/run.invoker",
        "roles/storage.objectViewer",
    }


def test_each_function_has_its_own_service_account() -> None:
    assert service_config()["service_account_email"] == "${google_service_account.function[each.key].email}"
    accounts = [
        list(block["google_service_account"]) for block in blocks("resource") if "google_service_account" in block
    ]
    assert sorted(accounts) == [["build"], ["function"], ["push"], ["relay"]]
    for kind in ("function", "push"):
        assert resource("google_service_account", kind)["for_each"] == "${local.functions}"


def test_the_relays_identity_is_in_the_namespace_of_its_manifest() -> None:
    assert local("relay_namespace") == the("ServiceAccount")["metadata"]["namespace"]


def test_googles_own_accounts_exist_and_are_known_before_they_are_granted_anything() -> None:
    granted = [body for _, body in bodies() if "google_project_service_identity" in str(body.get("member"))]
    assert len(granted) == 4
    assert all(body["depends_on"] == ["${time_sleep.agents}"] for body in granted)
    agents = resource("google_project_service_identity", "agent")["for_each"]
    named = {name for body in granted for name in re.findall(r'agent\["(\w+)"\]', body["member"].replace("\\", ""))}
    assert named <= set(re.findall(r"[a-z]{3,}", agents)) - {"toset"}


def test_a_function_is_built_only_after_what_its_build_was_granted_is_in_force() -> None:
    assert "${time_sleep.build}" in resource("google_cloudfunctions2_function", "function")["depends_on"]
    waited_for = set(re.findall(r"(\w+\.build\w*)\.id", " ".join(resource("time_sleep", "build")["triggers"].values())))
    build = "${google_service_account.build.member}"
    granted = {name for name, body in bodies() if body.get("member") == build}
    assert waited_for == granted


def test_terraform_reads_every_field_of_the_index_declarations() -> None:
    declared = json.loads((ROOT / "infra" / "firestore.indexes.json").read_text())

    assert set(declared) == {"indexes", "fieldOverrides"}
    for index in declared["indexes"]:
        assert set(index) == {"collectionGroup", "queryScope", "fields"}
        assert all(set(field) == {"fieldPath", "order"} for field in index["fields"])
    for override in declared["fieldOverrides"]:
        assert set(override) - {"ttl"} == {"collectionGroup", "fieldPath", "indexes"}
        assert all(set(index) == {"order", "queryScope"} for index in override["indexes"])
        assert override["fieldPath"] != "*" or set(override) == {"collectionGroup", "fieldPath", "indexes"}
    assert resource("google_firestore_field", "rest")["index_config"] == [{}]


def test_versions_are_exact() -> None:
    [terraform] = blocks("terraform")
    [providers] = terraform["required_providers"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", provider["version"]) for provider in providers.values())
    used = {kind.partition("_")[0] for block in [*blocks("resource"), *blocks("data")] for kind in block}
    named = {body["provider"].strip("${}") for _, body in bodies() if "provider" in body}
    assert set(providers) == used | named
    assert providers["google"]["version"] == providers["google-beta"]["version"]


def test_all_that_can_have_labels_has_version_and_commit() -> None:
    [google] = [block["google"] for block in blocks("provider") if "google" in block]
    assert google["default_labels"] == "${local.labels}"
    assert not [name for name, body in bodies() if "labels" in body]


def test_nothing_depends_on_itself() -> None:
    """Without a provider Terraform builds no graph, and would not tell."""
    texts = {name: list(strings(body)) for name, body in bodies()}
    texts |= {f"data.{name}": list(strings(body)) for name, body in bodies("data")}
    texts |= {f"local.{name}": list(strings(value)) for block in blocks("locals") for name, value in block.items()}
    graph = {
        node: {
            f"{data and 'data.'}{kind}.{name}"
            for text in found
            if "${" in text
            for data, kind, name in REFERENCE.findall(text)
            if kind != "var"
        }
        for node, found in texts.items()
    }
    for node, needed in graph.items():
        if node.removeprefix("data.").startswith("google_"):
            needed.add("local.labels")  # the provider's
    order = list(TopologicalSorter(graph).static_order())
    assert order.index("google_firestore_database.records") > order.index("data.google_container_cluster.dropped")


def test_every_reference_is_declared_and_every_local_and_variable_is_used() -> None:
    declared = {("", kind, name) for block in blocks("resource") for kind, named in block.items() for name in named}
    declared |= {("data", kind, name) for block in blocks("data") for kind, named in block.items() for name in named}
    declared |= {("", "local", name) for block in blocks("locals") for name in block}
    declared |= {("", "var", name) for block in blocks("variable") for name in block}
    used = {match for text in strings(FILES) if "${" in text for match in REFERENCE.findall(text)}

    assert used <= declared
    assert {name for _, kind, name in declared if kind in {"local", "var"}} == {
        name for _, kind, name in used if kind in {"local", "var"}
    }


def test_every_path_of_a_module_exists_or_is_built() -> None:
    paths = set(re.findall(r"\$\{path\.module\}/([\w./-]+)", "".join(p.read_text() for p in TERRAFORM.glob("*.tf"))))
    built = {path for path in paths if "/build/" in path}

    assert built == {"../../build/functions", "../../build/functions.zip"}
    assert all((TERRAFORM / path).exists() for path in paths - built)
    assert list(attributes(FILES["functions.tf"], "source_dir")) == ["${path.module}/../../build/functions"]
