"""Defaults and validation of roles and bindings (pure).

Facts and error messages: pkg/apis/rbac/v1/defaults.go, pkg/apis/rbac/validation/validation.go.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from infra.local.cluster.errors import FieldError
from infra.local.cluster.names import invalid_value, is_dns_subdomain

GROUP = "rbac.authorization.k8s.io"
_SUBJECT_GROUPS: Mapping[str, str] = {"ServiceAccount": "", "User": GROUP, "Group": GROUP}


def is_path_segment(value: str) -> list[str]:
    """Return the errors of the name of a role or binding, which may contain colons (api/validation/path)."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return [f"may not contain '{mark}'" for mark in "/%" if mark in value]


def _nothing(_: dict[str, Any]) -> None:
    return


def _binding_defaults(binding: dict[str, Any]) -> None:
    reference = binding.setdefault("roleRef", {})
    reference["apiGroup"] = reference.get("apiGroup") or GROUP
    for subject in binding.get("subjects", []):
        group = subject.pop("apiGroup", "") or _SUBJECT_GROUPS.get(subject["kind"], "")
        if group:
            subject["apiGroup"] = group


def _role_defaults(role: dict[str, Any]) -> None:
    role.setdefault("rules", None)


DEFAULTS: Mapping[str, Callable[[dict[str, Any]], None]] = MappingProxyType(
    {
        "serviceaccounts": _nothing,
        "clusterroles": _role_defaults,
        "roles": _role_defaults,
        "clusterrolebindings": _binding_defaults,
        "rolebindings": _binding_defaults,
    }
)
"""By plural name of the resource."""


def _required(path: str, why: str = "") -> FieldError:
    return FieldError(path, "FieldValueRequired", f"Required value: {why}" if why else "Required value")


def _unsupported(path: str, value: str, supported: Iterable[str]) -> FieldError:
    listed = ", ".join(f'"{one}"' for one in sorted(supported))
    return FieldError(path, "FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {listed}')


def _rule_errors(rule: dict[str, Any], path: str, *, namespaced: bool) -> Iterator[FieldError]:
    if not rule.get("verbs"):
        yield _required(f"{path}.verbs", "verbs must contain at least one value")
    groups, resources, names = rule.get("apiGroups"), rule.get("resources"), rule.get("resourceNames")
    if urls := rule.get("nonResourceURLs"):
        shown = "[]string{" + ", ".join(f'"{url}"' for url in urls) + "}"
        if namespaced:
            why = "namespaced rules cannot apply to non-resource URLs"
            yield FieldError(f"{path}.nonResourceURLs", "FieldValueInvalid", f"Invalid value: {shown}: {why}")
        if groups or resources or names:
            why = "rules cannot apply to both regular resources and non-resource URLs"
            yield FieldError(f"{path}.nonResourceURLs", "FieldValueInvalid", f"Invalid value: {shown}: {why}")
        return
    if not groups:
        yield _required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not resources:
        yield _required(f"{path}.resources", "resource rules must supply at least one resource")


def _role(role: dict[str, Any], *, namespaced: bool) -> Iterator[FieldError]:
    for index, rule in enumerate(role.get("rules") or []):
        yield from _rule_errors(rule, f"rules[{index}]", namespaced=namespaced)


def _binding(binding: dict[str, Any], *, namespaced: bool) -> Iterator[FieldError]:
    reference = binding["roleRef"]
    kinds = ("ClusterRole", "Role") if namespaced else ("ClusterRole",)
    if reference["apiGroup"] != GROUP:
        yield _unsupported("roleRef.apiGroup", reference["apiGroup"], [GROUP])
    if reference.get("kind", "") not in kinds:
        yield _unsupported("roleRef.kind", reference.get("kind", ""), kinds)
    if name := reference.get("name", ""):
        yield from (invalid_value("roleRef.name", name, why) for why in is_path_segment(name))
    else:
        yield _required("roleRef.name")
    for index, subject in enumerate(binding.get("subjects", [])):
        yield from _subject_errors(subject, f"subjects[{index}]", namespaced=namespaced)


def _subject_errors(subject: dict[str, Any], path: str, *, namespaced: bool) -> Iterator[FieldError]:
    kind, name = subject.get("kind", ""), subject.get("name", "")
    if not name:
        yield _required(f"{path}.name")
    if kind not in _SUBJECT_GROUPS:
        yield _unsupported(f"{path}.kind", kind, _SUBJECT_GROUPS)
        return
    if subject.get("apiGroup", "") != _SUBJECT_GROUPS[kind]:
        yield _unsupported(f"{path}.apiGroup", subject.get("apiGroup", ""), [_SUBJECT_GROUPS[kind]])
    if kind == "ServiceAccount":
        if name:
            yield from (invalid_value(f"{path}.name", name, why) for why in is_dns_subdomain(name))
        if not namespaced and not subject.get("namespace"):
            yield _required(f"{path}.namespace")


def _service_account(_: dict[str, Any]) -> Iterable[FieldError]:
    return ()


OBJECT_RULES: Mapping[str, Callable[[dict[str, Any]], Iterable[FieldError]]] = MappingProxyType(
    {
        "serviceaccounts": _service_account,
        "clusterroles": lambda role: _role(role, namespaced=False),
        "roles": lambda role: _role(role, namespaced=True),
        "clusterrolebindings": lambda binding: _binding(binding, namespaced=False),
        "rolebindings": lambda binding: _binding(binding, namespaced=True),
    }
)
"""The validation of an object by itself, by plural name."""


def binding_update_errors(old: dict[str, Any], new: dict[str, Any]) -> Iterator[FieldError]:
    """Yield the errors of an update of a binding: its roleRef is immutable."""
    if old["roleRef"] != new["roleRef"]:
        said = new["roleRef"]
        shown = f'rbac.RoleRef{{APIGroup:"{said["apiGroup"]}", Kind:"{said["kind"]}", Name:"{said["name"]}"}}'
        yield FieldError("roleRef", "FieldValueInvalid", f"Invalid value: {shown}: cannot change roleRef")
