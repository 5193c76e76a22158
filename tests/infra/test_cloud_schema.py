"""The arguments of the Terraform files, compared with the schemas of exactly the providers in use."""

import copy
import json
import re
from typing import Any

import pytest

from tests.infra.provider_schema import EXTRACT, arguments, used_anywhere, values_in
from tests.infra.schema_check import REFERENCE, problems
from tests.infra.sources import ENVIRONMENTS, FILES, ROOT, TERRAFORM, blocks, parsed

SCHEMA: dict[str, Any] = json.loads(EXTRACT.read_text())


def problems_of(text: str) -> list[str]:
    return list(problems({"some.tf": parsed(text)}, SCHEMA))


def test_every_argument_and_attribute_is_one_of_its_provider() -> None:
    found = list(problems(FILES, SCHEMA))
    assert not found, "\n".join(found)


def test_the_schemas_are_those_of_the_versions_in_use() -> None:
    roots = [
        *blocks("terraform"),
        *(file["terraform"][0] for root in ENVIRONMENTS.values() for file in root.values() if "terraform" in file),
    ]
    used = {(name, each["version"]) for root in roots for name, each in root["required_providers"][0].items()}
    assert used == set(SCHEMA["version"].items())


def test_the_extract_has_all_that_is_used_and_nothing_else() -> None:
    extracted = {(kind, name) for kind in ("resource", "data", "provider") for name in SCHEMA[kind]}
    builtin = {("provider", "archive"), ("provider", "time")}
    assert extracted - builtin == used_anywhere() - builtin


def test_two_renamed_arguments_are_both_named() -> None:
    files = copy.deepcopy(FILES)
    [topics] = [block for block in files["messaging.tf"]["resource"] if "google_pubsub_subscription" in block]
    subscription = topics["google_pubsub_subscription"]["subscription"]
    subscription["ack_deadline"] = subscription.pop("ack_deadline_seconds")
    [function] = [block for block in files["functions.tf"]["resource"] if "google_cloudfunctions2_function" in block]
    [config] = function["google_cloudfunctions2_function"]["function"]["service_config"]
    config["max_instances"] = config.pop("max_instance_count")

    assert sorted(problems(files, SCHEMA)) == [
        "google_cloudfunctions2_function.function.service_config: there is no argument max_instances",
        "google_pubsub_subscription.subscription: there is no argument ack_deadline",
    ]


