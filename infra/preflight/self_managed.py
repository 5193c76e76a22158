"""What Compute Engine says of where the slices of a self-managed cluster are to be: network, image, zone.

The build neither reaches the cluster's API server nor has credentials for it: what that says is in `inside`.
"""

from collections.abc import Iterator

from infra.preflight.accounts import grant, roles_of
from infra.preflight.answers import Answer, Body, Denied, Found, Missing, unknown
from infra.preflight.findings import Finding, error, unread, warning
from infra.preflight.network import Subnetwork, has_nat
from infra.preflight.place import Place
from tpu_slices.domain.model.clusters import ClusterSettings, ComputeSettings, Join

GROUP_AGENT = "roles/compute.instanceGroupManagerServiceAgent"
_GROUP_AGENTS = {GROUP_AGENT, "roles/compute.instanceAdmin.v1", "roles/compute.admin", "roles/editor", "roles/owner"}
IMAGE_USER = "roles/compute.imageUser"


def subnetwork_of(compute: ComputeSettings, place: Place) -> Subnetwork:
    """Return the subnetwork of the hosts: in project and region of the slices, unless the settings say others."""
    *where, name = compute.subnetwork.split("/")
    named = dict(zip(where[::2], where[1::2], strict=False))
    return Subnetwork(named.get("projects", place.project), named.get("regions", place.region), name)


def subnetwork_findings(compute: ComputeSettings, at: Subnetwork, found: Answer, routers: Answer) -> Iterator[Finding]:
    """Yield whether hosts, which have no external addresses, reach Google's APIs, and what they install."""
    yield from unread("whether the subnetwork of the hosts exists", found)
    if isinstance(found, Missing):
        yield error(
            f"There is no subnetwork {at.name} in {at.region} of {at.project}, or the build may not see it: mend "
            "compute.subnetwork.",
            f"gcloud compute networks subnets list --project {at.project} --regions {at.region}",
        )
    if not isinstance(found, Found):
        return
    yield from unread("whether hosts have NAT", routers)
    nat = not isinstance(routers, Found) or has_nat(found.body.get("network", ""), routers.body)
    if not (found.body.get("privateIpGoogleAccess") or nat):
        yield error(
            f"Hosts have no external addresses, and {at.name} has neither Private Google Access nor NAT.",
            f"gcloud compute networks subnets update {at.name} --region {at.region} --project {at.project} "
            "--enable-private-ip-google-access",
        )
    elif not nat and compute.join is Join.KUBEADM:
        yield _without_nat(at, found.body)


def _without_nat(at: Subnetwork, subnetwork: Body) -> Finding:
    network = str(subnetwork.get("network", "")).rpartition("/")[2]
    there = f"--region {at.region} --project {at.project}"
    return warning(
        f"{at.name} has no NAT: hosts cannot install what the image lacks of kubelet and kubeadm, nor pull images of "
        "registries that are not Google's.",
        f"gcloud compute routers create tpu-hosts --network {network} {there}",
        f"gcloud compute routers nats create tpu-hosts --router tpu-hosts {there} --auto-allocate-nat-external-ips "
        "--nat-all-subnet-ip-ranges",
    )


def image_findings(image: str, found: Answer) -> Iterator[Finding]:
    """Yield whether there is the image, and whether it is one to be used."""
    project = image.split("/")[1]
    match found:
        case Missing():
            yield error(
                f"There is no image {image}: mend compute.image.", f"gcloud compute images list --project {project}"
            )
        case Denied():
            yield warning(
                f"It could not be read whether there is the image {image}: {unknown(found)}. Reconcile, and Google's "
                f"account of instance groups, need {IMAGE_USER} in {project}, unless everybody may read it."
            )
        case Found(body) if body.get("deprecated", {}).get("state") in {"OBSOLETE", "DELETED"}:
            yield error(f"The image {image} is {body['deprecated']['state']}: no host can be made of it.")
        case _:
            yield from unread(f"whether there is the image {image}", found)


def zone_findings(settings: ClusterSettings, found: Answer) -> Iterator[Finding]:
    """Yield whether the zone of slices that ask for none is one."""
    yield from unread(f"whether there is the zone {settings.zone}", found)
    place = Place.of(settings.path)
    if isinstance(found, Missing):
        yield error(
            f"There is no zone {settings.zone}: mend `zone`.", f"gcloud compute zones list --project {place.project}"
        )
    elif isinstance(found, Found) and found.body.get("status", "UP") != "UP":
        yield warning(f"Compute Engine says that the zone {settings.zone} is {found.body['status']}.")


def agent_findings(project: str, number: str, policy: Answer) -> Iterator[Finding]:
    """Yield whether Google's account may make the machines of instance groups; `policy` is of their project."""
    agent = f"{number}@cloudservices.gserviceaccount.com"
    yield from unread(f"which roles {agent} has in {project}", policy)
    if isinstance(policy, Found) and not roles_of(agent, [policy.body]) & _GROUP_AGENTS:
        yield error(
            f"{agent}, by which Google makes the machines of instance groups, may not do so, as far as {project} "
            "itself grants it.",
            grant(project, agent, GROUP_AGENT),
        )
