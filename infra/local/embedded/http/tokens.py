"""Who asks: bearer tokens of ServiceAccounts and of the administrator.

A token looks as kube-apiserver's (a JWT with the claims of pkg/serviceaccount/claims.go), but is known by heart instead
of by its signature. It is void once the process ends, it expires, or its ServiceAccount is deleted.
"""

import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import orjson

from infra.local.clients.objects import timestamp
from infra.local.embedded.store import errors
from infra.local.embedded.store.errors import ApiError
from infra.local.embedded.store.kinds import Key, Object
from infra.local.embedded.store.objects import Objects

MASTERS, AUTHENTICATED, UNAUTHENTICATED = "system:masters", "system:authenticated", "system:unauthenticated"
_ISSUER = "https://kubernetes.default.svc.cluster.local"  # also the default audience
_ACCOUNTS = "system:serviceaccounts"
_SECONDS, _LEAST_SECONDS, _MOST_SECONDS = 3600, 600, 1 << 32


@dataclass(frozen=True, slots=True)
class User:
    name: str
    groups: tuple[str, ...]


class Tokens:
    def __init__(self, objects: Objects, clock: Callable[[], datetime]) -> None:
        self.administrator = secrets.token_urlsafe(32)
        self._issued: dict[str, Mapping[str, Any]] = {}
        self._objects = objects
        self._clock = clock

    def user(self, authorization: str) -> User:
        """Return the user of an `Authorization` header; without a token, the anonymous one. Raise ApiError 401."""
        scheme, _, token = authorization.strip().partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return User("system:anonymous", (UNAUTHENTICATED,))
        if secrets.compare_digest(token.strip().encode(), self.administrator.encode()):
            return User("kubernetes-admin", (MASTERS, AUTHENTICATED))
        claims = self._issued.get(token.strip())
        if claims and _ISSUER in claims["aud"] and self._clock().timestamp() < claims["exp"]:
            namespace, account = claims["kubernetes.io"]["namespace"], claims["kubernetes.io"]["serviceaccount"]
            found = self._objects.find(Key("serviceaccounts", namespace, account["name"]))
            if found and found["metadata"]["uid"] == account["uid"]:
                return User(claims["sub"], (_ACCOUNTS, f"{_ACCOUNTS}:{namespace}", AUTHENTICATED))
        raise ApiError(401, "Unauthorized", "Unauthorized")

    def issue(self, account: Object, asked: Mapping[str, Any]) -> Object:
        """Return a TokenRequest with its token. Raise ApiError 422 for too short or too long a life."""
        spec, now = asked.get("spec") or {}, self._clock()
        namespace, name = account["metadata"]["namespace"], account["metadata"]["name"]
        if spec.get("boundObjectRef"):
            raise errors.not_implemented("tokens bound to an object (spec.boundObjectRef)")
        seconds, audiences = spec.get("expirationSeconds") or _SECONDS, spec.get("audiences") or [_ISSUER]
        if not _LEAST_SECONDS <= seconds <= _MOST_SECONDS:
            why = "may not specify a duration less than 10 minutes or larger than 2^32 seconds"
            cause = errors.wrong("spec.expirationSeconds", seconds, why)
            raise errors.invalid("TokenRequest", "authentication.k8s.io", name, [cause])
        expires, bound = now + timedelta(seconds=seconds), {"name": name, "uid": account["metadata"]["uid"]}
        claims = {"aud": audiences, "exp": int(expires.timestamp()), "iat": int(now.timestamp()), "jti": str(uuid4())}
        claims |= {"iss": _ISSUER, "sub": account_name(namespace, name), "nbf": claims["iat"]}
        claims["kubernetes.io"] = {"namespace": namespace, "serviceaccount": bound}
        parts = (orjson.dumps({"alg": "HS256", "typ": "JWT"}), orjson.dumps(claims), secrets.token_bytes(32))
        token = ".".join(urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)
        self._issued[token] = claims
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"creationTimestamp": timestamp(now), "name": name, "namespace": namespace},
            "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": None},
            "status": {"token": token, "expirationTimestamp": timestamp(expires)},
        }


def account_name(namespace: str, name: str) -> str:
    return f"system:serviceaccount:{namespace}:{name}"
