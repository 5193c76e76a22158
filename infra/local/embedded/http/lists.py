"""Lists: pages of one consistent snapshot, as objects or as a Table."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from infra.local.embedded.http.requests import Request
from infra.local.embedded.store import errors
from infra.local.embedded.store.errors import ApiError
from infra.local.embedded.store.kinds import Kind, Object
from infra.local.embedded.store.objects import Objects

_TABLE = ("as=Table", "v=v1", "g=meta.k8s.io")
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. "
    "You must start a new list without the continue parameter."
)


def page(objects: Objects, kind: Kind, matches: Callable[[Object], bool], request: Request) -> dict[str, Any]:
    """Return a List. Raise ApiError 410 if its snapshot was compacted, 504 for a resourceVersion in the future.

    A continue token is the snapshot's version and the last object's place.
    """
    _check_match(request)
    version, after = _resumed(request.params.get("continue", ""))
    asked = request.number("resourceVersion") or 0
    require_known(objects, asked)
    limit = request.number("limit")
    # A limit without a resourceVersionMatch means Exact, for compatibility.
    match = request.params.get("resourceVersionMatch", "")
    if not version and (match == "Exact" or (not match and asked and limit)):
        version = asked
    try:
        found = objects.past(kind, version) if version else objects.stored(kind)
    except ApiError as gone:
        raise errors.expired(_TOO_OLD) from gone
    items = [obj for obj in found if (after is None or _place(obj) > after) and matches(obj)]
    metadata: dict[str, Any] = {"resourceVersion": str(version or objects.version)}
    if limit and len(items) > limit:
        metadata["continue"] = _token(metadata["resourceVersion"], items[limit - 1])
        if not any(request.params.get(each) for each in ("labelSelector", "fieldSelector")):
            metadata["remainingItemCount"] = len(items) - limit
        items = items[:limit]
    return {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata, "items": items}


def _place(obj: Object) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _token(version: str, last: Object) -> str:
    return urlsafe_b64encode("/".join((version, *_place(last))).encode()).decode()


def _resumed(token: str) -> tuple[int, tuple[str, str] | None]:
    if not token:
        return 0, None
    try:
        version, namespace, name = urlsafe_b64decode(token).decode().split("/")
        return int(version), (namespace, name)
    except ValueError as error:
        raise errors.bad_request(f"continue key is not valid: {error}") from error


def _check_match(request: Request) -> None:
    """Refuse a resourceVersionMatch that conflicts with other parameters (metainternalversion/validation)."""
    match, version = request.params.get("resourceVersionMatch", ""), request.params.get("resourceVersion", "")
    why = ""
    if match and request.params.get("continue"):
        why = "resourceVersionMatch is forbidden when continue is provided"
    elif match and not version:
        why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
    elif match == "Exact" and version == "0":
        why = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
    found = [errors.prohibited("resourceVersionMatch", why)] if why else []
    found += errors.choice("resourceVersionMatch", match or "Exact", ("Exact", "NotOlderThan"))
    if found:
        raise errors.invalid("ListOptions", "meta.k8s.io", "", found)


def require_known(objects: Objects, version: int) -> None:
    """Raise ApiError 504 for a resourceVersion in the future."""
    if version > objects.version:
        message = f"Too large resource version: {version}, current: {objects.version}"
        causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
        raise ApiError(504, "Timeout", message, {"causes": causes, "retryAfterSeconds": 1})


def wants_table(accept: str) -> bool:
    """Return whether the client prefers a Table. Raise ApiError 406 if it accepts none of the supported media types."""
    for option in accept.split(","):
        media, *parameters = (part.strip() for part in option.split(";"))
        if media in ("application/json", "application/*", "*/*", ""):
            if all(parameter in parameters for parameter in _TABLE):
                return True
            if not any(parameter.startswith("as=") for parameter in parameters):
                return False
    message = (
        "only the following media types are accepted: application/json, application/json;as=Table;g=meta.k8s.io;v=v1"
    )
    raise ApiError(406, "NotAcceptable", message)


def table(kind: Kind, shown: Mapping[str, Any], now: datetime, include: str) -> dict[str, Any]:
    """Convert a List, or a single object, to a Table. `include`: None, Metadata or Object, what each row carries."""
    kept = ("resourceVersion", "continue", "remainingItemCount")
    definitions = [
        {
            "name": column.name,
            "type": "string" if column.type == "date" else column.type,
            "format": "name" if column.name == "Name" and not column.priority else "",
            "description": "",
            "priority": column.priority,
        }
        for column in kind.columns
    ]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {key: value for key, value in shown["metadata"].items() if key in kept},
        "columnDefinitions": definitions,
        "rows": [_row(kind, obj, now, include) for obj in shown.get("items", [shown])],
    }


def _row(kind: Kind, obj: Object, now: datetime, include: str) -> dict[str, Any]:
    computed = kind.computed(obj, now)
    cells = [column.cell(obj, computed, now) for column in kind.columns]
    carried = None if include == "None" else obj
    if include in ("", "Metadata"):
        carried = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
    return {"cells": cells, "object": carried}
