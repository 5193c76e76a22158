"""Whether a user may make a request (pure).

Facts: plugin/pkg/auth/authorizer/rbac, pkg/registry/rbac/validation/rule.go, and the texts of refusals of
k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go. There is no check against privilege escalation.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from infra.local.embedded.http.requests import Request
from infra.local.embedded.http.tokens import AUTHENTICATED, MASTERS, UNAUTHENTICATED, User, account_name
from infra.local.embedded.store.errors import ApiError, qualified
from infra.local.embedded.store.kinds import Key, Kind, Object
from infra.local.embedded.store.objects import Objects
from infra.local.embedded.store.table import BUILT_IN, RBAC

_EVERYTHING = [
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["*"]},
]
_HEALTH = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERY = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", *_HEALTH]
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def require(objects: Objects, user: User, wanted: Request) -> None:
    """Raise ApiError 403 unless the user may make the request."""
    if MASTERS in user.groups:
        return
    missing: list[str] = []
    if any(_allows(rule, wanted) for rule in _rules(objects, user, wanted.namespace, missing)):
        return
    what = f'path "{wanted.path}"'
    if wanted.plural:
        combined = f"{wanted.plural}/{wanted.subresource}" if wanted.subresource else wanted.plural
        where = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
        what = f'resource "{combined}" in API group "{wanted.group}" {where}'
    why = f'User "{user.name}" cannot {wanted.verb} {what}'.translate(_ESCAPES)
    if missing:
        listed = missing[0] if len(missing) == 1 else f"[{', '.join(missing)}]"
        why += f": RBAC: {listed}"
    if not wanted.plural:
        raise ApiError(403, "Forbidden", f"forbidden: {why}")
    named = qualified(wanted.plural, wanted.group) + (f' "{wanted.name}"' if wanted.name else "")
    details = {"name": wanted.name, "group": wanted.group, "kind": wanted.plural}
    said = {key: value for key, value in details.items() if value}
    raise ApiError(403, "Forbidden", f"{named} is forbidden: {why}", said)


def _rules(objects: Objects, user: User, namespace: str, missing: list[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the rules that the user is granted; add what says that a bound role does not exist to `missing`."""
    bound = [("", each) for each in objects.stored(BUILT_IN["clusterrolebindings"])]
    bound += [(namespace, each) for each in objects.stored(BUILT_IN["rolebindings"], namespace) if namespace]
    for where, binding in bound:
        if not any(_means(subject, user, where) for subject in binding.get("subjects") or ()):
            continue
        kind, name = binding["roleRef"]["kind"], binding["roleRef"]["name"]
        role = objects.find(Key("roles", where, name) if kind == "Role" else Key("clusterroles", "", name))
        if role is None:
            missing.append(f'{kind.lower()}.{RBAC} "{name}" not found')
        else:
            yield from role.get("rules") or ()


def _means(subject: Mapping[str, str], user: User, namespace: str) -> bool:
    match subject["kind"]:
        case "User":
            return subject["name"] == user.name
        case "Group":
            return subject["name"] in user.groups
        case _:
            return account_name(subject.get("namespace") or namespace, subject["name"]) == user.name


def _allows(rule: Mapping[str, Any], wanted: Request) -> bool:
    if not _holds(rule.get("verbs"), wanted.verb):
        return False
    if not wanted.plural:
        urls = rule.get("nonResourceURLs") or ()
        return any(u == wanted.path or (u.endswith("*") and wanted.path.startswith(u.rstrip("*"))) for u in urls)
    resources, names = rule.get("resources"), rule.get("resourceNames")
    combined = f"{wanted.plural}/{wanted.subresource}" if wanted.subresource else wanted.plural
    everywhere = bool(wanted.subresource) and f"*/{wanted.subresource}" in (resources or ())
    covered = everywhere or _holds(resources, combined)
    return _holds(rule.get("apiGroups"), wanted.group) and covered and (not names or wanted.name in names)


def _holds(allowed: Sequence[str] | None, wanted: str) -> bool:
    return allowed is not None and ("*" in allowed or wanted in allowed)


def first_roles() -> Iterator[tuple[Kind, Object]]:
    """Yield the roles and bindings of a new cluster that are for all users, and its administrator's."""
    urls = {"system:discovery": _DISCOVERY, "system:public-info-viewer": _HEALTH}
    rules = {name: [{"nonResourceURLs": paths, "verbs": ["get"]}] for name, paths in urls.items()}
    groups = {
        "cluster-admin": [MASTERS],
        "system:discovery": [AUTHENTICATED],
        "system:public-info-viewer": [AUTHENTICATED, UNAUTHENTICATED],
    }
    for name, bound in groups.items():
        yield BUILT_IN["clusterroles"], {"metadata": {"name": name}, "rules": rules.get(name, _EVERYTHING)}
        subjects = [{"kind": "Group", "name": group} for group in bound]
        reference = {"kind": "ClusterRole", "name": name}
        yield BUILT_IN["clusterrolebindings"], {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects}
