"""What is around a cluster: service accounts, network, workload policies, its project and the provisioner's."""

from copy import deepcopy
from typing import Any

import pytest

from infra.preflight.accounts import image_findings, node_account_findings, node_accounts, relay_accounts
from infra.preflight.answers import Answer, Denied, Found, Missing, Unreachable
from infra.preflight.findings import Finding, Severity, error, warning
from infra.preflight.network import Subnetwork, network_findings, private_subnetwork
from infra.preflight.project import (
    APIS,
    CLUSTER_ROLES,
    CUSTOM_PERMISSIONS,
    ROLES,
    Asked,
    api_findings,
    bootstrap,
    bucket_findings,
    database_findings,
    permission_findings,
)
from infra.preflight.workload_policies import policy_names, topology_of, workload_policy_findings
from tests.infra.preflight.clouds import (
    BUCKET,
    CLUSTER,
    NETWORK,
    NODES,
    NUMBER,
    PERMISSIONS,
    POLICY,
    POOL,
    RELAY,
    SERVICES,
    SUBNETWORK,
    changed,
    settings,
)
from tpu_slices.domain.model.clusters import Allowed, ClusterSettings, Policy, PoolSettings

GRANT = "gcloud projects add-iam-policy-binding shop --member serviceAccount:{} --role {} --condition None"
HOSTS = Subnetwork("net", "us-central2", "hosts")
UNREAD = [Denied("Permission x denied"), Unreachable("https://x: timed out")]


def severities(findings: Any) -> list[Severity]:
    return [finding.severity for finding in findings]


# Service accounts


def test_the_accounts_of_tpu_nodes_are_those_that_the_settings_name() -> None:
    policy = Policy(
        everyone=Allowed(service_accounts=("a@shop", "b-*@shop")),
        namespaces={"x": Allowed(service_accounts=("c@shop",))},
    )
    assert node_accounts(settings(policy=policy)) == [NODES, "a@shop", "c@shop"]


@pytest.mark.parametrize(
    ("answer", "policy", "expected"),
    [
        (Found({}), Found(POLICY), []),
        (Missing(), Found(POLICY), [error(
            f"The service account {NODES} of TPU nodes does not exist.",
            "gcloud iam service-accounts create tpu-nodes --project shop",
        )]),
        (Found({"disabled": True}), Found(POLICY), [error(
            f"The service account {NODES} of TPU nodes is disabled.",
            f"gcloud iam service-accounts enable {NODES} --project shop",
        )]),
        (Found({}), Found({}), [warning(
            f"Nodes with {NODES} may not write logs and metrics, as far as shop itself grants it.",
            GRANT.format(NODES, "roles/container.defaultNodeServiceAccount"),
        )]),
    ],
)  # fmt: skip
def test_what_the_accounts_of_tpu_nodes_lack_is_told(answer: Answer, policy: Answer, expected: list[Finding]) -> None:
    assert list(node_account_findings(settings(), {NODES: answer}, policy)) == expected


def test_roles_for_logs_and_for_metrics_do_in_place_of_gkes_own() -> None:
    bindings = [
        {"role": role, "members": [f"serviceAccount:{NODES}"]}
        for role in ("roles/logging.logWriter", "roles/monitoring.metricWriter")
    ]
    assert list(node_account_findings(settings(), {NODES: Found({})}, Found({"bindings": bindings}))) == []


def test_tpu_nodes_need_an_account_of_their_own() -> None:
    [finding] = node_account_findings(settings(pools=PoolSettings()), {}, Found(POLICY))
    assert finding.severity is Severity.ERROR


def test_a_pool_without_an_account_has_the_projects_default_one() -> None:
    pools = [POOL, changed(POOL, config__serviceAccount="default"), changed(POOL, config__serviceAccount=None)]
    default = f"{NUMBER}-compute@developer.gserviceaccount.com"
    assert relay_accounts(changed(CLUSTER, nodePools=pools), NUMBER) == [RELAY, default]


def test_the_relays_nodes_may_pull_its_image_by_the_project_or_by_the_repository() -> None:
    assert list(image_findings(RELAY, "shop", [Found(POLICY), Missing()])) == []
    assert list(image_findings(RELAY, "shop", [Found({}), Found(POLICY)])) == []


def test_nodes_that_may_not_pull_the_image_are_an_error() -> None:
    assert list(image_findings(RELAY, "shop", [Found({}), Missing()])) == [
        error(
            f"Nodes with {RELAY} may not pull the relay's image, as far as shop itself grants it.",
            GRANT.format(RELAY, "roles/artifactregistry.reader"),
        )
    ]


