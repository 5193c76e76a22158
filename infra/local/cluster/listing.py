"""Lists: pages of one consistent snapshot, as objects or as a Table."""

import base64
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from infra.local.cluster import errors
from infra.local.cluster.objects import Objects
from infra.local.cluster.selectors import Predicate
from infra.local.cluster.tables import table
from infra.local.cluster.targets import Target

_SNAPSHOTS = 64
_TABLE = ("as=Table", "v=v1", "g=meta.k8s.io")


@dataclass(frozen=True, slots=True)
class _Rest:
    """The items after a page, and the resourceVersion that all pages share."""

    items: Sequence[dict[str, Any]]
    version: int


class Lists:
    """Serves lists. It keeps the remainders of recent pages, so that all pages of a list are consistent."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._rests: OrderedDict[str, _Rest] = OrderedDict()
        self._count = 0

    def page(self, target: Target, matches: Predicate, params: Mapping[str, str]) -> dict[str, Any]:
        """Return a List of the items. Raise ApiError 410 for a continue token that is no longer known."""
        _check_match(params)
        rest = self._resume(params["continue"]) if params.get("continue") else self._start(target, params)
        limit = whole_number(params, "limit")
        items = [obj for obj in rest.items if matches(obj)]
        metadata: dict[str, Any] = {"resourceVersion": str(rest.version)}
        if limit and len(items) > limit:
            metadata["continue"] = self._remember(_Rest(items[limit:], rest.version))
            metadata["remainingItemCount"] = len(items) - limit
            items = items[:limit]
        resource = target.resource
        return {
            "kind": f"{resource.kind}List",
            "apiVersion": resource.api_version,
            "metadata": metadata,
            "items": items,
        }

    def _start(self, target: Target, params: Mapping[str, str]) -> _Rest:
        wanted = whole_number(params, "resourceVersion")
        match = params.get("resourceVersionMatch", "")
        require_known(self._objects, wanted)
        # A limit without a resourceVersionMatch means Exact, for compatibility.
        if match == "Exact" or (not match and wanted and whole_number(params, "limit")):
            return _Rest(self._past(target, wanted), wanted)
        return _Rest(self._objects.stored(target.resource.plural, target.namespace), self._objects.version)

    def _past(self, target: Target, version: int) -> list[dict[str, Any]]:
        """Return the objects at `version`, by undoing later changes. Raise ApiError 410 if those were compacted."""
        plural = target.resource.plural
        items = {_place(obj): obj for obj in self._objects.stored(plural)}
        for change in reversed(self._objects.changes(plural, version)):
            if change.previous is None:
                del items[_place(change.object)]
            else:
                items[_place(change.object)] = change.previous
        return [items[place] for place in sorted(items) if target.namespace in ("", place[0])]

    def _resume(self, token: str) -> _Rest:
        if token not in self._rests:
            raise errors.expired(
                "The provided continue parameter is too old to display a consistent list result. "
                "You must start a new list without the continue parameter."
            )
        return self._rests[token]

    def _remember(self, rest: _Rest) -> str:
        self._count += 1
        token = base64.urlsafe_b64encode(f"{rest.version}/{self._count}".encode()).decode()
        self._rests[token] = rest
        while len(self._rests) > _SNAPSHOTS:
            self._rests.popitem(last=False)
        return token


def _place(obj: dict[str, Any]) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _check_match(params: Mapping[str, str]) -> None:
    """Refuse a resourceVersionMatch that conflicts with other parameters (metainternalversion/validation)."""
    match, version = params.get("resourceVersionMatch", ""), params.get("resourceVersion", "")
    if not match:
        return
    path, why = "resourceVersionMatch", ""
    if params.get("continue"):
        why = "resourceVersionMatch is forbidden when continue is provided"
    elif not version:
        why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
    elif match == "Exact" and version == "0":
        why = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
    cause = errors.FieldError(path, "FieldValueForbidden", f"Forbidden: {why}")
    if match not in ("Exact", "NotOlderThan"):
        message = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
        cause, why = errors.FieldError(path, "FieldValueNotSupported", message), message
    if why:
        raise errors.invalid("ListOptions", "meta.k8s.io", "", [cause])


def require_known(objects: Objects, version: int) -> None:
    """Raise ApiError 504 for a resourceVersion in the future, as the watch cache does."""
    if version > objects.version:
        message = f"Too large resource version: {version}, current: {objects.version}"
        details = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}
        raise errors.ApiError(504, "Timeout", message, details | {"retryAfterSeconds": 1})


def whole_number(params: Mapping[str, str], name: str) -> int:
    """Return a numeric parameter, 0 if it is absent. Raise ApiError 400 if it is not a number."""
    text = params.get(name, "") or "0"
    if not text.isdigit():
        raise errors.bad_request(f'strconv.ParseUint: parsing "{text}": invalid syntax ({name})')
    return int(text)


def wants_table(accept: str) -> bool:
    """Return whether the client prefers a Table. Raise ApiError 406 if it accepts none of the supported media types."""
    for option in accept.split(","):
        kind, *parameters = (part.strip() for part in option.split(";"))
        if kind not in ("application/json", "application/*", "*/*"):
            continue
        if all(parameter in parameters for parameter in _TABLE):
            return True
        if not any(parameter.startswith("as=") for parameter in parameters):
            return False
    if not accept:
        return False
    message = (
        "only the following media types are accepted: application/json, application/json;as=Table;g=meta.k8s.io;v=v1"
    )
    raise errors.ApiError(406, "NotAcceptable", message)


def as_table(target: Target, listed: dict[str, Any], now: datetime, params: Mapping[str, str]) -> dict[str, Any]:
    """Convert a List, or a single object, to a Table."""
    items = listed.get("items", [listed])
    shown = table(target.resource, items, now, params.get("includeObject", "Metadata"))
    kept = ("resourceVersion", "continue", "remainingItemCount")
    return shown | {"metadata": {k: v for k, v in listed["metadata"].items() if k in kept}}
