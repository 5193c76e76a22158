"""Who asks, by bearer tokens, and whether they may (plugin/pkg/auth/authorizer/rbac).

A token looks as kube-apiserver's, a JWT, but is known by heart instead of by its signature. Roles may grant anything:
there is no check against privilege escalation.
"""

import secrets
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import orjson

from tpu_standins.clients.objects import timestamp
from tpu_standins.embedded.http.requests import Request
from tpu_standins.embedded.store import errors
from tpu_standins.embedded.store.errors import ApiError, qualified
from tpu_standins.embedded.store.kinds import Key, Kind, Object
from tpu_standins.embedded.store.objects import Objects
from tpu_standins.embedded.store.table import BUILT_IN

MASTERS, AUTHENTICATED, UNAUTHENTICATED = "system:masters", "system:authenticated", "system:unauthenticated"
_ISSUER = "https://kubernetes.default.svc.cluster.local"  # also the default audience
_ACCOUNTS, _ACCOUNT = "system:serviceaccounts", "system:serviceaccount:{}:{}"
_BOOTSTRAP = "bootstrap.kubernetes.io/token"
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
        if user := self._joining(token.strip()):
            return user
        claims = self._issued.get(token.strip())
        if claims and _ISSUER in claims["aud"] and self._clock().timestamp() < claims["exp"]:
            namespace, account = claims["kubernetes.io"]["namespace"], claims["kubernetes.io"]["serviceaccount"]
            found = self._objects.find(Key("serviceaccounts", namespace, account["name"]))
            if found and found["metadata"]["uid"] == account["uid"]:
                return User(claims["sub"], (_ACCOUNTS, f"{_ACCOUNTS}:{namespace}", AUTHENTICATED))
        raise ApiError(401, "Unauthorized", "Unauthorized")

    def _joining(self, token: str) -> User | None:
        """Return the user of a bootstrap token (plugin/pkg/auth/authenticator/token/bootstrap); None: it is none."""
        name, _, secret = token.partition(".")
        found = self._objects.find(Key("secrets", "kube-system", f"bootstrap-token-{name}")) or {}
        data = {key: b64decode(text).decode() for key, text in found.get("data", {}).items()}
        lives = datetime.fromisoformat(data.get("expiration", "9999-01-01T00:00:00Z")) > self._clock()
        usable = lives and data.get("usage-bootstrap-authentication") == "true"
        if found.get("type") != _BOOTSTRAP or not usable or not secrets.compare_digest(data["token-secret"], secret):
            return None
        groups = filter(None, data.get("auth-extra-groups", "").split(","))
        return User(f"system:bootstrap:{name}", ("system:bootstrappers", *groups, AUTHENTICATED))

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
        claims |= {"iss": _ISSUER, "sub": _ACCOUNT.format(namespace, name), "nbf": claims["iat"]}
        claims["kubernetes.io"] = {"namespace": namespace, "serviceaccount": bound}
        parts = (orjson.dumps({"alg": "HS256", "typ": "JWT"}), orjson.dumps(claims), secrets.token_bytes(32))
        token = ".".join(urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)
        self._issued[token] = claims
        answer: Object = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"}
        answer |= {"metadata": {"creationTimestamp": timestamp(now), "name": name, "namespace": namespace}}
        answer |= {"spec": {"audiences": audiences, "expirationSeconds": seconds}}
        return answer | {"status": {"token": token, "expirationTimestamp": timestamp(expires)}}


_HEALTH = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERY = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", *_HEALTH]
_EVERYTHING = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, {"nonResourceURLs": ["*"], "verbs": ["*"]}]
_FIRST = {
    "cluster-admin": (_EVERYTHING, [MASTERS]),
    "system:discovery": ([{"nonResourceURLs": _DISCOVERY, "verbs": ["get"]}], [AUTHENTICATED]),
    "system:public-info-viewer": ([{"nonResourceURLs": _HEALTH, "verbs": ["get"]}], [AUTHENTICATED, UNAUTHENTICATED]),
}
"""Rules and groups of the roles of a new cluster."""


def first_roles() -> Iterator[tuple[Kind, Object]]:
    """Yield the roles and bindings of a new cluster that are for all users, and its administrator's."""
    for name, (rules, groups) in _FIRST.items():
        yield BUILT_IN["clusterroles"], {"metadata": {"name": name}, "rules": rules}
        subjects = [{"kind": "Group", "name": group} for group in groups]
        bound = {"roleRef": {"kind": "ClusterRole", "name": name}, "subjects": subjects}
        yield BUILT_IN["clusterrolebindings"], {"metadata": {"name": name}} | bound


def require(objects: Objects, user: User, wanted: Request) -> None:
    """Raise ApiError 403 unless the user may make the request."""
    if MASTERS in user.groups or any(_allows(rule, wanted) for rule in _rules(objects, user, wanted.namespace)):
        return
    what = f'path "{wanted.path}"'
    if wanted.plural:
        where = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
        what = f'resource "{wanted.combined}" in API group "{wanted.group}" {where}'
    why = f'User "{user.name}" cannot {wanted.verb} {what}'
    if not wanted.plural:
        raise ApiError(403, "Forbidden", f"forbidden: {why}")
    named = qualified(wanted.plural, wanted.group) + (f' "{wanted.name}"' if wanted.name else "")
    details = {"name": wanted.name, "group": wanted.group, "kind": wanted.plural}
    known = {key: value for key, value in details.items() if value}
    raise ApiError(403, "Forbidden", f"{named} is forbidden: {why}", known)


def _rules(objects: Objects, user: User, namespace: str) -> Iterator[Mapping[str, Any]]:
    bound = [("", each) for each in objects.stored(BUILT_IN["clusterrolebindings"])]
    bound += [(namespace, each) for each in objects.stored(BUILT_IN["rolebindings"], namespace) if namespace]
    for where, binding in bound:
        if any(_means(subject, user, where) for subject in binding.get("subjects") or ()):
            kind, name = binding["roleRef"]["kind"], binding["roleRef"]["name"]
            role = objects.find(Key("roles", where, name) if kind == "Role" else Key("clusterroles", "", name))
            yield from (role or {}).get("rules") or ()


def _means(subject: Mapping[str, str], user: User, namespace: str) -> bool:
    name = subject["name"]
    if subject["kind"] == "ServiceAccount":
        return _ACCOUNT.format(subject.get("namespace") or namespace, name) == user.name
    return name == user.name if subject["kind"] == "User" else name in user.groups


def _allows(rule: Mapping[str, Any], wanted: Request) -> bool:
    if not {"*", wanted.verb} & {*rule.get("verbs", ())}:
        return False
    if not wanted.plural:
        urls = rule.get("nonResourceURLs") or ()
        return any(u == wanted.path or (u.endswith("*") and wanted.path.startswith(u.rstrip("*"))) for u in urls)
    covering = {"*", wanted.combined} | ({f"*/{wanted.subresource}"} if wanted.subresource else set())
    covered = {"*", wanted.group} & {*rule.get("apiGroups", ())} and covering & {*rule.get("resources", ())}
    return bool(covered) and (not rule.get("resourceNames") or wanted.name in rule["resourceNames"])
