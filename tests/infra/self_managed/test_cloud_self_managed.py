"""What Terraform grants and keeps for self-managed clusters, whose slices are on Compute Engine."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.infra.evaluation import (
    CLUSTERS,
    PROJECT,
    conditions,
    evaluated,
    expression,
    instances,
    prepared,
    read,
    terraform,
    write_self_managed,
)
from tests.infra.sources import ROOT, local, resource

pytestmark = [
    pytest.mark.emulators,
    pytest.mark.enable_socket,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed"),
]

FUNCTIONS: Mapping[str, Mapping[str, Any]] = local("functions")
OWN = "clusters/own/projects/chips-project/locations/us-central1"
PRINCIPAL = (
    "principal://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/own"
    "/subject/system:serviceaccount:tpu-slice-provisioner:relay-own"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the root for two clusters of GKE and a self-managed one, whose slices are in a project of their own."""
    made = prepared(tmp_path)
    write_self_managed(made, "own", "chips-project")
    return made


def test_it_has_topic_subscription_relay_and_note_as_every_cluster(folder: Path) -> None:
    found = instances(folder)
    assert "own" in evaluated(folder, {"topics": "[for row in local.topics : row.cluster]"})["topics"]
    assert found["google_pubsub_topic_iam_member.relay"] == ["blue", "own", "red"]
    assert found["google_pubsub_subscription_iam_member.relay"] == [
        *("questions-blue", "questions-own", "questions-red"),
        *("relay-blue", "relay-own", "relay-red"),
    ]
    assert OWN in found["google_storage_bucket_object.cluster"]


def test_what_is_of_gke_is_not_made_for_it_nor_what_is_of_compute_engine_for_others(folder: Path) -> None:
    found = instances(folder)
    assert set(evaluated(folder, {"places": "local.places"})["places"]) == set(CLUSTERS)
    assert found["google_logging_project_sink.operations"] == ["other-project", PROJECT]
    assert found["google_logging_project_sink.compute_operations"] == ["chips-project"]
    assert found["google_pubsub_topic_iam_member.compute_operations"] == ["chips-project"]
    assert found["google_monitoring_alert_policy.relay"] == ["other-project", PROJECT]
    assert not [key for key in found["google_project_iam_custom_role.gke"] if key.endswith("/chips-project")]
    assert found["google_project_iam_custom_role.compute"] == [
        "reconcile/compute/chips-project",
        "reconcile/hosts/chips-project",
        "sweep/compute/chips-project",
    ]
    assert found["google_project_iam_member.compute_hosts"] == ["reconcile/hosts/chips-project"]


def test_without_such_clusters_there_is_nothing_of_compute_engine(tmp_path: Path) -> None:
    found = instances(prepared(tmp_path))
    of_compute = {address: keys for address, keys in found.items() if ".compute" in address}
    of_relays = {"google_service_account.relay", "google_artifact_registry_repository_iam_member.relay"}
    assert len(of_compute) == 5
    assert not any(of_compute.values())
    assert not any(found[address] for address in of_relays)


def test_a_workload_policy_is_made_for_clusters_of_gke_only(folder: Path) -> None:
    """Each slice on Compute Engine has one of its own."""
    policy = "pools: {service_account: nodes@p.iam.gserviceaccount.com, workload_policy: cube-4x4x4}\n"
    write_self_managed(folder, "own", settings=policy)
    assert evaluated(folder, {"made": "local.workload_policies"})["made"] == {}


def test_its_relay_is_a_service_account_of_its_own_that_may_pull_its_image(folder: Path) -> None:
    longest = "c" * 63
    write_self_managed(folder, longest)
    found = evaluated(folder, {"relays": "local.relays", "accounts": "local.relay_accounts"})
    assert found["relays"]["own"] == f"serviceAccount:tpu-relay-own@{PROJECT}.iam.gserviceaccount.com"
    assert set(found["accounts"]) == {"own", longest}
    assert all(re.fullmatch(r"[a-z][a-z0-9-]{4,28}[a-z0-9]", account) for account in found["accounts"].values())
    assert instances(folder)["google_artifact_registry_repository_iam_member.relay"] == [longest, "own"]


