"""Service accounts: that those of nodes exist, and what they and the functions may do.

In the projects of clusters the build gives the functions their rights. In the project of a shared reservation its owner
does, which no build sees: preflight looks into that project's IAM policy, if it may.
"""

from collections.abc import Iterable, Iterator, Mapping

from infra.preflight.answers import Answer, Body, Denied, Found, Missing, Unreachable, unknown
from infra.preflight.findings import Finding, error, note, unread, warning
from infra.preflight.gke import relay_pools
from infra.preflight.place import Place
from tpu_slices.domain.capacity.reservations import place_of
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.slices import Capacity, CapacityKind

NODE_ROLE = "roles/container.defaultNodeServiceAccount"
_NODE_ROLES = {NODE_ROLE, "roles/container.nodeServiceAccount", "roles/editor", "roles/owner"}
_LOGS, _METRICS = {"roles/logging.logWriter", "roles/logging.admin"}, {"roles/monitoring.metricWriter"}
READER = "roles/artifactregistry.reader"
_READERS = {
    READER,
    "roles/artifactregistry.writer",
    "roles/artifactregistry.repoAdmin",
    "roles/artifactregistry.admin",
    "roles/viewer",
    "roles/editor",
    "roles/owner",
}
_COMPUTE_VIEWER = "roles/compute.viewer"
_READ_RESERVATIONS = {
    _COMPUTE_VIEWER,
    "roles/compute.admin",
    "roles/compute.instanceAdmin",
    "roles/compute.instanceAdmin.v1",
    "roles/viewer",
    "roles/editor",
    "roles/owner",
}
_READING = ("reconcile", "sweep")
_SUFFIX = ".iam.gserviceaccount.com"


def node_accounts(settings: ClusterSettings) -> list[str]:
    """Return the accounts that TPU nodes may have, by the settings; patterns are left out."""
    allowed = [settings.policy.everyone, *settings.policy.namespaces.values()]
    emails = [settings.pools.service_account, *(email for each in allowed for email in each.service_accounts)]
    return list(dict.fromkeys(email for email in emails if email and "*" not in email))


def relay_accounts(cluster: Body, number: str) -> list[str]:
    """Return the accounts of the nodes that the relay's pod may come to; `number` is of the cluster's project."""
    default = f"{number}-compute@developer.gserviceaccount.com"
    emails = [pool.get("config", {}).get("serviceAccount", "default") for pool in relay_pools(cluster)]
    return list(dict.fromkeys(default if email == "default" else email for email in emails))


def roles_of(account: str, policies: Iterable[Body]) -> set[str]:
    """Return the roles that these policies grant to the account itself, without a condition."""
    member = f"serviceAccount:{account}"
    return {
        binding["role"]
        for policy in policies
        for binding in policy.get("bindings", ())
        if member in binding.get("members", ()) and not binding.get("condition")
    }


def grant(project: str, account: str, role: str) -> str:
    return (
        f"gcloud projects add-iam-policy-binding {project} --member serviceAccount:{account} --role {role} "
        "--condition None"
    )


def node_account_findings(
    settings: ClusterSettings, accounts: Mapping[str, Answer], policy: Answer
) -> Iterator[Finding]:
    """Yield what is missing of the accounts of TPU nodes; `policy` is of the cluster's project."""
    if settings.pools.service_account is None:
        yield error(
            "TPU nodes have no service account of their own.",
            "pools: {service_account: NAME@PROJECT.iam.gserviceaccount.com}",
        )
    for account, answer in accounts.items():
        yield from _account(settings, account, answer, policy)


def _account(settings: ClusterSettings, account: str, answer: Answer, policy: Answer) -> Iterator[Finding]:
    name, _, domain = account.partition("@")
    project = domain.removesuffix(_SUFFIX)
    place = Place.of(settings.path)
    yield from unread(f"whether {account} exists", answer)
    if isinstance(answer, Missing):
        yield error(
            f"The service account {account} of TPU nodes does not exist.",
            f"gcloud iam service-accounts create {name} --project {project}",
        )
    elif isinstance(answer, Found) and answer.body.get("disabled"):
        yield error(
            f"The service account {account} of TPU nodes is disabled.",
            f"gcloud iam service-accounts enable {account} --project {project}",
        )
    if settings.self_managed:
        return  # what hosts need is up to what runs on them
    yield from unread(f"which roles {account} has in {place.project}", policy)
    if isinstance(policy, Found) and not _enough(roles_of(account, [policy.body])):
        yield warning(
            f"Nodes with {account} may not write logs and metrics, as far as {place.project} itself grants it.",
            grant(place.project, account, NODE_ROLE),
        )


def _enough(roles: set[str]) -> bool:
    return bool(roles & _NODE_ROLES or (roles & _LOGS and roles & _METRICS))


def image_findings(account: str, project: str, policies: Iterable[Answer]) -> Iterator[Finding]:
    """Yield whether nodes may pull the relay's image, by the policies of its repository and of the project it is in."""
    answers = list(policies)
    roles = roles_of(account, (answer.body for answer in answers if isinstance(answer, Found)))
    if roles & _READERS:
        return
    unread = [unknown(answer) for answer in answers if isinstance(answer, Denied | Unreachable)]
    if unread:
        yield warning(f"It could not be read whether {account} may pull the relay's image: {'; '.join(unread)}")
        return
    yield error(
        f"Nodes with {account} may not pull the relay's image, as far as {project} itself grants it.",
        grant(project, account, READER),
    )


def reservation_owners(settings: ClusterSettings, place: Place) -> list[str]:
    """Return the projects of reservations that policy or places name, without the cluster's own."""
    allowed = (settings.policy.everyone, *settings.policy.namespaces.values())
    named = {name for each in allowed for name in each.reservations if "*" not in name}
    named |= {each.reservation for each in settings.places.values() if each.reservation}
    found = (place_of(Capacity(CapacityKind.RESERVATION, name), "any", place.project) for name in named)
    return sorted({each.project for each in found if each is not None} - {place.project})


def reservation_findings(policies: Mapping[str, Answer], provisioner: str) -> Iterator[Finding]:
    """Yield whose reservations the functions may not read; `policies`: the IAM policy of each owner.

    | the owner's policy                                               | then                             |
    |------------------------------------------------------------------|----------------------------------|
    | gives both accounts a role that reads, or one that was made there | nothing: such a role is for that |
    | does not                                                         | a warning                        |
    | cannot be read                                                   | a note: it may be so             |
    """
    members = [f"tpu-slice-{function}@{provisioner}.iam.gserviceaccount.com" for function in _READING]
    for owner, policy in policies.items():
        bodies = [policy.body] if isinstance(policy, Found) else []
        lacking = [
            member for member in members if not any(_reads_reservations(role) for role in roles_of(member, bodies))
        ]
        remedies = [grant(owner, member, _COMPUTE_VIEWER) for member in lacking]
        if lacking and bodies:
            yield warning(
                f"Reservations of {owner} are named, and it does not let {' and '.join(lacking)} read them: creations "
                "in them are tried without knowing what is left.",
                *remedies,
            )
        elif lacking:
            yield note(
                f"Reservations of {owner} are named. Its owner has to let the functions read them, or creations in "
                "them are tried without knowing what is left.",
                *remedies,
            )


def _reads_reservations(role: str) -> bool:
    return role in _READ_RESERVATIONS or role.startswith(("projects/", "organizations/"))