def test_a_role_under_a_condition_is_not_relied_on() -> None:
    conditional = {"bindings": [{**POLICY["bindings"][0], "condition": {"title": "on Sundays"}}]}
    assert severities(image_findings(RELAY, "shop", [Found(conditional), Missing()])) == [Severity.ERROR]


# Network


def test_a_cluster_with_public_nodes_needs_nothing_of_its_network() -> None:
    assert private_subnetwork(changed(CLUSTER, networkConfig__defaultEnablePrivateNodes=False)) is None


@pytest.mark.parametrize(
    "private",
    [
        CLUSTER,
        changed(CLUSTER, networkConfig__defaultEnablePrivateNodes=None, privateClusterConfig__enablePrivateNodes=True),
        changed(
            CLUSTER,
            networkConfig__defaultEnablePrivateNodes=None,
            nodePools=[changed(POOL, networkConfig__enablePrivateNodes=True)],
        ),
    ],
    ids=["by default", "as a private cluster", "in the relay's pool"],
)
def test_the_subnetwork_of_private_nodes_may_be_another_projects(private: dict[str, Any]) -> None:
    assert private_subnetwork(private) == HOSTS


@pytest.mark.parametrize(
    ("subnetwork", "routers", "expected"),
    [
        (Found(SUBNETWORK), Found({}), []),
        (Found(changed(SUBNETWORK, privateIpGoogleAccess=False)), Found({}), [Severity.ERROR]),
        (
            Found(changed(SUBNETWORK, privateIpGoogleAccess=False)),
            Found({"items": [{"network": NETWORK, "nats": [{"name": "nat"}]}]}),
            [],
        ),
        (
            Found(changed(SUBNETWORK, privateIpGoogleAccess=False)),
            Found({"items": [{"network": "another", "nats": [{"name": "nat"}]}, {"network": NETWORK}]}),
            [Severity.ERROR],
        ),
        (Found(changed(SUBNETWORK, privateIpGoogleAccess=False)), Denied("no"), [Severity.WARNING]),
        (Denied("no"), Denied("no"), [Severity.WARNING]),
    ],
)
def test_private_nodes_need_google_access_or_nat(subnetwork: Answer, routers: Answer, expected: list[Severity]) -> None:
    assert severities(network_findings(HOSTS, subnetwork, routers)) == expected


# Workload policies


def named(*names: str, pools: str = "tpu-provisioner-{topology}") -> ClusterSettings:
    return settings(pools=PoolSettings(workload_policy=pools), policy=Policy(everyone=Allowed(workload_policies=names)))


def policy_of(topology: str, description: str = "Made by the TPU slice provisioner of shop") -> Found:
    return Found(
        {
            "description": description,
            "workloadPolicy": {"type": "HIGH_THROUGHPUT", "acceleratorTopology": topology},
        }
    )


def test_only_policies_that_are_named_in_full_are_asked_about() -> None:
    assert policy_names(named("p-2x2x2", "p-*")) == ["p-2x2x2"]
    assert policy_names(named(pools="all-in-one")) == ["all-in-one"]


@pytest.mark.parametrize(
    ("name", "topology"),
    [("p-4x4x4", "4x4x4"), ("p-2x2x1", None), ("p", None), ("2x2x2-4x4x4", None), ("p2x2x2", None), ("p-2x2", None)],
)
def test_a_name_tells_a_topology_if_it_is_the_only_one_and_of_several_hosts(name: str, topology: str | None) -> None:
    assert topology_of(name) == topology


@pytest.mark.parametrize(
    ("name", "answer", "expected"),
    [
        ("p-4x4x4", policy_of("4x4x4"), []),
        ("p-4x4x4", Missing(), []),  # Terraform makes it
        ("p", Missing(), [Severity.WARNING]),
        ("p", policy_of("4x4x4", "by xpk"), []),
        ("p-4x4x4", policy_of("4x4x4", "by xpk"), [Severity.WARNING]),
        ("p-4x4x4", policy_of("2x2x2"), [Severity.ERROR]),
        ("p-4x4x4", Found({"groupPlacementPolicy": {}}), [Severity.ERROR]),
        ("p-4x4x4", Denied("no"), [Severity.WARNING]),
    ],
)
def test_a_policy_must_be_of_the_topology_in_its_name(name: str, answer: Answer, expected: list[Severity]) -> None:
    assert severities(workload_policy_findings(settings(), "shop", {name: answer})) == expected