def test_the_longest_id_that_is_not_cut_fits_a_service_account(folder: Path) -> None:
    for length in (20, 21):
        write_self_managed(folder, "d" * length)
    accounts = evaluated(folder, {"accounts": "local.relay_accounts"})["accounts"]
    assert accounts["d" * 20] == f"tpu-relay-{'d' * 20}"
    assert accounts["d" * 21].removeprefix("tpu-relay-") != "d" * 20
    assert {len(accounts["d" * length]) for length in (20, 21)} == {30}


@pytest.mark.parametrize("member", [PRINCIPAL, "serviceAccount:control-plane@p.iam.gserviceaccount.com"])
def test_a_relay_that_is_named_has_no_service_account_made_for_it(folder: Path, member: str) -> None:
    queries = {"relays": "local.relays", "accounts": "keys(local.relay_accounts)"}
    found = evaluated(folder, queries, relay_members=f'{{own = "{member}"}}')
    assert found["relays"]["own"] == member
    assert found["accounts"] == []


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ('{own = "user:me@example.com"}', "A relay is serviceAccount:EMAIL, or the subject"),
        (f'{{own = "{PRINCIPAL.replace("principal", "principalSet", 1)}"}}', "A relay is serviceAccount:EMAIL"),
        ('{blue = "serviceAccount:a@p.iam.gserviceaccount.com"}', "must be that of a self-managed cluster"),
        ('{nobody = "serviceAccount:a@p.iam.gserviceaccount.com"}', "must be that of a self-managed cluster"),
    ],
)
def test_a_member_that_is_no_relay_is_refused(folder: Path, members: str, says: str) -> None:
    values = {"project": PROJECT, "region": "us-central1", "firestore_location": "nam5", "relay_members": members}
    with pytest.raises(AssertionError, match=says):
        terraform(folder, "plan", "-no-color", *(f"-var={name}={given}" for name, given in values.items()))


def test_reconcile_may_change_machines_and_templates_with_names_of_slices_only(folder: Path) -> None:
    stated = resource("google_project_iam_member", "compute_hosts")["condition"][0]["expression"]
    whole = evaluated(folder, {"condition": expression(stated)})["condition"]
    other_types, *named = whole.split(" || ")
    types = {"Instance": "/instances/", "InstanceTemplate": "/instanceTemplates/"}
    assert other_types == " && ".join(f'resource.type != "compute.googleapis.com/{kind}"' for kind in types)
    assert named == [f'resource.name.extract("{part}{{name}}").startsWith("tpu-")' for part in types.values()]


def test_hosts_without_an_account_of_their_own_fail_a_precondition(folder: Path) -> None:
    [own_account] = conditions("google_project_iam_member", "compute_hosts")
    assert evaluated(folder, {"met": own_account}) == {"met": True}
    for settings in ("zone: us-central1-c\n", "pools: {service_account: 1-compute@developer.gserviceaccount.com}\n"):
        write_self_managed(folder, "own", settings=settings)
        assert evaluated(folder, {"met": own_account}) == {"met": False}


def test_a_plan_does_not_look_for_it_in_gke_when_its_file_is_gone(folder: Path) -> None:
    """The records tell, before the plan: tests/infra/preflight/test_preflight_records.py."""
    read(folder, {"noted_before": [OWN]})
    (folder.parent / "clusters" / PROJECT / "own.yaml").unlink()
    assert evaluated(folder, {"dropped": "local.dropped"})["dropped"] == {}


