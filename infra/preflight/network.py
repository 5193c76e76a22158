"""How private nodes reach Google's APIs: Private Google Access, or NAT."""

from collections.abc import Iterator
from dataclasses import dataclass

from infra.preflight.answers import Answer, Body, Found, Missing
from infra.preflight.findings import Finding, error, unread, warning
from infra.preflight.gke import relay_pools


@dataclass(frozen=True, slots=True)
class Subnetwork:
    project: str
    region: str
    name: str


def private_subnetwork(cluster: Body) -> Subnetwork | None:
    """Return the subnetwork of the cluster if some of its nodes have no addresses of their own in the internet."""
    config: Body = cluster.get("networkConfig", {})
    private = (
        config.get("defaultEnablePrivateNodes")
        or cluster.get("privateClusterConfig", {}).get("enablePrivateNodes")
        or any(pool.get("networkConfig", {}).get("enablePrivateNodes") for pool in relay_pools(cluster))
    )
    if not (private and config.get("subnetwork")):
        return None
    _, project, _, region, _, name = config["subnetwork"].split("/")
    return Subnetwork(project, region, name)


def public_nodes(cluster: Body) -> bool:
    """Return whether pools that say nothing of it, as those of slices, have nodes with external addresses."""
    return not (
        cluster.get("networkConfig", {}).get("defaultEnablePrivateNodes")
        or cluster.get("privateClusterConfig", {}).get("enablePrivateNodes")
    )


def network_findings(subnetwork: Subnetwork, found: Answer, routers: Answer) -> Iterator[Finding]:
    """Yield what is missing, by what Compute Engine says of the subnetwork and of the routers of its region."""
    yield from unread("whether private nodes reach Google's APIs", found)
    if isinstance(found, Missing):
        yield warning(
            f"Whether private nodes reach Google's APIs is not known: {subnetwork.name} is not shown to the build."
        )
    if not isinstance(found, Found) or found.body.get("privateIpGoogleAccess"):
        return
    yield from unread("whether private nodes have NAT", routers)
    if isinstance(routers, Found) and not has_nat(found.body.get("network", ""), routers.body):
        yield error(
            f"Nodes are private, and {subnetwork.name} has neither Private Google Access nor NAT: the relay could not "
            "reach its image, nor Pub/Sub.",
            f"gcloud compute networks subnets update {subnetwork.name} --region {subnetwork.region} "
            f"--project {subnetwork.project} --enable-private-ip-google-access",
        )


def has_nat(network: str, routers: Body) -> bool:
    return any(router.get("network") == network and router.get("nats") for router in routers.get("items", ()))
