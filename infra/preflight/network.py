"""How private nodes reach Google's APIs: Private Google Access, or NAT."""

from collections.abc import Iterator
from dataclasses import dataclass

from infra.preflight.answers import Answer, Body, Denied, Found, Missing, Unreachable, unknown
from infra.preflight.findings import Finding, error, warning
from infra.preflight.gke import relay_pools


@dataclass(frozen=True, slots=True)
class Subnetwork:
    project: str
    region: str
    name: str

    @property
    def path(self) -> str:
        return f"projects/{self.project}/regions/{self.region}/subnetworks/{self.name}"


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


def network_findings(subnetwork: Subnetwork, found: Answer, routers: Answer) -> Iterator[Finding]:
    """Yield what is missing, by what Compute Engine says of the subnetwork and of the routers of its region."""
    match found:
        case Missing():
            yield warning(f"There is no subnetwork {subnetwork.path}, although the cluster names it.")
        case Denied() | Unreachable():
            yield warning(f"Private nodes: it could not be read what they reach: {unknown(found)}")
        case Found(body) if not body.get("privateIpGoogleAccess") and not _has_nat(body.get("network", ""), routers):
            yield error(
                f"Nodes are private, and {subnetwork.name} has neither Private Google Access nor NAT: the relay could reach "
                "neither its image nor Pub/Sub.",
                f"gcloud compute networks subnets update {subnetwork.name} --region {subnetwork.region} "
                f"--project {subnetwork.project} --enable-private-ip-google-access",
            )


def _has_nat(network: str, routers: Answer) -> bool:
    listed = routers.body.get("items", ()) if isinstance(routers, Found) else ()
    return any(router.get("network") == network and router.get("nats") for router in listed)
