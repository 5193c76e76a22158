"""The API server without a network but with its filters: authentication, impersonation, authorization."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import orjson
from starlette.datastructures import Headers

from infra.local.cluster import rbac_defaults
from infra.local.cluster.api import Call
from infra.local.cluster.authentication import AUDIENCE, Authenticator, Keys, User
from infra.local.cluster.filters import Caller, Filters
from tests.local.cluster.world import World

GROUP = "rbac.authorization.k8s.io"
ADMINISTRATOR = "the administrator's token"
Header = tuple[str, str]


@dataclass
class Guarded:
    world: World = field(default_factory=World)
    authenticator: Authenticator = field(init=False)
    filters: Filters = field(init=False)

    def __post_init__(self) -> None:
        keys = Keys(signing=b"a secret", administrator=ADMINISTRATOR)
        rbac_defaults.install(self.world.objects)
        self.authenticator = Authenticator(self.world.objects, lambda: self.world.now, keys, random=Random(7))
        self.filters = Filters(self.world.objects, self.authenticator, lambda: self.world.now)

    def admitted(
        self, method: str, path: str, *headers: Header, body: Any = None, secure: bool = True, **params: str
    ) -> tuple[User, Call]:
        """Send a request through the filters; return the acting user and the call."""
        call = Call(
            method=method,
            path=path,
            params=params,
            content_type="application/json",
            accept="application/json",
            body=b"" if body is None else orjson.dumps(body),
        )
        raw = [(name.lower().encode(), value.encode()) for name, value in headers]
        return self.filters.admit(Caller(headers=Headers(raw=raw), secure=secure), call), call

    def user(self, *headers: Header, secure: bool = True) -> User:
        """Return the user of a request that everybody may make."""
        return self.admitted("GET", "/version", *headers, secure=secure)[0]

    def review(self, path: str, body: Any, *headers: Header) -> dict[str, Any]:
        """Send a review and return the response."""
        answer = self.filters.answered(*self.admitted("POST", path, *headers, body=body))
        assert answer is not None
        read: dict[str, Any] = orjson.loads(orjson.dumps(answer.body))
        return read

    def account(self, name: str = "relay", namespace: str = "default") -> str:
        """Create a ServiceAccount and return a token for it that is valid for an hour."""
        made = self.world.objects.create("serviceaccounts", {"metadata": {"name": name, "namespace": namespace}})
        token, _ = self.authenticator.issue(made, [AUDIENCE], 3600)
        return token

    def grant(self, subject: dict[str, str], *rules: dict[str, Any], namespace: str = "", name: str = "one") -> None:
        """Bind a subject to a new role, cluster-wide or in a namespace."""
        prefix, within = ("", {"namespace": namespace}) if namespace else ("cluster", {})
        metadata = {"name": name} | within
        self.world.objects.create(f"{prefix}roles", {"metadata": metadata, "rules": list(rules)})
        reference = {"apiGroup": GROUP, "kind": "Role" if namespace else "ClusterRole", "name": name}
        bound = {"metadata": metadata, "roleRef": reference, "subjects": [subject]}
        self.world.objects.create(f"{prefix}rolebindings", bound)


def bearer(token: str) -> Header:
    return ("Authorization", f"Bearer {token}")


def as_user(name: str) -> Header:
    return ("Impersonate-User", name)


def rule(verbs: Sequence[str], resources: Sequence[str], group: str = "", **more: Any) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)} | more


ANN = {"kind": "User", "name": "ann", "apiGroup": GROUP}
"""A subject, whom an administrator impersonates with `Impersonate-User`."""
RELAY = {"kind": "ServiceAccount", "name": "relay", "namespace": "default"}
AS_ANN = (bearer(ADMINISTRATOR), as_user("ann"))
