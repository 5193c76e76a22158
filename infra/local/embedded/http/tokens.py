"""Who asks: bearer tokens of ServiceAccounts and of the administrator.

A token is a JWT with the claims that kube-apiserver sets (pkg/serviceaccount/claims.go), signed with a secret of this
process (HS256, where the original has a key pair). It is void once the process ends, it expires, or its
ServiceAccount is deleted.
"""

import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import orjson

from infra.local.embedded.store import errors
from infra.local.embedded.store.deletion import timestamp
from infra.local.embedded.store.errors import ApiError
from infra.local.embedded.store.kinds import Key, Object
from infra.local.embedded.store.objects import Objects

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ISSUER = "https://kubernetes.default.svc.cluster.local"
"""The issuer of tokens, and their default audience."""
_HEADER = {"alg": "HS256", "typ": "JWT"}
_SECONDS, _LEAST_SECONDS, _MOST_SECONDS = 3600, 600, 1 << 32


@dataclass(frozen=True, slots=True)
class User:
    name: str
    groups: tuple[str, ...]


_NOBODY = User("system:anonymous", (UNAUTHENTICATED,))
_ADMINISTRATOR = User("kubernetes-admin", (MASTERS, AUTHENTICATED))


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
            return _NOBODY
        if hmac.compare_digest(token.strip().encode(), self.administrator.encode()):
            return _ADMINISTRATOR
        try:
            return self._account(self._claims(token.strip()))
        except (LookupError, TypeError, ValueError) as error:
            raise ApiError(401, "Unauthorized", "Unauthorized") from error

    def issue(self, account: Object, asked: Mapping[str, Any]) -> Object:
        """Return a TokenRequest with its token. Raise ApiError 422 for too short or too long a life."""
        spec, metadata, now = asked.get("spec") or {}, account["metadata"], self._clock()
        if spec.get("boundObjectRef"):
            raise errors.not_implemented("tokens bound to an object (spec.boundObjectRef)")
        seconds = spec.get("expirationSeconds") or _SECONDS
        if not _LEAST_SECONDS <= seconds <= _MOST_SECONDS:
            why = "may not specify a duration less than 10 minutes or larger than 2^32 seconds"
            cause = errors.wrong("spec.expirationSeconds", seconds, why)
            raise errors.invalid("TokenRequest", "authentication.k8s.io", metadata["name"], [cause])
        audiences = spec.get("audiences") or [ISSUER]
        created = {"creationTimestamp": timestamp(now), "name": metadata["name"], "namespace": metadata["namespace"]}
        expires = now + timedelta(seconds=seconds)
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": created,
            "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": None},
            "status": {
                "token": self._signed(metadata, audiences, now, expires),
                "expirationTimestamp": timestamp(expires),
            },
        }

    def _signed(self, account: Mapping[str, Any], audiences: Sequence[str], now: datetime, expires: datetime) -> str:
        namespace, name = account["namespace"], account["name"]
        claims = {
            "aud": audiences,
            "exp": int(expires.timestamp()),
            "iat": int(now.timestamp()),
            "iss": ISSUER,
            "jti": str(uuid4()),
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": account["uid"]}},
            "nbf": int(now.timestamp()),
            "sub": account_name(namespace, name),
        }
        said = f"{_encoded(orjson.dumps(_HEADER))}.{_encoded(orjson.dumps(claims))}"
        return f"{said}.{_encoded(hmac.digest(self._key, said.encode(), 'sha256'))}"

    def _claims(self, token: str) -> Mapping[str, Any]:
        """Return the claims of a token. Raise ValueError unless it is one of ours, for us, and still valid."""
        said, _, signature = token.rpartition(".")
        if not hmac.compare_digest(
            signature.encode(), _encoded(hmac.digest(self._key, said.encode(), "sha256")).encode()
        ):
            raise ValueError("not signed by this server")
        text = said.partition(".")[2]
        claims: Mapping[str, Any] = orjson.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        if ISSUER not in claims["aud"] or self._clock().timestamp() >= claims["exp"]:
            raise ValueError("expired, or for another audience")
        return claims

    def _account(self, claims: Mapping[str, Any]) -> User:
        namespace, account = claims["kubernetes.io"]["namespace"], claims["kubernetes.io"]["serviceaccount"]
        found = self._objects.find(Key("serviceaccounts", namespace, account["name"]))
        if found is None or found["metadata"]["uid"] != account["uid"]:
            raise ValueError("the ServiceAccount is gone")
        everyone = "system:serviceaccounts"
        return User(account_name(namespace, account["name"]), (everyone, f"{everyone}:{namespace}", AUTHENTICATED))


def account_name(namespace: str, name: str) -> str:
    return f"system:serviceaccount:{namespace}:{name}"


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