def test_names_in_its_project_are_this_provisioners_own_and_not_too_long(folder: Path) -> None:
    role = expression(resource("google_project_iam_custom_role", "compute")["role_id"])
    for name, value in {"function": "reconcile", "scope": "compute"}.items():
        role = role.replace(f"each.value.{name}", f'"{value}"')
    sink = resource("google_logging_project_sink", "compute_operations")["name"]
    project = "a-project-with-the-longest-nam"
    made = evaluated(folder, {"role": role, "sink": f'"{sink}"'}, project=project, role_prefix="t" * 16)
    assert re.fullmatch(r"[a-zA-Z0-9_.]{3,64}", made["role"])
    assert re.fullmatch(r"[a-zA-Z0-9_.-]{1,100}", made["sink"])
    assert made["role"].endswith("_a_project_with_the_longest_nam")
    assert made["sink"].endswith(project)


PERMISSIONS: Mapping[str, str] = {
    "global_operations.aggregated_list": "compute.globalOperations.list",
    "global_operations.list": "compute.globalOperations.list",
    "groups.aggregated_list": "compute.instanceGroupManagers.list",
    "groups.delete_unary": "compute.instanceGroupManagers.delete",
    "groups.patch_unary": "compute.instanceGroupManagers.update",
    "groups.get": "compute.instanceGroupManagers.get",
    "groups.insert_unary": "compute.instanceGroupManagers.create",
    "groups.list_managed_instances": "compute.instanceGroupManagers.get",
    "instances.list": "compute.instances.list",
    "instances.set_metadata_unary": "compute.instances.setMetadata",
    "policies.delete_unary": "compute.resourcePolicies.delete",
    "policies.get": "compute.resourcePolicies.get",
    "policies.insert_unary": "compute.resourcePolicies.create",
    "policies.list": "compute.resourcePolicies.list",
    "region_operations.list": "compute.regionOperations.list",
    "regional_templates.get": "compute.instanceTemplates.get",
    "templates.delete_unary": "compute.instanceTemplates.delete",
    "templates.get": "compute.instanceTemplates.get",
    "templates.insert_unary": "compute.instanceTemplates.create",
    "templates.list": "compute.instanceTemplates.list",
    "zone_operations.list": "compute.zoneOperations.list",
}
"""By client and method, as Compute Engine's REST reference has them."""
OF_WHAT_IS_MADE = {
    "compute.disks.create",
    "compute.images.useReadOnly",
    "compute.instanceGroups.create",
    "compute.instanceGroups.delete",
    "compute.instanceTemplates.useReadOnly",
    "compute.instances.create",
    "compute.instances.delete",
    "compute.instances.setLabels",
    "compute.instances.setServiceAccount",
    "compute.instances.setTags",
    "compute.resourcePolicies.use",
    "compute.subnetworks.use",
}
"""Of what a template describes, and a group consists of."""


OF_RESERVATIONS = {
    "compute.futureReservations.list",
    "compute.reservationBlocks.list",
    "compute.reservationSubBlocks.list",
    "compute.reservations.get",
    "compute.reservations.list",
}
"""What reads reservations, on whatever cluster."""


def granted(function: str) -> set[str]:
    return {each for permissions in FUNCTIONS[function]["compute"].values() for each in permissions}


def test_reconcile_may_call_every_method_of_compute_engine_that_the_adapter_calls_and_no_other() -> None:
    assert granted("reconcile") == {*PERMISSIONS.values(), *OF_WHAT_IS_MADE, *OF_RESERVATIONS}
    adapters = "".join(path.read_text() for path in (ROOT / "shared/tpu_slices/adapters").glob("compute*.py"))
    assert set(re.findall(r"\b_?clients\.(\w+\.\w+)\b", adapters)) <= set(PERMISSIONS)


def test_sweep_only_reads_and_receive_has_nothing_to_do_there() -> None:
    assert granted("sweep") < granted("reconcile")
    assert {each.rpartition(".")[2] for each in granted("sweep") - OF_RESERVATIONS} == {"list"}
    assert granted("receive") == set()
