"""The commands that preflight tells as remedies: gcloud, and `slices`, understand each."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import click
import pytest

from infra.preflight.accounts import image_findings, node_account_findings
from infra.preflight.answers import Found, Missing
from infra.preflight.findings import Finding
from infra.preflight.gke import cluster_findings, endpoint
from infra.preflight.indexes import Declared, Field, Index, Seen, Standing, fatal_findings, overdue
from infra.preflight.instances import instance_findings
from infra.preflight.network import Subnetwork, network_findings
from infra.preflight.org_policies import (
    EXTERNAL,
    IMAGES,
    INGRESS,
    LOCATIONS,
    NO_DEFAULT_NETWORK,
    provisioner_findings,
)
from infra.preflight.org_policies import cluster_findings as policies_of_cluster
from infra.preflight.org_policies import network_findings as without_network
from infra.preflight.project import APIS, api_findings, bucket_findings
from infra.preflight.quotas import quota_findings, quotas_of
from infra.preflight.records import Books, dropped, held
from infra.preflight.self_managed import (
    agent_findings,
    subnetwork_findings,
    zone_findings,
)
from infra.preflight.self_managed import (
    image_findings as image_of_hosts_findings,
)
from infra.preflight.workload_policies import workload_policy_findings
from tests.builders import NOW, a_record
from tests.infra.gcloud.conftest import Gcloud
from tests.infra.loopback import NOT_FOUND, refusal, serving
from tests.infra.preflight.clouds import CLUSTER, NODES, POOL, RELAY, changed, settings
from tpu_slices.domain.model.clusters import ComputeSettings, Join
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices_cli.app import main as slices

WRONG_USAGE = 2


def of_self_managed() -> Iterator[Finding]:
    """Yield what is told of where the slices of a self-managed cluster are to be."""
    compute = ComputeSettings(image="projects/images/global/images/tpu", join=Join.KUBEADM)
    at = Subnetwork("net", "us-central2", "hosts")
    for found in (Missing(), Found({}), Found({"privateIpGoogleAccess": True, "network": "global/networks/default"})):
        yield from subnetwork_findings(compute, at, found, Found({}))
    yield from image_of_hosts_findings(compute.image, Missing())
    yield from zone_findings(settings(zone="us-central2-b"), Missing())
    none = Found({"dimensionsInfos": [{"details": {"value": "0"}}]})
    yield from quota_findings(settings(), {quota.id: none for quota in quotas_of(settings()).values()})
    yield from agent_findings("shop", "4711", Found({}))
    yield from quota_findings(settings(), {quota.id: Missing() for quota in quotas_of(settings()).values()})
    for cpus in (none, Missing()):
        yield from instance_findings("shop", "us-central1", 10, cpus)


def of_indexes() -> Iterator[Finding]:
    declared = Declared.read()
    broken: dict[Index | Field, Standing] = dict.fromkeys((*declared.indexes, *declared.fields), Standing.BROKEN)
    yield from fatal_findings(Seen(Found({}), {}), broken, "shop")
    yield overdue(declared.indexes, "shop")


def of_policies() -> Iterator[Finding]:
    """Yield what is told where an organisation's policies refuse what they can."""
    refused = Found({"spec": {"rules": [{"denyAll": True}, {"enforce": True}]}})
    policies = dict.fromkeys((*INGRESS, LOCATIONS, EXTERNAL, IMAGES, NO_DEFAULT_NETWORK), refused)
    yield from provisioner_findings("shop", {"functions": "us-central1"}, policies, deployed=False)
    yield from policies_of_cluster(settings(), policies, public_nodes=True)
    yield from without_network("shop", policies)


def findings() -> Iterator[Finding]:
    """Yield what is told of a project and of clusters that lack all that they can lack."""
    yield from of_self_managed()
    yield from of_indexes()
    yield from of_policies()
    lacking = dict.fromkeys(
        ("workloadIdentityConfig", "controlPlaneEndpointsConfig", "maintenancePolicy", "loggingConfig")
    )
    bare = changed(CLUSTER, nodePools=[], **lacking)
    yield from cluster_findings(settings(), bare)
    without_metadata = changed(POOL, config__workloadMetadataConfig=None)
    yield from cluster_findings(settings(), changed(CLUSTER, nodePools=[without_metadata]))
    unreachable = endpoint(settings(), bare, "")
    assert isinstance(unreachable, Finding)
    yield unreachable
    for account in (Missing(), Found({"disabled": True})):
        yield from node_account_findings(settings(), {NODES: account}, Found({}))
    yield from image_findings(RELAY, "shop", [Found({}), Missing()])
    yield from network_findings(Subnetwork("net", "us-central2", "hosts"), Found({}), Found({}))
    yield from workload_policy_findings(settings(), "shop", {"policy": Missing()})
    yield from api_findings("shop", Found({}), APIS)
    yield from bucket_findings("state", Found({}), "")
    for books in (
        Books(ClusterId("blue"), (a_record(create_requested_at=NOW),), unreadable=0),
        Books(ClusterId("blue"), (), unreadable=0),
    ):
        yield from dropped(books, [], "shop")
        yield from held(books, "shop")


def commands(program: str) -> list[str]:
    told = (remedy for finding in findings() for remedy in finding.remedies)
    return list(dict.fromkeys(remedy for remedy in told if remedy.startswith(f"{program} ")))


@pytest.mark.emulators
@pytest.mark.enable_socket
def test_gcloud_understands_every_command(gcloud: Gcloud) -> None:
    """Whoever runs it here learns that the project does not exist, which gcloud asks only once it has understood."""
    wrong = {}
    with serving(lambda _: refusal(NOT_FOUND)) as url:
        for command in commands("gcloud"):
            ran = gcloud.run(*shlex.split(command.replace("AxBxC", "2x2x2")), url=url, environment={})
            if ran.returncode == WRONG_USAGE:
                wrong[command] = ran.stderr
    assert wrong == {}
    assert len(commands("gcloud")) == 40


@pytest.mark.parametrize("command", commands("slices"))
def test_the_projects_own_command_understands_its_commands(command: str) -> None:
    group = click.Context(slices, info_name="slices")
    arguments = slices.make_parser(group).parse_args(shlex.split(command)[1:])[1]
    name, chosen, rest = slices.resolve_command(group, arguments)
    assert chosen is not None, name
    chosen.make_parser(click.Context(chosen, parent=group)).parse_args(rest)
