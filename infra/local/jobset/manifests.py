"""What is installed in a cluster: the CRD, and the configurations by which its API server calls the webhooks (pure)."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from infra.local.clients import installing
from infra.local.clients.kinds import KINDS
from infra.local.clients.labels import marked
from infra.local.jobset.keys import JOBSET_NAME
from infra.local.jobset.reviews import Webhook, mutate_jobset, mutate_pod, validate_jobset, validate_pod

Json = dict[str, Any]

SCHEMA = Path(__file__).with_name("schema.json")
"""Made by `infra.local.jobset.schema`."""

CRD = "jobsets.jobset.x-k8s.io"
CONFIGURATIONS = "tpu-slices-local-jobset"
"""The name of both webhook configurations."""

WEBHOOKS: Mapping[str, Webhook] = MappingProxyType(
    {
        "/mutate-jobset": mutate_jobset,
        "/mutate-pod": mutate_pod,
        "/validate-jobset": validate_jobset,
        "/validate-pod": validate_pod,
    }
)
"""By path."""

_COLUMNS = {
    "TerminalState": ".status.terminalState",
    "Restarts": ".status.restarts",
    "Completed": '.status.conditions[?(@.type=="Completed")].status',
    "Suspended": ".spec.suspend",
    "Age": ".metadata.creationTimestamp",
}


def crd() -> Json:
    """Return JobSet's CRD, with the columns that `kubectl get jobsets` shows upstream, too."""
    return installing.crd(KINDS["jobsets"], json.loads(SCHEMA.read_text(encoding="utf-8")), _COLUMNS)


def configurations(address: str, authority: bytes) -> dict[str, Json]:
    """Return both configurations by plural; `address` and the CA's certificate in PEM are the webhooks'."""

    def webhook(name: str, path: str, rule: Json, **more: Json) -> Json:
        return installing.webhook(name, f"{address}{path}", authority, rule, **more)

    of_a_jobset = {"matchExpressions": [{"key": JOBSET_NAME, "operator": "Exists"}]}
    jobsets, pods = KINDS["jobsets"], installing.rule(KINDS["pods"], "CREATE")
    mutating = [
        webhook("mjobset.kb.io", "/mutate-jobset", installing.rule(jobsets, "CREATE", "UPDATE")),
        webhook("mpod.kb.io", "/mutate-pod", pods, objectSelector=of_a_jobset),
    ]
    validating = [
        webhook("vjobset.kb.io", "/validate-jobset", installing.rule(jobsets, "CREATE", "UPDATE")),
        webhook("vpod.kb.io", "/validate-pod", pods, objectSelector=of_a_jobset),
    ]
    return {
        "mutatingwebhookconfigurations": marked({"metadata": {"name": CONFIGURATIONS}, "webhooks": mutating}),
        "validatingwebhookconfigurations": marked({"metadata": {"name": CONFIGURATIONS}, "webhooks": validating}),
    }
