"""Service accounts of nodes: that they exist, and what they may do."""

from collections.abc import Iterable, Iterator, Mapping

from infra.preflight.answers import Answer, Body, Denied, Found, Missing, Unreachable, unknown
from infra.preflight.findings import Finding, error, unread, warning
from infra.preflight.gke import relay_pools
from infra.preflight.place import Place
from tpu_slices.domain.model.clusters import ClusterSettings

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
