"""Authentication: bearer tokens of ServiceAccounts and of the cluster's administrator.

A token is a JWT with the claims that kube-apiserver sets (pkg/serviceaccount/claims.go), signed with a secret of
this process (HS256, whereas the original signs with a key whose public half is published). It becomes invalid when
the process ends, when it expires, and when its ServiceAccount is deleted.

Difference from the original: a request over plain HTTP without a token is treated as an administrator's, as on the
insecure port of kube-apiserver (until 1.20; its user was `system:unsecured`). The local parts use it. Over TLS a
request without a token is `system:anonymous`.
"""

import base64
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random, SystemRandom
from typing import Any, Protocol
from uuid import UUID

import orjson

from infra.local.cluster.errors import ApiError

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = "system:anonymous"
SERVICE_ACCOUNTS = "system:serviceaccounts"
AUDIENCE = "https://kubernetes.default.svc.cluster.local"
"""The issuer of tokens, and their default audience."""
_ACCOUNT_PREFIX = "system:serviceaccount:"
_HEADER = {"alg": "HS256", "typ": "JWT"}


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """authentication.k8s.io/v1 UserInfo."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


_NOBODY = User(name=ANONYMOUS, groups=(UNAUTHENTICATED,))
_LOCAL_PART = User(name="system:unsecured", groups=(MASTERS, AUTHENTICATED))
_ADMINISTRATOR = User(name="kubernetes-admin", groups=(MASTERS, AUTHENTICATED))


class Accounts(Protocol):
    """The source of ServiceAccounts; raises ApiError 404."""

    def get(self, plural: str, namespace: str | None, name: str) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The secrets of one server: the key that signs tokens, and the administrator's token."""

    signing: bytes
    administrator: str


class Authenticator:
    def __init__(
        self, accounts: Accounts, clock: Callable[[], datetime], keys: Keys, *, random: Random | None = None
    ) -> None:
        self._accounts = accounts
        self._clock = clock
        self._keys = keys
        self._random = random or SystemRandom()

    def user(self, authorization: str, *, secure: bool) -> User:
        """Return the user of an `Authorization` header sent over TLS (`secure`) or plain HTTP. Raise ApiError 401."""
        scheme, _, token = authorization.strip().partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return _NOBODY if secure or authorization else _LOCAL_PART
        if hmac.compare_digest(token.strip().encode(), self._keys.administrator.encode()):
            return _ADMINISTRATOR
        return self._account(token.strip())

    def issue(self, account: Mapping[str, Any], audiences: Sequence[str], seconds: int) -> tuple[str, datetime]:
        """Return a token for a v1 ServiceAccount, and when it expires."""
        now = self._clock()
        expires = now + timedelta(seconds=seconds)
        metadata = account["metadata"]
        claims = {
            "aud": list(audiences or [AUDIENCE]),
            "exp": int(expires.timestamp()),
            "iat": int(now.timestamp()),
            "iss": AUDIENCE,
            "jti": str(UUID(int=self._random.getrandbits(128), version=4)),
            "kubernetes.io": {
                "namespace": metadata["namespace"],
                "serviceaccount": {"name": metadata["name"], "uid": metadata["uid"]},
            },
            "nbf": int(now.timestamp()),
            "sub": account_name(metadata["namespace"], metadata["name"]),
        }
        return self._signed(claims), expires

    def _signed(self, claims: Mapping[str, Any]) -> str:
        said = f"{_encoded(orjson.dumps(_HEADER))}.{_encoded(orjson.dumps(claims))}"
        return f"{said}.{_encoded(hmac.digest(self._keys.signing, said.encode(), 'sha256'))}"

    def _account(self, token: str) -> User:
        said, _, signature = token.rpartition(".")
        right = _encoded(hmac.digest(self._keys.signing, said.encode(), "sha256"))
        if not hmac.compare_digest(signature.encode(), right.encode()):
            raise unauthorized()
        claims = orjson.loads(_decoded(said.partition(".")[2]))
        bound = claims["kubernetes.io"]
        namespace, account = bound["namespace"], bound["serviceaccount"]
        if AUDIENCE not in claims["aud"] or self._clock().timestamp() >= claims["exp"]:
            raise unauthorized()
        if account["uid"] != self._uid(namespace, account["name"]):
            raise unauthorized()
        extra = {"authentication.kubernetes.io/credential-id": (f"JTI={claims['jti']}",)}
        name = account_name(namespace, account["name"])
        groups = (*account_groups(namespace), AUTHENTICATED)
        return User(name=name, uid=account["uid"], groups=groups, extra=extra)

    def _uid(self, namespace: str, name: str) -> str:
        try:
            uid: str = self._accounts.get("serviceaccounts", namespace, name)["metadata"]["uid"]
        except ApiError as gone:
            raise unauthorized() from gone
        return uid


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def account_name(namespace: str, name: str) -> str:
    return f"{_ACCOUNT_PREFIX}{namespace}:{name}"


def account_groups(namespace: str) -> tuple[str, ...]:
    return (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}")


def account_of(user: str) -> tuple[str, str] | None:
    """Return namespace and name of the ServiceAccount that a user name denotes, or None if it denotes none."""
    match user.removeprefix(_ACCOUNT_PREFIX).split(":"):
        case [namespace, name] if user.startswith(_ACCOUNT_PREFIX) and namespace and name:
            return namespace, name
        case _:
            return None


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
