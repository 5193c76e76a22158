"""Patches: JSON merge (RFC 7386), JSON (RFC 6902), strategic merge (apimachinery pkg/util/strategicpatch; pure).

No function changes what it is given.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from tpu_standins.embedded.store import errors

_MERGE_KEYS = {
    "name": ("containers", "initContainers", "env", "volumes", "imagePullSecrets", "schedulingGates"),
    "mountPath": ("volumeMounts",),
    "topologyKey": ("topologySpreadConstraints",),
    "uid": ("ownerReferences",),
    "type": ("conditions", "addresses"),
    "ip": ("podIPs", "hostIPs", "hostAliases"),
}
_KEY_OF = {field: key for key, fields in _MERGE_KEYS.items() for field in fields}
_SETS = ("finalizers", "podCIDRs")
_DELETED = "$deleteFromPrimitiveList/"


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
    """Apply a strategic merge patch with its directives, but for the order of lists."""
    if patch.get("$patch") == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    merged = dict(target)
    for key, value in patch.items():
        present = merged.get(key)
        if key.startswith(_DELETED):
            field = key.removeprefix(_DELETED)
            merged[field] = [item for item in merged.get(field, []) if item not in value]
        elif key == "$retainKeys":
            merged = {kept: merged[kept] for kept in merged if kept in value}
        elif key.startswith("$"):
            continue
        elif value is None or (isinstance(value, dict) and value.get("$patch") == "delete"):
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = strategic_merge(present if isinstance(present, dict) else {}, value)
        elif isinstance(value, list):
            merged[key] = _merge_list(key, present if isinstance(present, list) else [], value)
        else:
            merged[key] = value
    return merged


def _merge_list(field: str, present: list[Any], patch: list[Any]) -> list[Any]:
    if field in _SETS:
        return [*present, *(item for item in patch if item not in present)]
    name = _KEY_OF.get(field)
    if field == "ports":  # of containers, or of services
        name = "containerPort" if any("containerPort" in item for item in patch) else "port"
    if name is None or {"$patch": "replace"} in patch:
        return [item for item in patch if item != {"$patch": "replace"}]
    merged = {item[name]: item for item in present}
    for item in patch:
        if not isinstance(item, dict) or name not in item:
            raise errors.bad_request(f"map: {item} does not contain declared merge key: {name}")
        if item.get("$patch") == "delete":
            merged.pop(item[name], None)
        else:
            merged[item[name]] = strategic_merge(merged.get(item[name], {}), item)
    return list(merged.values())


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
    value, verb = operation.get("value"), operation.get("op")
    if verb not in ("add", "remove", "replace", "test"):
        raise errors.bad_request(f"JSON patch operation {verb} is not supported")
    if verb != "add" and here[place] != value and verb == "test":
        raise ValueError("testing the value failed")
    if verb == "remove":
        del here[place]
    elif verb == "add" and isinstance(here, list):
        here.insert(place, value)
    else:
        here[place] = value
