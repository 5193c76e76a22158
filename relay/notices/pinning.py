"""Finds out by what pods with chips are kept to the hosts that are meant for them: it submits one each minute.

The API server judges it as it judges every other, and stores nothing: the relay may create no pod that is stored
(infra/kubernetes/relay/base/restrictions.yaml).

| the pod                                                    | pinning                                                |
|------------------------------------------------------------|--------------------------------------------------------|
| would require hosts that no provisioner made               | by the policy if that is bound, else by the webhook    |
| would be created as it is                                  | by nothing                                             |
| cannot be created, as the webhook does not answer          | refused: no pod with chips is created                  |
| is refused by others, or there is no answer                | not known                                              |
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol

import structlog

from relay.notices.trials import Trial
from tpu_slices.domain.model.facts import Pinning
from tpu_slices.domain.planning.pool_labels import OWNER_LABEL
from tpu_slices.ports.errors import Temporary
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.wire.workloads import CHIPS

_log = structlog.get_logger()

WEBHOOK = "pods.tpu-slice-provisioner.google.com"
"""As infra/kubernetes/webhook-configuration.yaml names it."""
NAMESPACE = "tpu-slice-provisioner"
POD: Mapping[str, Any] = MappingProxyType(
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pinning", "namespace": NAMESPACE},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {
                    "name": "pinning",
                    "image": "pinning.invalid/none",
                    "resources": {"limits": {CHIPS: "1"}},
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                }
            ],
        },
    }
)
"""One that no slice is made for: it would run on static hosts."""


class Cluster(Protocol):
    """Single calls, as in `relay.cluster.Cluster`."""

    def tried(self, pod: Mapping[str, Any]) -> Mapping[str, Any] | str:
        """Return a new pod as it would be created, or in which words its creation fails inside the API server."""

    def has_policy(self) -> bool:
        """Return whether the admission policy is bound."""


class PinningCheck(Trial[Pinning]):
    """What pods are pinned by."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self._cluster = cluster

    def _unknown(self, error: str) -> None:
        _log.warning(LogEvent.PINNING_UNKNOWN, error=error)

    def _found(self) -> Pinning:
        match self._cluster.tried(POD):
            case str() as failure if WEBHOOK in failure:
                _log.warning(LogEvent.PODS_REFUSED, error=failure)
                return Pinning.REFUSED
            case str() as failure:
                raise Temporary(failure)
            case pod if not is_judged(pod):
                return Pinning.NOTHING
            case _:
                return Pinning.POLICY if self._cluster.has_policy() else Pinning.WEBHOOK


def is_judged(pod: Mapping[str, Any]) -> bool:
    """Return whether every term of a pod requires hosts that no provisioner made."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = required.get("nodeSelectorTerms") or ()
    wanted = (OWNER_LABEL, "DoesNotExist")
    return bool(terms) and all(
        any((each["key"], each["operator"]) == wanted for each in term.get("matchExpressions") or ()) for term in terms
    )
