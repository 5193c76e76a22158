"""How Terraform itself evaluates the files, as far as it can without a provider: format, locals and instances.

Every `for_each` depends on files and variables alone: the instances of each resource are known before any plan.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from infra.local import messaging
from tests.infra.sources import ROOT, TERRAFORM, blocks

pytestmark = [
    pytest.mark.emulators,
    pytest.mark.enable_socket,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed"),
]

MESSAGING = messaging.read()
PROJECT = "shop-project"
CLUSTERS = {"blue": PROJECT, "red": "other-project"}


def terraform(folder: Path, *arguments: str, text: str = "") -> str:
    """Run Terraform and return its output; an AssertionError has its error."""
    command = ["setpriv", "--pdeathsig", "TERM", "terraform", *arguments]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "CHECKPOINT_DISABLE": "1"}
    ran = subprocess.run(command, cwd=folder, env=environment, input=text, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr or ran.stdout
    return ran.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the variables, the locals that need no provider, and the files that they read."""
    target = tmp_path / "infra" / "terraform"
    target.mkdir(parents=True)
    for name in ("messaging.yaml", "firestore.indexes.json"):
        shutil.copy(ROOT / "infra" / name, tmp_path / "infra")
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3rc1"\nrequires-python = ">=3.11"\n')
    clusters = tmp_path / "infra" / "clusters" / PROJECT
    clusters.mkdir(parents=True)
    for cluster, project in CLUSTERS.items():
        (clusters / f"{cluster}.yaml").write_text(
            f"path: projects/{project}/locations/us-central2/clusters/{cluster}\n"
            "pools: {service_account: nodes@shop-project.iam.gserviceaccount.com}\n"
        )
    shutil.copy(TERRAFORM / "variables.tf", target)
    found = re.findall(r"^locals \{\n.*?^\}$", "\n".join(_texts()), flags=re.MULTILINE | re.DOTALL)
    (target / "locals.tf").write_text("\n".join(text for text in found if "data." not in text))
    return target


def _texts() -> list[str]:
    return [path.read_text() for path in sorted(TERRAFORM.glob("*.tf"))]


def evaluated(folder: Path, expressions: dict[str, str], project: str = PROJECT) -> dict[str, Any]:
    queries = ", ".join(f'"{name}" = {expression}' for name, expression in expressions.items())
    variables = {"project": project, "region": "us-central1", "firestore_location": "nam5"}
    given = [f"-var={name}={value}" for name, value in variables.items()]
    answer = terraform(folder, "console", *given, text=f"jsonencode({{{queries}}})\n")
    values: dict[str, Any] = json.loads(json.loads(answer))
    return values


def instances(folder: Path) -> dict[str, list[str]]:
    """Return the keys of the instances of every resource with `for_each`, by its address."""
    each = {
        f"{kind}.{name}": f"keys({{for key, _ in {_expression(body)} : key => 0}})"
        for block in blocks("resource")
        for kind, named in block.items()
        for name, body in named.items()
        if "for_each" in body
    }
    return evaluated(folder, each)


def _expression(body: dict[str, str]) -> str:
    text = body["for_each"].removeprefix("${").removesuffix("}")
    return text if not text.startswith("toset(") else f"{{for item in {text} : item => 0}}"


def rows() -> dict[str, messaging.Subscription]:
    return {row.name: row for cluster in CLUSTERS for row in MESSAGING.of_cluster(cluster).subscriptions}


def test_the_files_are_formatted() -> None:
    terraform(TERRAFORM, "fmt", "-check", "-recursive", "-diff", ".")


def test_the_cloud_has_the_topics_and_subscriptions_of_the_local_stack(folder: Path) -> None:
    found = evaluated(folder, {"topics": "keys(local.topics)", "rows": "local.subscriptions"})

    assert found["topics"] == sorted({name for cluster in CLUSTERS for name in MESSAGING.of_cluster(cluster).topics})
    assert {name: {**row, "cluster": None} for name, row in found["rows"].items()} == {
        name: {
            "cluster": None,
            "topic": row.topic,
            "filter": row.filter,
            "function": row.function,
            "ack_deadline_seconds": row.ack_deadline_seconds,
            "minimum_backoff": f"{row.minimum_backoff_seconds}s",
            "maximum_backoff": f"{row.maximum_backoff_seconds}s",
            "dead_letter_topic": row.dead_letter_topic,
            "max_delivery_attempts": row.max_delivery_attempts,
        }
        for name, row in rows().items()
    }


def test_the_version_is_that_of_the_project_and_its_label_has_no_dot(folder: Path) -> None:
    found = evaluated(folder, {"version": "local.version", "label": "local.version_label"})
    assert found == {"version": "1.2.3rc1", "label": "1-2-3rc1"}


def test_a_functions_timeout_is_the_ack_deadline_of_its_subscriptions(folder: Path) -> None:
    waits = {
        function: max(row.ack_deadline_seconds for row in MESSAGING.subscriptions if row.function == function)
        for function in MESSAGING.functions
    }
    assert evaluated(folder, {"timeouts": "local.function_timeouts"})["timeouts"] == waits


def test_the_instances_follow_from_clusters_and_messaging(folder: Path) -> None:
    found = instances(folder)

    assert found["google_pubsub_topic_iam_member.relay"] == ["facts-blue", "facts-red"]
    assert found["google_pubsub_subscription_iam_member.relay"] == ["relay-blue", "relay-red"]
    assert found["google_pubsub_topic_iam_member.dead_letters"] == ["dead-letters"]
    dead_lettered = [row.name for row in rows().values() if row.dead_letter_topic]
    assert found["google_pubsub_subscription_iam_member.dead_letters"] == sorted(dead_lettered)
    assert found["google_logging_project_sink.operations"] == ["other-project", "shop-project"]
    assert found["google_project_iam_member.gke"] == [
        f"{function}/{project}" for function in ("reconcile", "sweep") for project in ("other-project", "shop-project")
    ]
    assert found["google_service_account_iam_member.nodes"] == ["nodes@shop-project.iam.gserviceaccount.com"]
    assert found["google_cloud_scheduler_job.schedule"] == [schedule.name for schedule in MESSAGING.schedules]


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


def test_each_relay_gets_the_updates_of_its_own_cluster_only(folder: Path) -> None:
    found = evaluated(folder, {"filter": 'local.subscriptions["relay-blue"].filter'})
    assert found["filter"] == 'attributes.cluster = "blue"'


def test_every_index_and_every_field_override_has_its_own_resource(folder: Path) -> None:
    declared = json.loads((ROOT / "infra" / "firestore.indexes.json").read_text())
    found = instances(folder)

    assert len(found["google_firestore_index.index"]) == len(declared["indexes"])
    assert len(found["google_firestore_field.field"]) == len(declared["fieldOverrides"])


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
def test_nodes_without_their_own_service_account_fail_the_precondition(folder: Path, pools: str) -> None:
    path = f"projects/{PROJECT}/locations/us-central2/clusters/blue"
    (folder.parent / "clusters" / PROJECT / "blue.yaml").write_text(f"path: {path}\npools: {pools}\n")
    [body] = [block["google_project_iam_member"]["gke"] for block in blocks("resource") if _grants_gke(block)]
    [lifecycle] = body["lifecycle"]
    [precondition] = lifecycle["precondition"]

    condition = precondition["condition"].removeprefix("${").removesuffix("}")
    assert evaluated(folder, {"met": condition}) == {"met": False}


def _grants_gke(block: dict[str, Any]) -> bool:
    return "gke" in block.get("google_project_iam_member", {})