# Projects


def test_apis_that_are_off_are_told_in_one_command() -> None:
    off = deepcopy(SERVICES)
    for service in off["services"]:
        if service["config"]["name"] in {"run.googleapis.com", "iam.googleapis.com"}:
            service["state"] = "DISABLED"
    assert list(api_findings("shop", Found(SERVICES), APIS)) == []
    assert list(api_findings("shop", Found(off), APIS)) == [
        error(
            "APIs are off: iam.googleapis.com, run.googleapis.com.",
            "gcloud services enable iam.googleapis.com run.googleapis.com --project shop",
        )
    ]


def test_a_role_is_lacking_if_any_of_its_permissions_is() -> None:
    both = {**ROLES, **CLUSTER_ROLES}
    assert list(permission_findings(Found(PERMISSIONS), both, "", CUSTOM_PERMISSIONS)) == []
    lacking = [*PERMISSIONS["permissions"]]
    for permission in ("datastore.entities.get", "compute.routers.list"):
        lacking.remove(permission)
    [finding] = permission_findings(Found({"permissions": lacking}), both, "do this", CUSTOM_PERMISSIONS)
    assert finding == error(
        "The build's account tpu-slice-deployer lacks roles/datastore.owner, compute.routers.list.", "do this"
    )


def test_the_remedy_for_projects_names_those_with_clusters() -> None:
    asked = Asked(
        project="shop", region="us-central1", state_bucket="state", firestore_location="nam5", max_instances=10
    )
    assert bootstrap(asked, ["shop", "other"]) == (
        "infra/bootstrap.sh --project shop --region us-central1 --firestore-location nam5 --state-bucket state "
        "--cluster-project shop --cluster-project other"
    )


@pytest.mark.parametrize("answer", UNREAD, ids=["denied", "unreachable"])
def test_a_project_that_cannot_be_read_cannot_be_deployed_to(answer: Answer) -> None:
    assert severities(api_findings("shop", answer, APIS)) == [Severity.ERROR]
    assert severities(permission_findings(answer, ROLES, "do this")) == [Severity.ERROR]
    assert severities(bucket_findings("state", answer, "do this")) == [Severity.ERROR]


@pytest.mark.parametrize("answer", UNREAD, ids=["denied", "unreachable"])
def test_what_else_cannot_be_read_is_a_warning_that_says_why(answer: Answer) -> None:
    found = [
        *node_account_findings(settings(), {NODES: answer}, Found(POLICY)),
        *node_account_findings(settings(), {NODES: Found({})}, answer),
        *image_findings(RELAY, "shop", [answer, Missing()]),
        *workload_policy_findings(settings(), "shop", {"p": answer}),
        *database_findings("nam5", answer, deployed=True),
    ]
    assert severities(found) == [Severity.WARNING] * 5
    assert all("denied" in finding.message or "timed out" in finding.message for finding in found)


def test_the_bucket_of_the_state_keeps_versions_and_is_nobody_elses() -> None:
    assert list(bucket_findings("state", Found(BUCKET), "")) == []
    assert list(bucket_findings("state", Found({"iamConfiguration": BUCKET["iamConfiguration"]}), "")) == [
        warning(
            "gs://state, which has Terraform's state, lacks versioning.",
            "gcloud storage buckets update gs://state --versioning",
        )
    ]
    [finding] = bucket_findings("state", Found({}), "")
    flags = "--versioning --uniform-bucket-level-access --public-access-prevention"
    assert finding.remedies == (f"gcloud storage buckets update gs://state {flags}",)


@pytest.mark.parametrize(
    ("answer", "deployed", "expected"),
    [
        (Missing(), False, []),
        (Found({"type": "FIRESTORE_NATIVE", "locationId": "nam5"}), True, []),
        (Found({"type": "FIRESTORE_NATIVE", "locationId": "nam5"}), False, [Severity.WARNING]),
        (Found({"type": "FIRESTORE_NATIVE", "locationId": "eur3"}), True, [Severity.ERROR]),
        (Found({"type": "DATASTORE_MODE", "locationId": "nam5"}), True, [Severity.ERROR]),
    ],
)
def test_a_database_that_is_there_must_be_the_one_that_is_asked_for(
    answer: Answer, deployed: bool, expected: list[Severity]
) -> None:
    assert severities(database_findings("nam5", answer, deployed=deployed)) == expected
