"""Who asks: bearer tokens of ServiceAccounts and of the administrator.

A token is a JWT with the claims that kube-apiserver sets (pkg/serviceaccount/claims.go), signed with a secret of this
process (HS256, where the original has a key pair). It is void once the process ends, it expires, or its
ServiceAccount is deleted.
"""

import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
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

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
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
        self._key = secrets.token_bytes(32)
        self._objects = objects
        self._clock = clock

    def user(self, authorization: str) -> User:
        """Return the user of an `Authorization` header; without a token, the anonymous one. Raise ApiError 401."""
        scheme, _, token = authorization.strip().partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return User("system:anonymous", (UNAUTHENTICATED,))
        if hmac.compare_digest(token.strip().encode(), self.administrator.encode()):
            return User("kubernetes-admin", (MASTERS, AUTHENTICATED))
        try:
            return self._account(token.strip())
        except (LookupError, TypeError, ValueError) as error:
            raise ApiError(401, "Unauthorized", "Unauthorized") from error

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
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"creationTimestamp": timestamp(now), "name": name, "namespace": namespace},
            "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": None},
            "status": {"token": self._signed(claims), "expirationTimestamp": timestamp(expires)},
        }

    def _signed(self, claims: Mapping[str, Any]) -> str:
        content = f"{_encoded(orjson.dumps({'alg': 'HS256', 'typ': 'JWT'}))}.{_encoded(orjson.dumps(claims))}"
        return f"{content}.{self._signature(content)}"

    def _signature(self, content: str) -> str:
        return _encoded(hmac.digest(self._key, content.encode(), "sha256"))

    def _account(self, token: str) -> User:
        """Return the user of a token. Raise ValueError unless it is one of ours, for us, and still valid."""
        content, _, signature = token.rpartition(".")
        text = content.partition(".")[2]
        if not hmac.compare_digest(signature.encode(), self._signature(content).encode()):
            raise ValueError("not signed by this server")
        claims = orjson.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        namespace, account = claims["kubernetes.io"]["namespace"], claims["kubernetes.io"]["serviceaccount"]
        found = self._objects.find(Key("serviceaccounts", namespace, account["name"]))
        if _ISSUER not in claims["aud"] or self._clock().timestamp() >= claims["exp"]:
            raise ValueError("expired, or for another audience")
        if found is None or found["metadata"]["uid"] != account["uid"]:
            raise ValueError("the ServiceAccount is gone")
        groups = (_ACCOUNTS, f"{_ACCOUNTS}:{namespace}", AUTHENTICATED)
        return User(account_name(namespace, account["name"]), groups)


def account_name(namespace: str, name: str) -> str:
    return f"system:serviceaccount:{namespace}:{name}"


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
