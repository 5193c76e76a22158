"""ServiceAccounts, their tokens and what they may."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.cluster.asking import Api, Json, done, path
from tests.cluster.builders import meta
from tests.cluster.servers import Cluster, unique

GROUP = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Account:
    """A ServiceAccount without rights, and the API server asked with its token."""

    cluster: Cluster
    namespace: str
    name: str
    api: Api

    @property
    def user(self) -> str:
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    def grant(self, *rules: Json, within: str = "", subject: Json | None = None) -> None:
        """Bind a new role to the account, or to another subject, cluster-wide or in a namespace."""
        name, prefix = unique("role"), "" if within else "cluster"
        kind = "Role" if within else "ClusterRole"
        own = {"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace}
        api = self.cluster.api
        api.create(path(f"{prefix}roles", within), meta(name) | {"rules": list(rules)})
        reference = {"apiGroup": GROUP, "kind": kind, "name": name}
        binding = {"roleRef": reference, "subjects": [subject or own]}
        api.create(path(f"{prefix}rolebindings", within), meta(name) | binding)


def account(cluster: Cluster, namespace: str, name: str = "relay") -> Account:
    """Create a ServiceAccount; return it with a token."""
    cluster.api.create(path("serviceaccounts", namespace), meta(name))
    return Account(cluster, namespace, name, cluster.api.with_token(token_of(cluster.api, namespace, name)))


def token_of(api: Api, namespace: str, name: str, **spec: Any) -> str:
    """Return a new token of an account."""
    body = {"spec": {"expirationSeconds": 600} | spec}
    token: str = done(api.post(path("serviceaccounts", namespace, name, "token"), body))["status"]["token"]
    return token


def rule(verbs: str, resources: str, group: str = "", **more: Any) -> Json:
    """Return a rule of verbs and resources, each list separated by commas."""
    return {"apiGroups": [group], "resources": resources.split(","), "verbs": verbs.split(",")} | more
