"""What is installed in a cluster: the CRD, and the configuration by which its API server calls the webhooks (pure).

Facts: the CRD's markers in sigs.k8s.io/lws api/leaderworkerset/v1, pkg/webhooks/leaderworkerset_webhook.go.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from infra.local.clients import installing
from infra.local.clients.kinds import KINDS
from infra.local.clients.labels import marked
from infra.local.clients.reviews import Decide, Refused, submitted
from infra.local.lws.keys import NAME
from infra.local.lws.pods import placed

Json = dict[str, Any]

CRD = "leaderworkersets.leaderworkerset.x-k8s.io"
CONFIGURATIONS = "tpu-slices-local-lws"
"""The name of the webhook configuration, and the field manager of what we apply."""

_COLUMNS = {
    "Ready": ".status.readyReplicas",
    "Desired": ".spec.replicas",
    "Up-to-date": ".status.updatedReplicas",
    "Age": ".metadata.creationTimestamp",
}
_SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.hpaPodSelector",
}
_ANY: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_AMOUNT: Json = {"x-kubernetes-int-or-string": True}


def _object(required: tuple[str, ...] = (), **properties: Json) -> Json:
    return {"type": "object", "properties": properties} | ({"required": list(required)} if required else {})


def _choice(*values: str) -> Json:
    """Return a text's schema; the first value is the default."""
    return {"type": "string", "enum": list(values), "default": values[0]}


def _number(default: int, least: int) -> Json:
    return {"type": "integer", "format": "int32", "default": default, "minimum": least}


_SUBGROUPS = _object(
    ("subGroupSize",),
    subGroupPolicyType=_choice("LeaderWorker", "LeaderExcluded"),
    subGroupSize={"type": "integer", "format": "int32", "minimum": 1},
)
_TEMPLATE = _object(
    ("workerTemplate",),
    leaderTemplate=_ANY,
    workerTemplate=_ANY,
    size=_number(1, 1),
    restartPolicy=_choice("RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "None", "Default"),
    subGroupPolicy=_SUBGROUPS,
    volumeClaimTemplates={"type": "array", "items": _ANY},
    persistentVolumeClaimRetentionPolicy=_ANY,
)
_UPDATE = _object(partition=_number(0, 0), maxUnavailable=_AMOUNT | {"default": 1}, maxSurge=_AMOUNT | {"default": 0})
_SPEC = _object(
    ("leaderWorkerTemplate",),
    replicas=_number(1, 0) | {"maximum": 1000000},
    leaderWorkerTemplate=_TEMPLATE,
    rolloutStrategy=_object(type=_choice("RollingUpdate"), rollingUpdateConfiguration=_UPDATE),
    startupPolicy=_choice("LeaderCreated", "LeaderReady"),
    networkConfig=_object(subdomainPolicy={"type": "string", "enum": ["Shared", "UniquePerReplica"]}),
)


def crd() -> Json:
    """Return LeaderWorkerSet's CRD, with the columns that `kubectl get lws` shows upstream, too."""
    parts = {"spec": _SPEC, "status": _ANY}
    return installing.crd(KINDS["leaderworkersets"], parts, _COLUMNS, "lws", scale=_SCALE)


def mutate_leader_worker_set(request: Json) -> Json:
    """Fill in upstream's defaults. Raise Refused 501 for what the local controller would not do."""
    new = submitted(request)
    spec = new["spec"]
    template, rollout = spec["leaderWorkerTemplate"], spec.setdefault("rolloutStrategy", {})
    if template.get("restartPolicy") == "Default":
        template["restartPolicy"] = "None"
    rollout.setdefault("type", "RollingUpdate")
    update = rollout.setdefault("rollingUpdateConfiguration", {"partition": 0, "maxUnavailable": 1, "maxSurge": 0})
    network = spec.setdefault("networkConfig", {}).setdefault("subdomainPolicy", "Shared")
    for asked, what in (
        (template.get("volumeClaimTemplates"), "volumeClaimTemplates"),
        (network == "UniquePerReplica", "subdomainPolicy UniquePerReplica"),
        (update.get("partition"), "partition"),
        (update.get("maxSurge") not in (None, 0, "0%"), "maxSurge"),
    ):
        if asked:
            raise Refused(501, "NotImplemented", f"{what} of LeaderWorkerSets is not implemented locally")
    return new


def mutate_pod(request: Json) -> Json:
    return placed(submitted(request))


WEBHOOKS: Mapping[str, Decide] = MappingProxyType(
    {"/mutate-leaderworkerset": mutate_leader_worker_set, "/mutate-pod": mutate_pod}
)
"""By path."""


def configurations(address: str, authority: bytes) -> dict[str, Json]:
    """Return the configuration by plural; `address` and the CA's certificate in PEM are the webhooks'."""

    def webhook(name: str, path: str, rule: Json, **more: Json) -> Json:
        return installing.webhook(name, f"{address}{path}", authority, rule, **more)

    of_a_group = {"matchExpressions": [{"key": NAME, "operator": "Exists"}]}
    changed = installing.rule(KINDS["leaderworkersets"], "CREATE", "UPDATE")
    webhooks = [
        webhook("mleaderworkerset.kb.io", "/mutate-leaderworkerset", changed),
        webhook("mpod.kb.io", "/mutate-pod", installing.rule(KINDS["pods"], "CREATE"), objectSelector=of_a_group),
    ]
    return {"mutatingwebhookconfigurations": marked({"metadata": {"name": CONFIGURATIONS}, "webhooks": webhooks})}