BUCKET = 'resource "google_storage_bucket" "b" {\n name = "a"\n location = "us"\n %s\n}'
SUBSCRIPTION = 'resource "google_pubsub_subscription" "s" {\n name = "a"\n topic = "t"\n %s\n}'
PUSH = 'dynamic "push_config" {\n for_each = [1]\n content {\n endpoint = "e"\n }\n }'
TWO = 'expiration_policy {\n ttl = ""\n }\n expiration_policy {\n ttl = ""\n }'
ACCELERATOR = (
    'resource "google_container_node_pool" "p" {\n cluster = "c"\n count = 1\n'
    ' node_config {\n guest_accelerator {\n type = "t"\n %s\n }\n }\n}'
)
ALERT = 'resource "google_monitoring_alert_policy" "a" {\n display_name = "a"\n combiner = "OR"\n severity = %s\n%s}'
THRESHOLD = 'condition_threshold {\n comparison = "COMPARISON_GT"\n duration = "0s"\n aggregations {\n %s\n }\n }'
CONDITIONS = 'conditions {\n display_name = "c"\n %s\n }'
SEVERITY = (
    'variable "severity" {\n default = "%s"\n'
    ' validation {\n condition = contains(["ERROR", "%s"], var.severity)\n }\n}\n'
)
CHOSEN = ALERT % ("var.severity", "")
AGGREGATIONS = "google_monitoring_alert_policy.a.conditions.condition_threshold.aggregations"
WRONG = "google_monitoring_alert_policy.a.severity cannot be LOUD: CRITICAL, ERROR, WARNING"
NAT = (
    'resource "google_compute_router_nat" "n" {\n name = "n"\n router = "r"\n'
    ' source_subnetwork_ip_ranges_to_nat = "%s"\n}'
)
READS = 'output "o" {\n value = %s\n}'


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('resource "google_pubsub_topic" "t" {}', "google_pubsub_topic.t: name is missing"),
        ('resource "google_pubsub_topic" "t" { name = ["a"] }', "google_pubsub_topic.t.name must be a string"),
        (BUCKET % "labels {}", "google_storage_bucket.b.labels must be a map"),
        (BUCKET % 'force_destroy = "always"', "google_storage_bucket.b.force_destroy must be a bool"),
        (BUCKET % "versioning = { enabled = true }", "google_storage_bucket.b.versioning must be a block"),
        (BUCKET % "versioning {}", "google_storage_bucket.b.versioning: enabled is missing"),
        (SUBSCRIPTION % PUSH, "google_pubsub_subscription.s.push_config: there is no argument endpoint"),
        (SUBSCRIPTION % TWO, "google_pubsub_subscription.s.expiration_policy must be one block"),
        ('resource "helm_release" "r" {\n timeouts {\n }\n}', "helm_release.r.timeouts must be a value, after ="),
        ('provider "helm" { kubernetes = { hosts = "h" } }', "provider.helm.kubernetes: there is no argument hosts"),
        ('data "google_project" "p" { number = 1 }', "google_project.p: there is no argument number"),
        (ACCELERATOR % "", "google_container_node_pool.p.node_config.guest_accelerator: count is missing"),
        ('provider "google" { projects = "a" }', "provider.google: there is no argument projects"),
        ('resource "google_tpu" "t" {}', "google_tpu: not in providers.json: see provider_schema.py"),
        (READS % 'google_pubsub_topic.t["a"].url', "google_pubsub_topic has no attribute url"),
        (
            READS % "google_cloudfunctions2_function.f.service_config[0].url",
            "google_cloudfunctions2_function has no attribute service_config.url",
        ),
        (READS % "data.google_project.p.no", "google_project has no attribute no"),
    ],
)
def test_what_a_provider_would_refuse_is_named(text: str, found: str) -> None:
    assert found in problems_of(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (ALERT % ('"LOUD"', ""), [WRONG]),
        (ALERT % ('"ERROR"', ""), []),
        (ALERT % ('var.x ? "ERROR" : "LOUD"', ""), [WRONG]),
        (ALERT % ('var.x == "LOUD" ? "ERROR" : "WARNING"', ""), []),
        (ALERT % ("each.value.severity", ""), []),
        (SEVERITY % ("ERROR", "WARNING") + CHOSEN, []),
        (SEVERITY % ("LOUD", "WARNING") + CHOSEN, [WRONG]),
        (SEVERITY % ("ERROR", "LOUD") + CHOSEN, [WRONG]),
        (
            ALERT % ('"ERROR"', CONDITIONS % (THRESHOLD % 'per_series_aligner = "ALIGN_MODE"')),
            [f"{AGGREGATIONS}.per_series_aligner cannot be ALIGN_MODE: ALIGN_NONE, "],
        ),
        (
            NAT % "ALL",
            ["google_compute_router_nat.n.source_subnetwork_ip_ranges_to_nat cannot be ALL: ALL_SUBNETWORKS_"],
        ),
    ],
)
def test_a_value_that_the_documentation_does_not_name_is_found(text: str, found: list[str]) -> None:
    told = [each for each in problems_of(text) if " cannot be " in each]
    assert len(told) == len(found)
    assert all(each.startswith(expected) for each, expected in zip(told, found, strict=True))


