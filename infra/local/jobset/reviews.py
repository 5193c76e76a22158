"""The four webhooks as functions of a request (pure)."""

from collections.abc import Callable
from typing import Any

from infra.local.clients.reviews import submitted
from infra.local.jobset import changes, defaults, pods, rules
from infra.local.jobset.pods import Cluster
from infra.local.jobset.refusals import refuse

Json = dict[str, Any]
Webhook = Callable[[Cluster, Json], Json | None]
"""Returns the object as it is to be, or None where it only judges it. Raises Refused."""


def mutate_jobset(_: Cluster, request: Json) -> Json:
    """Upstream's is called for new JobSets only; an update is changed here where the server heeds no schema."""
    new = submitted(request)
    return defaults.with_schema_defaults(new) if request["operation"] == "UPDATE" else defaults.with_defaults(new)


def validate_jobset(_: Cluster, request: Json) -> None:
    new = request["object"]
    name = new["metadata"].get("name", "")
    if request["operation"] == "UPDATE":
        refuse(name, changes.update_errors(request["oldObject"], new))
    else:
        refuse(name, rules.create_errors(new))


def mutate_pod(cluster: Cluster, request: Json) -> Json:
    return pods.placed(cluster, submitted(request))


def validate_pod(cluster: Cluster, request: Json) -> None:
    pods.check(cluster, submitted(request))
