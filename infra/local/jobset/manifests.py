"""What is installed in a cluster: the CRD, and the configurations by which its API server calls the webhooks (pure)."""

import base64
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from infra.local.jobset import schema
from infra.local.jobset.keys import JOBSET_NAME
from infra.local.jobset.reviews import Webhook, mutate_jobset, mutate_pod, validate_jobset, validate_pod

Json = dict[str, Any]

CRD = "jobsets.jobset.x-k8s.io"
GROUP, VERSION = "jobset.x-k8s.io", "v1alpha2"
CONFIGURATIONS = "tpu-slices-local-jobset"
"""The name of both webhook configurations."""

OURS: Mapping[str, str] = MappingProxyType({"app.kubernetes.io/managed-by": "tpu-slices-local"})
"""Labels of what we install."""

WEBHOOKS: Mapping[str, Webhook] = MappingProxyType(
    {
        "/mutate-jobset": mutate_jobset,
        "/mutate-pod": mutate_pod,
        "/validate-jobset": validate_jobset,
        "/validate-pod": validate_pod,
    }
)
"""By path."""


def crd() -> Json:
    """Return JobSet's CRD, with the columns that `kubectl get jobsets` shows upstream, too."""
    names = {"plural": "jobsets", "singular": "jobset", "kind": "JobSet", "listKind": "JobSetList"}
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema.jobset()},
        "subresources": {"status": {}},
        "additionalPrinterColumns": _columns(),
    }
    spec = {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [version]}
    return {"metadata": {"name": CRD, "labels": dict(OURS)}, "spec": spec}


def _columns() -> list[Json]:
    shown = {
        "TerminalState": ("string", ".status.terminalState"),
        "Restarts": ("string", ".status.restarts"),
        "Completed": ("string", '.status.conditions[?(@.type=="Completed")].status'),
        "Suspended": ("string", ".spec.suspend"),
        "Age": ("date", ".metadata.creationTimestamp"),
    }
    return [{"name": name, "type": kind, "jsonPath": path} for name, (kind, path) in shown.items()]


def configurations(address: str, authority: bytes) -> dict[str, Json]:
    """Return both configurations by plural; `address` and the CA's certificate in PEM are the webhooks'."""
    trusted = base64.b64encode(authority).decode()

    def webhook(name: str, path: str, rule: Json, **more: Json) -> Json:
        return {
            "name": name,
            "clientConfig": {"url": f"{address}{path}", "caBundle": trusted},
            "rules": [rule],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            **more,
        }

    of_a_jobset = {"matchExpressions": [{"key": JOBSET_NAME, "operator": "Exists"}]}
    pods = _rule("", "v1", "pods", "CREATE")
    mutating = [
        webhook("mjobset.kb.io", "/mutate-jobset", _rule(GROUP, VERSION, "jobsets", "CREATE")),
        webhook("mpod.kb.io", "/mutate-pod", pods, objectSelector=of_a_jobset),
    ]
    validating = [
        webhook("vjobset.kb.io", "/validate-jobset", _rule(GROUP, VERSION, "jobsets", "CREATE", "UPDATE")),
        webhook("vpod.kb.io", "/validate-pod", pods, objectSelector=of_a_jobset),
    ]
    metadata = {"name": CONFIGURATIONS, "labels": dict(OURS)}
    return {
        "mutatingwebhookconfigurations": {"metadata": metadata, "webhooks": mutating},
        "validatingwebhookconfigurations": {"metadata": metadata, "webhooks": validating},
    }


def _rule(group: str, version: str, plural: str, *operations: str) -> Json:
    return {"apiGroups": [group], "apiVersions": [version], "resources": [plural], "operations": list(operations)}
