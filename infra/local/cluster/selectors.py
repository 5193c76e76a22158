"""Label and field selectors of list and watch requests (pure)."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from infra.local.cluster import errors
from infra.local.cluster.resources import Resource

_EQUALITY = re.compile(r"^(?P<key>[^\s=!,]+)\s*(?P<operator>==|=|!=)\s*(?P<value>[^\s=!,]*)$")
_SET = re.compile(r"^(?P<key>[^\s=!,]+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)$")
_EXISTS = re.compile(r"^(?P<absent>!?)\s*(?P<key>[^\s=!,()]+)$")
_SEPARATOR = re.compile(r",(?![^()]*\))")
_METADATA_FIELDS = ("metadata.name", "metadata.namespace")

FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "namespaces": ("status.phase",),
        "nodes": ("spec.unschedulable",),
        "pods": (
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ),
        "services": ("spec.clusterIP", "spec.type"),
        "events": (
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "type",
        ),
        "jobs": (),
        "jobsets": (),
        "serviceaccounts": (),
        "clusterroles": (),
        "clusterrolebindings": (),
        "roles": (),
        "rolebindings": (),
        "resourceflavors": (),
        "clusterqueues": (),
        "localqueues": (),
        "workloads": (),
        "workloadpriorityclasses": (),
        "persistentvolumeclaims": (),
        "persistentvolumes": (),
        "configmaps": (),
        "deployments": (),
        "daemonsets": (),
        "leases": (),
        "priorityclasses": (),
    }
)
"""Fields supported by field selectors besides name and namespace, as in the `AddFieldLabelConversionFunc`s."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on a label. `values` is empty for `exists` and `absent`."""

    key: str
    operator: Literal["in", "notin", "exists", "absent"]
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        match self.operator:
            case "in":
                return labels.get(self.key) in self.values
            case "notin":
                return labels.get(self.key) not in self.values
            case "exists":
                return self.key in labels
            case "absent":
                return self.key not in labels


Predicate = Callable[[dict[str, Any]], bool]


def selection(resource: Resource, labels: str, fields: str, namespace: str) -> Predicate:
    """Return the predicate of the selectors. Raise ApiError 400 if one is malformed or uses an unsupported field."""
    requirements = parse_labels(labels)
    wanted = _parse_fields(resource, fields)

    def matches(obj: dict[str, Any]) -> bool:
        metadata = obj["metadata"]
        if namespace and metadata.get("namespace", "") != namespace:
            return False
        carried = metadata.get("labels") or {}
        return all(r.matches(carried) for r in requirements) and all(
            (field_value(obj, path) == value) is equal for path, equal, value in wanted
        )

    return matches


def parse_labels(selector: str) -> list[Requirement]:
    """Parse a label selector: `a=b,c!=d,e in (f,g),h notin (i),j,!k`."""
    parts = [part.strip() for part in _SEPARATOR.split(selector)] if selector.strip() else []
    return [_requirement(part) for part in parts]


def _requirement(part: str) -> Requirement:
    if found := _EQUALITY.match(part):
        operator: Literal["in", "notin"] = "notin" if found["operator"] == "!=" else "in"
        return Requirement(found["key"], operator, frozenset([found["value"]]))
    if found := _SET.match(part):
        values = frozenset(value.strip() for value in found["values"].split(","))
        return Requirement(found["key"], "in" if found["operator"] == "in" else "notin", values)
    if found := _EXISTS.match(part):
        return Requirement(found["key"], "absent" if found["absent"] else "exists")
    raise errors.bad_request(f"unable to parse requirement: found '{part}'")


def _parse_fields(resource: Resource, selector: str) -> list[tuple[str, bool, str]]:
    known = (*_METADATA_FIELDS, *FIELDS[resource.plural])
    wanted = []
    for part in filter(None, selector.split(",")):
        found = _EQUALITY.match(part)
        if not found:
            raise errors.bad_request(f"invalid selector: '{selector}'; can't understand '{part}'")
        if found["key"] not in known:
            raise errors.bad_request(f"field label not supported: {found['key']}")
        wanted.append((found["key"], found["operator"] != "!=", found["value"]))
    return wanted


def field_value(obj: dict[str, Any], path: str) -> str:
    """Return a field's value as selectors compare it: a string, empty if absent."""
    value: Any = obj
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
