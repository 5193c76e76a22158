"""The roles and bindings that a new cluster has (plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go).

Only those for all users: the aggregated roles (admin, edit, view) and those of control plane components are not
covered.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from infra.local.cluster.authentication import AUTHENTICATED, MASTERS, UNAUTHENTICATED
from infra.local.cluster.rbac_validation import GROUP

_HEALTH = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERY = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"]

_ROLES: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "cluster-admin": (
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ),
    "system:basic-user": (
        {
            "apiGroups": ["authorization.k8s.io"],
            "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
            "verbs": ["create"],
        },
        {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]},
    ),
    "system:discovery": ({"nonResourceURLs": sorted(_HEALTH + _DISCOVERY), "verbs": ["get"]},),
    "system:public-info-viewer": ({"nonResourceURLs": _HEALTH, "verbs": ["get"]},),
}
_GROUPS: Mapping[str, Sequence[str]] = {
    "cluster-admin": (MASTERS,),
    "system:basic-user": (AUTHENTICATED,),
    "system:discovery": (AUTHENTICATED,),
    "system:public-info-viewer": (AUTHENTICATED, UNAUTHENTICATED),
}


class Store(Protocol):
    def create(self, plural: str, obj: dict[str, Any]) -> dict[str, Any]: ...


def install(store: Store) -> None:
    """Create the default roles and bindings in a new cluster."""
    for name, rules in _ROLES.items():
        store.create("clusterroles", _named(name) | {"rules": [dict(rule) for rule in rules]})
        subjects = [{"kind": "Group", "name": group} for group in _GROUPS[name]]
        reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}
        store.create("clusterrolebindings", _named(name) | {"roleRef": reference, "subjects": subjects})


def _named(name: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        }
    }