def test_the_values_that_are_read_are_those_that_the_files_use() -> None:
    """Of each form of documentation one: a list in brackets, words, points."""
    known = SCHEMA["resource"]
    conditions = known["google_monitoring_alert_policy"]["arguments"]["conditions"]["block"]["condition_threshold"]
    assert "ALIGN_DELTA" in conditions["block"]["aggregations"]["block"]["per_series_aligner"]["values"]
    assert "STANDARD" in known["google_storage_bucket"]["arguments"]["storage_class"]["values"]
    channel = known["google_container_cluster"]["arguments"]["release_channel"]["block"]["channel"]
    assert channel["values"] == ["UNSPECIFIED", "RAPID", "REGULAR", "STABLE", "EXTENDED"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('How. Possible values: ["A_B", "C"] Docs at Terraform Registry: {@link x}', ["A_B", "C"]),
        ('How. Default value: "A" Possible values: ["A", "B"].', ["A", "B"]),
        ("Logs. Valid values include SYSTEM, POD, and WORK. More.", ["SYSTEM", "POD", "WORK"]),
        ("It is on. Possible values: `TRUE`, `FALSE`.", ["TRUE", "FALSE"]),
        ("The channel. Accepted values are: * SLOW: Seldom, or never. * FAST: Weekly.", ["SLOW", "FAST"]),
        ("Having multiple values is not supported.", []),
        ("Possible values are described in the API package (https://x).", []),
        ("Valid values are 'A' for what is seldom, or 'B' for the rest.", []),
    ],
)
def test_values_are_read_where_the_documentation_names_all(text: str, values: list[str]) -> None:
    assert values_in(text) == values


def test_every_body_that_terraform_sends_as_json_is_a_dashboard() -> None:
    """Each root's is held to its API: test_the_dashboard_is_written_as_the_api_answers_it."""
    kinds = {
        kind
        for files in (FILES, *ENVIRONMENTS.values())
        for file in files.values()
        for block in file.get("resource", [])
        for kind, named in block.items()
        if "jsonencode(" in json.dumps(named) or re.search(r"\w_json\"", json.dumps(named))
    }
    assert kinds == {"google_monitoring_dashboard"}


def test_the_indexes_have_scopes_and_orders_of_the_provider() -> None:
    index = SCHEMA["resource"]["google_firestore_index"]["arguments"]
    declared = json.loads((ROOT / "infra" / "firestore.indexes.json").read_text())["indexes"]
    assert {each["queryScope"] for each in declared} <= {*index["query_scope"]["values"]}
    orders = {field["order"] for each in declared for field in each["fields"]}
    assert orders <= {*index["fields"]["block"]["order"]["values"]}


def test_a_block_may_have_an_argument_that_is_terraforms_own_elsewhere() -> None:
    assert problems_of(ACCELERATOR % "count = 1") == []


def test_an_expression_may_be_of_any_type() -> None:
    text = 'resource "google_storage_bucket" "b" {\n name = "a"\n location = var.l\n force_destroy = var.f\n}'
    assert problems_of(text) == []


def test_the_check_reads_every_reference_to_an_attribute() -> None:
    """One of a form that it does not know would pass unread."""
    text = "\n".join(re.sub(r"#.*", "", path.read_text()) for path in TERRAFORM.glob("*.tf"))
    references = re.finditer(r"(?<![\w.\"])(?:data\.)?(?:archive|google|time)_\w+\.\w+(?=[.\[])", text)
    unread = [text[found.start() :].splitlines()[0] for found in references if not REFERENCE.match(text, found.start())]
    assert unread == []


def test_an_argument_of_the_bindings_keeps_its_terraform_name_and_whether_it_is_required() -> None:
    docs = "Docs at Terraform Registry: {@link https://x/docs/resources/thing#ip_v4_range Thing#ip_v4_range}"
    types: dict[str, Any] = {
        "T": {
            "properties": [
                {"name": "ipV4Range", "type": {"primitive": "string"}, "docs": {"summary": docs}},
                {"name": "id", "type": {"primitive": "string"}, "optional": True},
                {
                    "name": "rule",
                    "optional": True,
                    "type": {
                        "union": {
                            "types": [
                                {"fqn": "cdktn.IResolvable"},
                                {"collection": {"kind": "array", "elementtype": {"fqn": "R"}}},
                            ]
                        }
                    },
                    "docs": {"summary": "rule block."},
                },
                {"name": "exec", "optional": True, "type": {"fqn": "R"}, "docs": {"summary": "How to log in."}},
            ]
        },
        "R": {"properties": [{"name": "isOn", "type": {"primitive": "boolean"}}]},
    }
    assert arguments(types, "T") == {
        "ip_v4_range": {"type": "string", "required": True},
        "rule": {"block": {"is_on": {"type": "bool", "required": True}}, "many": True},
        "exec": {"block": {"is_on": {"type": "bool", "required": True}}, "attribute": True},
    }
