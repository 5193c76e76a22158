"""Columns of `kubectl get` for accounts, roles and bindings (pkg/printers/internalversion/printers.go; pure)."""

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from infra.local.cluster.durations import since

Cells = Callable[[dict[str, Any], datetime], list[Any]]


def _service_account(obj: dict[str, Any], now: datetime) -> list[Any]:
    secrets = str(len(obj.get("secrets", [])))
    return [obj["metadata"]["name"], secrets, since(obj["metadata"]["creationTimestamp"], now)]


def _role(obj: dict[str, Any], _: datetime) -> list[Any]:
    return [obj["metadata"]["name"], obj["metadata"]["creationTimestamp"]]


def _binding(obj: dict[str, Any], now: datetime) -> list[Any]:
    role = f"{obj['roleRef']['kind']}/{obj['roleRef']['name']}"
    kinds = ("User", "Group", "ServiceAccount")
    age = since(obj["metadata"]["creationTimestamp"], now)
    return [obj["metadata"]["name"], role, age, *(_subjects(obj, kind) for kind in kinds)]


def _subjects(binding: dict[str, Any], kind: str) -> str:
    named = [subject for subject in binding.get("subjects", []) if subject["kind"] == kind]
    if kind == "ServiceAccount":
        return ", ".join(f"{subject.get('namespace', '')}/{subject['name']}" for subject in named)
    return ", ".join(subject["name"] for subject in named)


_ROLES = (("Name", "Created At"), (), _role)
_BINDINGS = (("Name", "Role", "Age"), ("Users", "Groups", "ServiceAccounts"), _binding)

COLUMNS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], Cells]] = MappingProxyType(
    {
        "serviceaccounts": (("Name", "Secrets", "Age"), (), _service_account),
        "clusterroles": _ROLES,
        "roles": _ROLES,
        "clusterrolebindings": _BINDINGS,
        "rolebindings": _BINDINGS,
    }
)
"""By plural name: the columns that are always shown, those that `-o wide` adds, and the cells of both."""
