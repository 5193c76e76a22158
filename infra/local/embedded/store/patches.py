"""Patches: JSON merge (RFC 7386), JSON (RFC 6902), strategic merge and forced apply for the core kinds (pure).

Facts of strategic merge: k8s.io/apimachinery/pkg/util/strategicpatch; the lists with merge keys are those that the
core types declare with `patchMergeKey` and `patchStrategy`, as far as the served kinds use them. No function changes
what it is given.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import orjson

from infra.local.embedded.store import errors

_MERGE_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "containers": "name",
        "initContainers": "name",
        "ephemeralContainers": "name",
        "env": "name",
        "volumes": "name",
        "volumeMounts": "mountPath",
        "volumeDevices": "devicePath",
        "imagePullSecrets": "name",
        "schedulingGates": "name",
        "hostAliases": "ip",
        "topologySpreadConstraints": "topologyKey",
        "resourceClaims": "name",
        "ownerReferences": "uid",
        "conditions": "type",
        "addresses": "type",
        "podIPs": "ip",
        "hostIPs": "ip",
    }
)
_PORT_KEYS = ("containerPort", "port")  # of containers; of services
_SETS = frozenset({"finalizers", "podCIDRs"})
_DIRECTIVE = "$patch"


def merge(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch: null removes, objects are merged, all else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def strategic_merge(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Apply a strategic merge patch with its directives. Raise ApiError 400 for an unknown directive."""
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _DIRECTIVE}
    if directive not in (None, "merge"):
        raise errors.bad_request(f"unknown patch type: {directive}")
    merged = dict(target)
    for key, value in patch.items():
        if not key.startswith("$"):
            _merge_field(merged, key, value)
    for key, value in patch.items():
        _obey(merged, key, value)
    return merged


def _merge_field(merged: dict[str, Any], key: str, value: Any) -> None:
    present = merged.get(key)
    if value is None or (isinstance(value, dict) and value.get(_DIRECTIVE) == "delete"):
        merged.pop(key, None)
    elif isinstance(value, dict):
        merged[key] = strategic_merge(present if isinstance(present, dict) else {}, value)
    elif isinstance(value, list):
        merged[key] = _merge_list(key, present if isinstance(present, list) else [], value)
    else:
        merged[key] = value


def _merge_list(key: str, present: list[Any], patch: list[Any]) -> list[Any]:
    if key in _SETS:
        return [*present, *(item for item in patch if item not in present)]
    name = _merge_key(key, patch)
    if name is None:
        return patch
    if {_DIRECTIVE: "replace"} in patch:
        return [item for item in patch if item != {_DIRECTIVE: "replace"}]
    merged = list(present)
    for item in patch:
        if not isinstance(item, dict) or name not in item:
            raise errors.bad_request(f"map: {item} does not contain declared merge key: {name}")
        at = next((i for i, old in enumerate(merged) if old.get(name) == item[name]), None)
        if item.get(_DIRECTIVE) == "delete":
            merged = [old for old in merged if old.get(name) != item[name]]
        elif at is None:
            merged.append(strategic_merge({}, item))
        else:
            merged[at] = strategic_merge(merged[at], item)
    return merged


def _merge_key(key: str, items: list[Any]) -> str | None:
    """Return the field that identifies the items of a mergeable list; None for lists that are replaced."""
    if key == "ports":
        return next((name for name in _PORT_KEYS if any(name in item for item in items)), None)
    return _MERGE_KEYS.get(key)


def _obey(merged: dict[str, Any], key: str, value: Any) -> None:
    """Apply a directive that is a sibling of the field it refers to."""
    directive, _, field = key.partition("/")
    if directive == "$deleteFromPrimitiveList":
        merged[field] = [item for item in merged.get(field, []) if item not in value]
    elif directive == "$setElementOrder":
        name = _merge_key(field, value) if any(isinstance(item, dict) for item in value) else None
        order = [item[name] if name else item for item in value]
        items = merged.get(field, [])
        ranks = {identity: rank for rank, identity in enumerate(order)}
        # Items that the patch does not order keep their order, after those that it does.
        merged[field] = sorted(items, key=lambda i: ranks.get(i.get(name) if name else i, len(ranks)))
    elif directive == "$retainKeys":
        for gone in [k for k in merged if k not in value]:
            del merged[gone]
    elif key.startswith("$") and key != _DIRECTIVE:
        raise errors.bad_request(f"unknown directive in strategic merge patch: {key}")


def json_patch(target: Any, operations: Any) -> Any:
    """Apply a JSON patch of add, remove, replace and test. Raise ApiError 400 if malformed, 422 if not applicable."""
    if not isinstance(operations, list) or not all(isinstance(one, dict) for one in operations):
        raise errors.bad_request("json: cannot unmarshal the body into Go value of type jsonpatch.Patch")
    document = {"": orjson.loads(orjson.dumps(target))}
    for operation in operations:
        *way, last = (step.replace("~1", "/").replace("~0", "~") for step in operation.get("path", "").split("/"))
        try:
            here: Any = document
            for step in way:
                here = here[int(step) if isinstance(here, list) else step]
            _operate(here, last, operation)
        except (IndexError, KeyError, TypeError, ValueError) as error:
            why = f"{operation.get('op')} operation does not apply: {operation.get('path')}: {error}"
            message = f"the server rejected our request due to an error in our request: {why}"
            raise errors.ApiError(422, "Invalid", message) from error
    return document[""]


def _operate(here: Any, last: str, operation: Mapping[str, Any]) -> None:
    """Change a part of a document in place. Raise LookupError or ValueError if the operation does not apply."""
    place: Any = last
    if isinstance(here, list):
        place = len(here) if last == "-" else int(last)
    match operation.get("op"):
        case "add" if isinstance(here, list):
            here.insert(place, operation.get("value"))
        case "add":
            here[place] = operation.get("value")
        case "remove":
            del here[place]
        case "replace" if here[place] is not operation:
            here[place] = operation.get("value")
        case "test":
            if here[place] != operation.get("value"):
                raise ValueError("testing the value failed")
        case other:
            raise errors.bad_request(f"JSON patch operation {other} is not supported")
