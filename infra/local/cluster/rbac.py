"""Role-based access control: the rules that a user is granted, and whether one of them allows a request (pure).

Facts: plugin/pkg/auth/authorizer/rbac/rbac.go, pkg/registry/rbac/validation/rule.go,
pkg/apis/rbac/v1/evaluation_helpers.go. Not covered: aggregated ClusterRoles, and the check against privilege
escalation (`escalate`, `bind`): whoever may write roles and bindings may write any.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from infra.local.cluster.attributes import Attributes
from infra.local.cluster.authentication import User, account_name
from infra.local.cluster.errors import ApiError
from infra.local.cluster.rbac_validation import GROUP

Rule = Mapping[str, Any]
"""rbac.authorization.k8s.io/v1 PolicyRule."""


class Policies(Protocol):
    """The store of roles and bindings; `get` raises ApiError 404."""

    def get(self, plural: str, namespace: str | None, name: str) -> dict[str, Any]: ...

    def stored(self, plural: str, namespace: str | None = None) -> Sequence[dict[str, Any]]: ...


@dataclass(frozen=True, slots=True)
class Granted:
    """A rule that a user is granted, and a description of the binding it comes from."""

    rule: Rule
    source: str


@dataclass(frozen=True, slots=True)
class Dangling:
    """A binding of the user to a role that does not exist."""

    why: str


def grants(policies: Policies, user: User, namespace: str) -> Iterator[Granted | Dangling]:
    """Yield what a user is granted: cluster-wide, and in `namespace` unless it is empty."""
    for binding in policies.stored("clusterrolebindings"):
        yield from _granted(policies, user, binding, "")
    if namespace:
        for binding in policies.stored("rolebindings", namespace):
            yield from _granted(policies, user, binding, namespace)


def allows(rule: Rule, wanted: Attributes) -> bool:
    """Return whether a rule allows a request."""
    if not _holds(rule.get("verbs"), wanted.verb):
        return False
    if not wanted.resource:
        return any(_covers_path(url, wanted.path) for url in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames")
    return (
        _holds(rule.get("apiGroups"), wanted.group)
        and _holds_resource(rule.get("resources"), wanted)
        and (not names or wanted.name in names)
    )


def _granted(
    policies: Policies, user: User, binding: Mapping[str, Any], namespace: str
) -> Iterator[Granted | Dangling]:
    subject = next((s for s in binding.get("subjects") or () if _means(s, user, namespace)), None)
    if subject is None:
        return
    reference = binding["roleRef"]
    role, source = reference["name"], _source(binding, subject, namespace)
    try:
        found = (
            policies.get("roles", namespace, role)
            if reference["kind"] == "Role"
            else policies.get("clusterroles", None, role)
        )
    except ApiError:
        yield Dangling(f'{reference["kind"].lower()}.{GROUP} "{role}" not found')
        return
    for rule in found.get("rules") or ():
        yield Granted(rule, source)


def _means(subject: Mapping[str, str], user: User, namespace: str) -> bool:
    match subject["kind"]:
        case "User":
            return subject["name"] == user.name
        case "Group":
            return subject["name"] in user.groups
        case _:
            where = subject.get("namespace") or namespace
            return bool(where) and account_name(where, subject["name"]) == user.name


def _source(binding: Mapping[str, Any], subject: Mapping[str, str], namespace: str) -> str:
    """Return the original's description of a binding, for the reason of a decision."""
    name = binding["metadata"]["name"]
    bound = f'RoleBinding "{name}/{namespace}"' if namespace else f'ClusterRoleBinding "{name}"'
    whom = subject["name"]
    if subject["kind"] == "ServiceAccount":
        whom = f"{whom}/{subject.get('namespace') or namespace}"
    role = binding["roleRef"]
    return f'{bound} of {role["kind"]} "{role["name"]}" to {subject["kind"]} "{whom}"'


def _holds(allowed: Sequence[str] | None, wanted: str) -> bool:
    return allowed is not None and ("*" in allowed or wanted in allowed)


def _holds_resource(allowed: Sequence[str] | None, wanted: Attributes) -> bool:
    everywhere = bool(wanted.subresource) and f"*/{wanted.subresource}" in (allowed or ())
    return everywhere or _holds(allowed, wanted.combined)


def _covers_path(url: str, path: str) -> bool:
    return url == path or (url.endswith("*") and path.startswith(url.rstrip("*")))
