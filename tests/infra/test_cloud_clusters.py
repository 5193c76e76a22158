"""What Terraform grants and keeps for each cluster, and that it drops none in which slices stand."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from infra.local import messaging
from tests.infra.evaluation import (
    CLUSTERS,
    NUMBER,
    PROJECT,
    conditions,
    evaluated,
    expression,
    prepared,
    read,
    write_cluster,
)
from tests.infra.sources import local, resource
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.planning.pool_labels import SLICE_ID_LABEL

pytestmark = [
    pytest.mark.emulators,
    pytest.mark.enable_socket,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed"),
]

BLUE = f"clusters/blue/projects/{PROJECT}/locations/us-central2/clusters/blue"
RED = "clusters/red/projects/other-project/locations/us-central2/clusters/red"
OURS = {SLICE_ID_LABEL: "tpu-llama-0-ni2rmqnzkqh7a"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return prepared(tmp_path)


def remove_file(folder: Path, cluster: str) -> None:
    (folder.parent / "clusters" / PROJECT / f"{cluster}.yaml").unlink()


def dropped(folder: Path, **variables: str) -> list[str]:
    keys: list[str] = evaluated(folder, {"dropped": "keys(local.dropped)"}, **variables)["dropped"]
    return keys


def may_be_planned(folder: Path) -> bool:
    [condition] = conditions("google_firestore_database", "records")
    return bool(evaluated(folder, {"met": condition})["met"])


def test_a_cluster_without_its_file_is_looked_up_in_gke(folder: Path) -> None:
    read(folder, {"noted_before": [BLUE, RED]})
    assert dropped(folder) == []
    remove_file(folder, "red")
    found = evaluated(folder, {"dropped": "local.dropped"})["dropped"]
    assert found == {RED: {"project": "other-project", "location": "us-central2", "name": "red"}}


def test_another_path_of_a_cluster_drops_the_one_that_it_was(folder: Path) -> None:
    read(folder, {"noted_before": [BLUE.replace("us-central2", "us-east5"), RED]})
    assert dropped(folder) == [BLUE.replace("us-central2", "us-east5")]


def test_a_removal_looks_up_every_cluster(folder: Path) -> None:
    read(folder, {"noted_before": [BLUE, RED]})
    assert dropped(folder, destroy="yes") == [BLUE, RED]


def test_a_cluster_that_is_said_to_be_deleted_is_not_looked_up(folder: Path) -> None:
    read(folder, {"noted_before": [BLUE, RED]})
    remove_file(folder, "red")
    assert dropped(folder, deleted_clusters='["red"]') == []


def test_nothing_is_looked_up_before_the_first_apply(folder: Path) -> None:
    assert dropped(folder, destroy="yes") == []
    assert may_be_planned(folder)


@pytest.mark.parametrize(
    ("pools", "refused"),
    [
        ({"default-pool": {}}, False),
        ({"tpu-v6e": {"google.com/nodepool-manager": "tpu-provisioner"}}, False),
        ({"default-pool": {}, "tpu-llama-0-ni2rmqnzkqh7a-1": OURS}, True),
    ],
    ids=["no pool", "a pool of TPU Provisioner", "a pool of ours"],
)
def test_a_plan_fails_if_it_drops_a_cluster_in_which_pools_of_ours_stand(
    folder: Path, pools: dict[str, dict[str, str]], refused: bool
) -> None:
    read(folder, {"dropped_pools": {RED: pools}})
    assert may_be_planned(folder) is not refused


def test_the_refusal_names_the_pools_and_their_cluster(folder: Path) -> None:
    read(folder, {"dropped_pools": {RED: {"tpu-a-1": OURS, "default-pool": {}}, BLUE: {}}})
    [refusal] = resource("google_firestore_database", "records")["lifecycle"][0]["precondition"]
    message = refusal["error_message"].replace('\\"', '"').replace("\n", " ").strip()
    said = " projects/other-project/locations/us-central2/clusters/red: tpu-a-1. "
    assert said in evaluated(folder, {"message": f'"{message}"'})["message"]


def test_a_function_may_use_the_clusters_with_a_file_only(folder: Path) -> None:
    """On resources as GKE names them in its audit log."""
    condition = expression(resource("google_project_iam_member", "gke_cluster")["condition"][0]["expression"])
    stated = evaluated(folder, {"condition": condition.replace("each.value.cluster", '"blue"')})["condition"]
    read_by_iam = re.fullmatch(r'resource\.type != "(.*)" \|\| resource\.name\.endsWith\("(.*)"\)', stated)
    assert read_by_iam, stated
    kind, suffix = read_by_iam.groups()
    assert kind == "container.googleapis.com/Cluster"

    for place in ("zones/us-central2", "locations/us-central2"):
        assert f"projects/{PROJECT}/{place}/clusters/blue".endswith(suffix)
    for other in ("us-central2/clusters/light-blue", "us-east5/clusters/blue", "us-central2/clusters/red"):
        assert not f"projects/{PROJECT}/zones/{other}".endswith(suffix)


def test_a_log_sink_passes_the_pools_of_its_provisioners_clusters_only(folder: Path) -> None:
    write_cluster(folder, "green")
    assert evaluated(folder, {"filters": "local.served_clusters_filter"})["filters"] == {
        "other-project": '(resource.labels.location="us-central2" AND resource.labels.cluster_name="red")',
        PROJECT: '(resource.labels.location="us-central2" AND resource.labels.cluster_name="blue") OR '
        '(resource.labels.location="us-central2" AND resource.labels.cluster_name="green")',
    }


def test_more_clusters_of_a_project_than_iam_takes_conditions_fail_a_precondition(folder: Path) -> None:
    _, few_enough = conditions("google_project_iam_member", "gke_cluster")
    for number in range(19):
        write_cluster(folder, f"more-{number}")
    assert evaluated(folder, {"met": few_enough}) == {"met": True}
    write_cluster(folder, "one-too-many")
    assert evaluated(folder, {"met": few_enough}) == {"met": False}


def test_each_relay_is_a_principal_of_its_own(folder: Path) -> None:
    write_cluster(folder, "green")
    pool = "principal://iam.googleapis.com/projects/{}/locations/global/workloadIdentityPools/{}.svc.id.goog"
    assert evaluated(folder, {"relays": "local.relays"})["relays"] == {
        cluster: f"{pool.format(NUMBER, project)}/subject/ns/tpu-slice-provisioner/sa/relay-{cluster}"
        for cluster, project in {**CLUSTERS, "green": PROJECT}.items()
    }


def test_a_relay_is_granted_the_topic_and_the_subscriptions_of_its_cluster_alone() -> None:
    pulled = {row.name for row in messaging.read().subscriptions if "{cluster}" in row.name and row.function is None}
    assert pulled == {"relay-{cluster}", "questions-{cluster}"}
    published, consumed = (resource(f"google_pubsub_{kind}_iam_member", "relay") for kind in ("topic", "subscription"))
    assert published["topic"].replace('\\"', '"') == '${google_pubsub_topic.topic["facts-${each.key}"].id}'
    assert published["member"] == "${local.relays[each.key]}"
    assert consumed["member"] == "${local.relays[each.value.cluster]}"


def test_names_in_a_project_with_clusters_are_this_provisioners_own_and_not_too_long(folder: Path) -> None:
    role: dict[str, Any] = resource("google_project_iam_custom_role", "gke")
    sink = resource("google_logging_project_sink", "operations")["name"]
    project = "a-project-with-the-longest-nam"
    role_id = expression(role["role_id"])
    for name in ("function", "scope"):
        role_id = role_id.replace(f"each.value.{name}", {"function": '"reconcile"', "scope": '"project"'}[name])
    made = evaluated(folder, {"role": role_id, "sink": f'"{sink}"'}, project=project, role_prefix="t" * 16)

    assert len(project) == 30
    assert re.fullmatch(r"[a-zA-Z0-9_.]{3,64}", made["role"])
    assert re.fullmatch(r"[a-zA-Z0-9_.-]{1,100}", made["sink"])
    assert made["role"].endswith("_a_project_with_the_longest_nam")
    assert made["sink"].endswith(project)


def test_service_accounts_and_the_bucket_have_names_that_google_takes(folder: Path) -> None:
    bucket = evaluated(folder, {"it": "local.functions_bucket"}, project="a-project-with-the-longest-nam")["it"]
    assert re.fullmatch(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]", bucket)
    patterns = [resource("google_service_account", kind)["account_id"] for kind in ("function", "push", "build")]
    names = {pattern.replace("${each.key}", function) for pattern in patterns for function in local("functions")}
    assert all(re.fullmatch(r"[a-z][a-z0-9-]{4,28}[a-z0-9]", name) for name in names), names


def test_the_longest_id_of_a_cluster_fits_a_principals_subject() -> None:
    """Google takes 127 bytes (google.subject of a workload identity pool)."""
    cluster = ClusterId("c" * 63)
    assert len(f"ns/tpu-slice-provisioner/sa/relay-{cluster}") <= 127


@pytest.mark.parametrize(
    ("variables", "kept"),
    [
        ({}, ("DELETE_PROTECTION_ENABLED", "PREVENT")),
        ({"destroy": "yes"}, ("DELETE_PROTECTION_DISABLED", "DELETE")),
        ({"database": "existing"}, ("DELETE_PROTECTION_ENABLED", "ABANDON")),
        ({"database": "existing", "destroy": "yes"}, ("DELETE_PROTECTION_ENABLED", "ABANDON")),
    ],
)
def test_the_records_are_deleted_only_on_request_and_only_if_they_were_made_here(
    folder: Path, variables: dict[str, str], kept: tuple[str, str]
) -> None:
    database = resource("google_firestore_database", "records")
    queries = {name: expression(database[name]) for name in ("delete_protection_state", "deletion_policy")}
    assert tuple(evaluated(folder, queries, **variables).values()) == kept
