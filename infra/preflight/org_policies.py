"""Organisation policies, as they are in effect in a project, that refuse what the build or the functions make.

| constraint | in the project of | refuses |
|---|---|---|
| run.allowedIngress, cloudfunctions.allowedIngressSettings | the provisioner | functions, whose ingress is internal |
| cloudfunctions.requireVPCConnector | the provisioner | functions, which have none |
| iam.disableServiceAccountCreation | the provisioner | the accounts of functions, pushes and builds |
| iam.allowedPolicyMemberDomains | both | grants to whoever is of another organisation |
| gcp.resourceLocations | both | what is in another place |
| compute.vmExternalIpAccess | a cluster with public nodes | each node |
| compute.requireShieldedVm | a cluster whose settings turn it off | each host |
| compute.trustedImageProjects | a self-managed cluster | hosts of another project's image |
| compute.skipDefaultNetworkCreation | a cluster | nothing; that a network is missing has this reason |

A rule with a condition (on tags) is not judged.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import Enum

from infra.preflight.answers import Answer, Body, Denied, Found, Unreachable
from infra.preflight.findings import Finding, error, note, unread, warning
from infra.preflight.place import Place
from tpu_slices.domain.model.clusters import ClusterSettings

LOCATIONS, MEMBERS = "gcp.resourceLocations", "iam.allowedPolicyMemberDomains"
EXTERNAL, SHIELDED = "compute.vmExternalIpAccess", "compute.requireShieldedVm"
IMAGES, NO_DEFAULT_NETWORK = "compute.trustedImageProjects", "compute.skipDefaultNetworkCreation"
CONNECTOR, NO_ACCOUNTS = "cloudfunctions.requireVPCConnector", "iam.disableServiceAccountCreation"
INGRESS: Mapping[str, str] = {
    "run.allowedIngress": "internal",
    "cloudfunctions.allowedIngressSettings": "ALLOW_INTERNAL_ONLY",
}
"""By constraint, its name for what functions have: infra/terraform/functions.tf."""
OF_PROVISIONER = (*INGRESS, CONNECTOR, NO_ACCOUNTS, MEMBERS, LOCATIONS)
OF_CLUSTERS = (MEMBERS, LOCATIONS, EXTERNAL, SHIELDED, IMAGES, NO_DEFAULT_NETWORK)
_OF_REGION = re.compile(r"in:[a-z]+-[a-z]+\d+(-[a-z])?-locations")


class Ruling(Enum):
    ALLOWED = "allowed"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    """It depends on a group of values that only Google knows."""


Policies = Mapping[str, Answer]
"""By constraint, the policy that is in effect in a project."""


def path(project: str, constraint: str) -> str:
    return f"v2/projects/{project}/policies/{constraint}:getEffectivePolicy"


def unread_findings(project: str, policies: Policies) -> Iterator[Finding]:
    """Yield, once for all, that policies cannot be read. They may well refuse nothing."""
    refused = [answer for answer in policies.values() if isinstance(answer, Denied | Unreachable)]
    for answer in refused[:1]:
        yield from unread(f"whether organisation policies refuse something in {project}", answer)


def provisioner_findings(
    project: str, places: Mapping[str, str], policies: Policies, *, deployed: bool
) -> Iterator[Finding]:
    """Yield what refuses the provisioner; `places` by what is made there.

    What stands goes on under a policy: once `deployed`, it need not stop a build.
    """
    told = warning if deployed else error
    for constraint, ours in INGRESS.items():
        if _ruling(policies.get(constraint), {ours}) is Ruling.REFUSED:
            yield told(
                f"{constraint} does not allow {ours}, which the functions have: nobody but Pub/Sub calls them.",
                _look(project, constraint),
            )
    if _enforced(policies.get(CONNECTOR)):
        yield warning(
            f"{CONNECTOR} demands that functions have a VPC connector. Those of the provisioner have none.",
            _look(project, CONNECTOR),
        )
    if _enforced(policies.get(NO_ACCOUNTS)) and not deployed:
        yield error(
            f"{NO_ACCOUNTS}: nobody can make service accounts in {project}, and each function has its own.",
            _look(project, NO_ACCOUNTS),
        )
    yield from _members(project, policies, told)
    for what, location in places.items():
        yield from _location(project, what, location, policies, told)


def cluster_findings(settings: ClusterSettings, policies: Policies, *, public_nodes: bool) -> Iterator[Finding]:
    """Yield what refuses the slices of a cluster."""
    place = Place.of(settings.path)
    zones = dict.fromkeys(zone for zone in (settings.zone, *settings.zones) if zone) or [place.location]
    for zone in zones:
        yield from _location(place.project, "slices", zone, policies, error)
    if public_nodes and _ruling(policies.get(EXTERNAL), set()) is Ruling.REFUSED:
        yield error(
            f"{EXTERNAL} allows no external addresses, and nodes of this cluster have some unless they are private.",
            f"gcloud container clusters update {place.name} {place.flags} --enable-private-nodes",
            _look(place.project, EXTERNAL),
        )
    pools = settings.pools
    if _enforced(policies.get(SHIELDED)) and not (pools.secure_boot and pools.integrity_monitoring):
        yield error(
            f"{SHIELDED} demands what the settings turn off.", "pools: {secure_boot: true, integrity_monitoring: true}"
        )
    if pools.compute is not None:
        image = "/".join(pools.compute.image.split("/")[:2])
        if _ruling(policies.get(IMAGES), {image}) is Ruling.REFUSED:
            yield error(f"{IMAGES} does not allow images of {image}.", _look(place.project, IMAGES))


def project_findings(project: str, policies: Policies) -> Iterator[Finding]:
    """Yield what may refuse the grants in a project with clusters."""
    yield from _members(project, policies, error)


def network_findings(project: str, policies: Policies) -> Iterator[Finding]:
    """Yield why something may have no network, where it is missing."""
    if _enforced(policies.get(NO_DEFAULT_NETWORK)):
        yield note(
            f"{NO_DEFAULT_NETWORK}: {project} was made without the network default, if it is younger. What needs a "
            "network must be told one.",
            f"gcloud compute networks list --project {project}",
        )


def _members(project: str, policies: Policies, told: Callable[..., Finding]) -> Iterator[Finding]:
    rules = _rules(policies.get(MEMBERS))
    if any(rule.get("denyAll") for rule in rules):
        yield told(f"{MEMBERS} lets nobody be granted anything in {project}.", _look(project, MEMBERS))
    elif allowed := _values(rules, "allowedValues"):
        yield note(
            f"{MEMBERS} lets only members of {', '.join(sorted(allowed))} be granted anything in {project}: accounts "
            "and relays in projects of another organisation would be refused.",
            _look(project, MEMBERS),
        )


def _location(
    project: str, what: str, location: str, policies: Policies, told: Callable[..., Finding]
) -> Iterator[Finding]:
    ruling = _ruling(policies.get(LOCATIONS), {location, *_groups(location)})
    if ruling is Ruling.REFUSED:
        yield told(f"{LOCATIONS} does not allow {location}, the place of {what}.", _look(project, LOCATIONS))
    elif ruling is Ruling.UNKNOWN:
        values = ", ".join(sorted(_values(_rules(policies[LOCATIONS]), "allowedValues", "deniedValues")))
        yield warning(
            f"{LOCATIONS} may not allow {location}, the place of {what}: whether {values} has it, only Google knows.",
            _look(project, LOCATIONS),
        )


def _groups(location: str) -> Iterator[str]:
    """Yield the groups of locations that surely have this one: of its region, and of what its name begins with."""
    region = Place("", location, "").region
    yield f"in:{location}-locations"
    yield f"in:{region}-locations"
    if "-" in region:
        yield f"in:{region.partition('-')[0]}-locations"


def _rules(answer: Answer | None) -> list[Body]:
    """Return the rules of a policy, but for those that depend on tags."""
    if not isinstance(answer, Found):
        return []
    rules: list[Body] = answer.body.get("spec", {}).get("rules", [])
    return [rule for rule in rules if not rule.get("condition")]


def _values(rules: Iterable[Body], *kinds: str) -> set[str]:
    told = (value for rule in rules for kind in kinds for value in rule.get("values", {}).get(kind, ()))
    return {value.removeprefix("is:") for value in told}


def _enforced(answer: Answer | None) -> bool:
    return any(rule.get("enforce") for rule in _rules(answer))


def _ruling(answer: Answer | None, ours: Collection[str]) -> Ruling:
    """Return whether a list allows what has any of these names.

    | the first that holds              | ruling  |
    |-----------------------------------|----------|
    | denyAll, or one of ours is denied | REFUSED  |
    | a group is denied                 | UNKNOWN  |
    | allowAll, or nothing is named     | ALLOWED  |
    | one of ours is allowed            | ALLOWED  |
    | a group is allowed                | UNKNOWN  |
    | only others are allowed           | REFUSED  |

    A group that is another region's has nothing of ours.
    """
    rules = _rules(answer)
    allowed, denied = _values(rules, "allowedValues"), _values(rules, "deniedValues")
    if any(rule.get("denyAll") for rule in rules) or denied & {*ours}:
        return Ruling.REFUSED
    if any(_may_have_it(value) for value in denied):
        return Ruling.UNKNOWN
    if not allowed or any(rule.get("allowAll") for rule in rules) or allowed & {*ours}:
        return Ruling.ALLOWED
    return Ruling.UNKNOWN if any(_may_have_it(value) for value in allowed) else Ruling.REFUSED


def _may_have_it(value: str) -> bool:
    return value.startswith(("in:", "under:")) and not _OF_REGION.fullmatch(value)


def _look(project: str, constraint: str) -> str:
    return f"gcloud org-policies describe {constraint} --effective --project {project}"
