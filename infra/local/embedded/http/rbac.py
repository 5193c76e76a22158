"""Whether a user may make a request (pure).

Facts: plugin/pkg/auth/authorizer/rbac, pkg/registry/rbac/validation/rule.go, and the texts of refusals of
k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go. There is no check against privilege escalation.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from infra.local.embedded.http.requests import Request
from infra.local.embedded.http.tokens import AUTHENTICATED, MASTERS, UNAUTHENTICATED, User, account_name
from infra.local.embedded.store.errors import ApiError, qualified
from infra.local.embedded.store.kinds import Key, Kind, Object
from infra.local.embedded.store.objects import Objects
from infra.local.embedded.store.table import BUILT_IN, RBAC

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
    missing: list[str] = []
    rules = _rules(objects, user, wanted.namespace, missing)
    if MASTERS in user.groups or any(_allows(rule, wanted) for rule in rules):
        return
    what = f'path "{wanted.path}"'
    if wanted.plural:
        where = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
        what = f'resource "{wanted.combined}" in API group "{wanted.group}" {where}'
    why = f'User "{user.name}" cannot {wanted.verb} {what}'
    listed = ", ".join(missing)
    why += f": RBAC: {listed if len(missing) == 1 else f'[{listed}]'}" if missing else ""
    if not wanted.plural:
        raise ApiError(403, "Forbidden", f"forbidden: {why}")
    named = qualified(wanted.plural, wanted.group) + (f' "{wanted.name}"' if wanted.name else "")
    details = {"name": wanted.name, "group": wanted.group, "kind": wanted.plural}
    known = {key: value for key, value in details.items() if value}
    raise ApiError(403, "Forbidden", f"{named} is forbidden: {why}", known)


def _rules(objects: Objects, user: User, namespace: str, missing: list[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the rules that the user is granted; add what tells that a bound role does not exist to `missing`."""
    bound = [("", each) for each in objects.stored(BUILT_IN["clusterrolebindings"])]
    bound += [(namespace, each) for each in objects.stored(BUILT_IN["rolebindings"], namespace) if namespace]
    for where, binding in bound:
        if any(_means(subject, user, where) for subject in binding.get("subjects") or ()):
            kind, name = binding["roleRef"]["kind"], binding["roleRef"]["name"]
            role = objects.find(Key("roles", where, name) if kind == "Role" else Key("clusterroles", "", name))
            missing += [] if role else [f'{kind.lower()}.{RBAC} "{name}" not found']
            yield from (role or {}).get("rules") or ()


def _means(subject: Mapping[str, str], user: User, namespace: str) -> bool:
    name = subject["name"]
    if subject["kind"] == "ServiceAccount":
        return account_name(subject.get("namespace") or namespace, name) == user.name
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
