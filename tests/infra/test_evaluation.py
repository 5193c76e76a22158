"""How Terraform itself evaluates the files, as far as it can without a provider: format, locals and instances.

Every `for_each` depends on files and variables alone: the instances of each resource are known before any plan.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from infra.local import messaging
from tests.infra.evaluation import (
    CLUSTERS,
    PROJECT,
    conditions,
    evaluated,
    instances,
    planning,
    prepared,
    terraform,
    write_cluster,
)
from tests.infra.sources import ROOT, TERRAFORM

pytestmark = [
    pytest.mark.emulators,
    pytest.mark.enable_socket,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed"),
]

MESSAGING = messaging.read()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return prepared(tmp_path)


def rows() -> dict[str, messaging.Subscription]:
    return {row.name: row for cluster in CLUSTERS for row in MESSAGING.of_cluster(cluster).subscriptions}


def test_the_files_are_formatted() -> None:
    terraform(TERRAFORM, "fmt", "-check", "-recursive", "-diff", ".")


def test_the_cloud_has_the_topics_and_subscriptions_of_the_local_stack(folder: Path) -> None:
    queries = {"topics": "keys(local.topics)", "rows": "local.subscriptions", "schedules": "local.schedules"}
    found = evaluated(folder, queries)

    assert found["topics"] == sorted({name for cluster in CLUSTERS for name in MESSAGING.of_cluster(cluster).topics})
    assert {name: {**row, "cluster": None} for name, row in found["rows"].items()} == {
        name: {
            "cluster": None,
            "topic": row.topic,
            "function": row.function,
            "ack_deadline_seconds": row.ack_deadline_seconds,
            "minimum_backoff": f"{row.minimum_backoff_seconds}s",
            "maximum_backoff": f"{row.maximum_backoff_seconds}s",
            "dead_letter_topic": row.dead_letter_topic,
            "max_delivery_attempts": row.max_delivery_attempts,
        }
        for name, row in rows().items()
    }
    assert {name: {**row, "cluster": None} for name, row in found["schedules"].items()} == {
        row.name: {"cluster": None, "topic": row.topic, "cron": row.cron, "data": row.data}
        for cluster in CLUSTERS
        for row in MESSAGING.of_cluster(cluster).schedules
    }


def test_the_version_is_that_of_the_project_and_its_label_has_no_dot(folder: Path) -> None:
    found = evaluated(folder, {"version": "local.version", "labels": "local.labels"})
    assert found == {"version": "1.2.3rc1", "labels": {"app": "tpu-slice-provisioner", "version": "1-2-3rc1"}}


def test_the_commit_is_a_label_if_it_is_known(folder: Path) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    assert evaluated(folder, {"labels": "local.labels"}, commit=commit)["labels"]["commit"] == commit


def test_a_functions_timeout_is_the_ack_deadline_of_its_subscriptions(folder: Path) -> None:
    waits = {
        function: max(row.ack_deadline_seconds for row in MESSAGING.subscriptions if row.function == function)
        for function in MESSAGING.functions
    }
    assert evaluated(folder, {"timeouts": "local.function_timeouts"})["timeouts"] == waits


PUBLISHED = {
    "receive": ("questions", "requests", "updates"),
    "reconcile": ("questions", "requests", "updates"),
    "sweep": ("notifications", "questions", "requests", "updates"),
    "notify": (),
}
"""The topics of a cluster to which each function publishes."""


def test_the_instances_follow_from_clusters_and_messaging(folder: Path) -> None:
    found = instances(folder)

    assert found["google_pubsub_topic_iam_member.relay"] == ["blue", "red"]
    assert found["google_pubsub_topic_iam_member.function"] == sorted(
        f"{function}/{what}-{cluster}"
        for function, topics in PUBLISHED.items()
        for what in topics
        for cluster in CLUSTERS
    )
    assert found["google_pubsub_subscription_iam_member.relay"] == [
        *("questions-blue", "questions-red"),
        *("relay-blue", "relay-red"),
    ]
    assert found["google_pubsub_topic_iam_member.dead_letters"] == ["dead-letters"]
    dead_lettered = [row.name for row in rows().values() if row.dead_letter_topic]
    assert found["google_pubsub_subscription_iam_member.dead_letters"] == sorted(dead_lettered)
    assert found["google_logging_project_sink.operations"] == ["other-project", "shop-project"]
    assert found["google_project_iam_custom_role.gke"] == [
        f"{function}/{scope}/{project}"
        for function in ("reconcile", "sweep")
        for scope in ("cluster", "project")
        for project in ("other-project", "shop-project")
    ]
    assert found["google_project_iam_member.gke_cluster"] == [
        f"{function}/{cluster}" for function in ("reconcile", "sweep") for cluster in CLUSTERS
    ]
    assert found["google_storage_bucket_object.cluster"] == [
        "clusters/blue/projects/shop-project/locations/us-central2/clusters/blue",
        "clusters/red/projects/other-project/locations/us-central2/clusters/red",
    ]
    assert found["google_compute_resource_policy.workload"] == []
    assert found["google_service_account_iam_member.nodes"] == ["nodes@shop-project.iam.gserviceaccount.com"]
    scheduled = {row.name for cluster in CLUSTERS for row in MESSAGING.of_cluster(cluster).schedules}
    assert scheduled == {"project-ticks", *(f"ticks-{cluster}" for cluster in CLUSTERS)}
    assert found["google_cloud_scheduler_job.schedule"] == sorted(scheduled)


MADE = """
resource "terraform_data" "topic" {
  for_each = local.topics
}
resource "terraform_data" "subscription" {
  for_each = local.subscriptions
}
resource "terraform_data" "schedule" {
  for_each = local.schedules
}
"""
"""What is made by the same rows as in the cloud, by a provider that is part of Terraform."""


def test_what_an_earlier_table_had_is_not_left_behind(folder: Path) -> None:
    (folder / "main.tf").write_text(MADE)
    table, values = folder.parent / "messaging.yaml", {"region": "us-central1", "firestore_location": "nam5"}
    given = [f"-var={name}={value}" for name, value in {"project": PROJECT, **values}.items()]
    now = table.read_text()
    table.write_text(re.sub(r"\b(requests|ticks)-\{cluster\}", r"all-\1", now))
    terraform(folder, "init", "-no-color")
    terraform(folder, "apply", "-no-color", "-auto-approve", *given)
    table.write_text(now)
    said = planning(folder, "-no-color", *given)
    assert re.findall(r"# terraform_data\.(\S+) will be destroyed", said) == [
        'schedule["all-ticks"]',
        'subscription["reconcile-all-requests"]',
        'subscription["sweep-all-ticks"]',
        'topic["all-requests"]',
        'topic["all-ticks"]',
    ]


def test_reconcile_may_act_as_every_allowed_service_account_but_patterns(folder: Path) -> None:
    """Otherwise it could not create nodes with these accounts."""
    file = folder.parent / "clusters" / PROJECT / "blue.yaml"
    file.write_text(
        file.read_text()
        + "policy:\n  service_accounts: [vision@p.iam.gserviceaccount.com, 'tpu-*@p.iam.gserviceaccount.com']\n"
        + "  namespaces: {research: {service_accounts: [research@p.iam.gserviceaccount.com]}, empty: {}}\n"
    )
    assert instances(folder)["google_service_account_iam_member.nodes"] == [
        "nodes@shop-project.iam.gserviceaccount.com",
        "research@p.iam.gserviceaccount.com",
        "vision@p.iam.gserviceaccount.com",
    ]


def test_each_relay_gets_what_is_of_its_own_cluster_only(folder: Path) -> None:
    topics = {name: f'local.subscriptions["{name}-blue"].topic' for name in ("relay", "questions")}
    assert evaluated(folder, topics) == {"relay": "updates-blue", "questions": "questions-blue"}


def test_what_is_of_a_cluster_goes_with_its_file_and_nothing_else_does(folder: Path) -> None:
    """Terraform deletes each instance that a plan has no more, and each that an earlier table had."""
    kinds = ("google_pubsub_", "google_cloud_scheduler_")
    of_sinks = {f"google_pubsub_topic_iam_member.{name}" for name in ("operations", "compute_operations")}
    found = instances(folder)
    before = {kind: keys for kind, keys in found.items() if kind.startswith(kinds) and kind not in of_sinks}
    (folder.parent / "clusters" / PROJECT / "red.yaml").unlink()
    after = instances(folder)
    for kind, keys in before.items():
        assert after[kind] == [key for key in keys if not re.search(r"\bred$", key)], kind


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("project", "example.com:shop", "The project must be a project id"),
        ("region", "us-central1-a", "The region must be the name of a region"),
        ("commit", "main", "7 to 40 characters"),
        ("destroy", "maybe", "no, or yes"),
        ("database", "old", "new, or existing"),
        ("max_instances", "0", "a whole number from 1 to 1000"),
        ("max_instances", "2.5", "a whole number from 1 to 1000"),
        ("role_prefix", "tpu-slice", "1 to 16 letters and digits"),
        ("role_prefix", "t" * 17, "1 to 16 letters and digits"),
    ],
)
def test_an_impossible_value_is_refused_with_what_is_possible(
    folder: Path, variable: str, value: str, says: str
) -> None:
    values = {"project": PROJECT, "region": "us-central1", "firestore_location": "nam5", variable: value}
    with pytest.raises(AssertionError, match=says):
        terraform(folder, "plan", "-no-color", *(f"-var={name}={given}" for name, given in values.items()))


def test_every_index_and_every_field_override_has_its_own_resource(folder: Path) -> None:
    declared = json.loads((ROOT / "infra" / "firestore.indexes.json").read_text())
    found = instances(folder)

    assert len(found["google_firestore_index.index"]) == len(declared["indexes"])
    assert len(found["google_firestore_field.field"]) + len(found["google_firestore_field.rest"]) == len(
        declared["fieldOverrides"]
    )


def test_a_project_without_clusters_has_functions_and_no_relay(folder: Path) -> None:
    queries = {
        "topics": "keys(local.topics)",
        "projects": "local.gke_projects",
        "accounts": "local.node_service_accounts",
    }
    found = evaluated(folder, queries, project="nobodys-project")

    assert found["topics"] == sorted(name for name in MESSAGING.topics if "{cluster}" not in name)
    assert found["projects"] == []
    assert found["accounts"] == {}


@pytest.mark.parametrize("pools", ["{}", "{service_account: 1-compute@developer.gserviceaccount.com}"])
def test_nodes_without_their_own_service_account_fail_a_precondition(folder: Path, pools: str) -> None:
    own_account, _ = conditions("google_project_iam_member", "gke_cluster")
    assert evaluated(folder, {"met": own_account}) == {"met": True}
    write_cluster(folder, "blue", settings=f"pools: {pools}\n")
    assert evaluated(folder, {"met": own_account}) == {"met": False}
