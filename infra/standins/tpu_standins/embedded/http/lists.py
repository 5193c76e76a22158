"""Lists: what selectors choose, pages of one consistent snapshot, as objects or as a Table."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from datetime import datetime

from tpu_standins.embedded.http.requests import Request
from tpu_standins.embedded.store import errors
from tpu_standins.embedded.store.columns import at
from tpu_standins.embedded.store.kinds import Kind, Object
from tpu_standins.embedded.store.labels import EQUALITY, meets, parsed
from tpu_standins.embedded.store.objects import Objects

_JSON, _TABLE = "application/json", {"as=Table", "v=v1", "g=meta.k8s.io"}
_TOO_OLD = "The provided continue parameter is too old to display a consistent list result: start a new list without it"


def selection(kind: Kind, request: Request) -> Callable[[Object], bool]:
    """Return what the selectors and the path choose. Raise ApiError 400 for a selector that cannot be read."""
    requirements = parsed(request.params.get("labelSelector", ""))
    wanted = list(_fields(kind, request.params.get("fieldSelector", "")))
    wanted += [("metadata.name", True, request.name)] if request.name else []
    wanted += [("metadata.namespace", True, request.namespace)] if kind.namespaced and request.namespace else []

    def matches(obj: Object) -> bool:
        labels = obj["metadata"].get("labels") or {}
        fits = all((_text(at(obj, f".{path}")) == value) is equal for path, equal, value in wanted)
        return fits and all(meets(labels, each) for each in requirements)

    return matches


def _fields(kind: Kind, selector: str) -> Iterator[tuple[str, bool, str]]:
    for part in filter(None, selector.split(",")):
        found = EQUALITY.match(part)
        if not found or found["key"] not in ("metadata.name", "metadata.namespace", *kind.fields):
            raise errors.bad_request(f"invalid selector: '{selector}'; field label not supported: '{part}'")
        yield found["key"], found["operator"] != "!=", found["value"]


def _text(value: object) -> str:
    """Return a field as selectors compare it: a text, empty if absent."""
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


def page(objects: Objects, kind: Kind, request: Request) -> Object:
    """Return a List. Raise ApiError 410 if its snapshot was compacted, 504 for a resourceVersion in the future.

    A continue token is the snapshot's version and the last object's place.
    """
    version, after = _resumed(request.params.get("continue", ""))
    asked, limit, match = request.number("resourceVersion"), request.number("limit"), selection(kind, request)
    require_known(objects, asked or 0)
    exact = request.params.get("resourceVersionMatch", "Exact" if limit else "") == "Exact"
    version = version or (asked if exact and asked else 0)
    try:
        found = objects.past(kind, version) if version else objects.stored(kind)
    except errors.ApiError as gone:
        raise errors.ApiError(410, "Expired", _TOO_OLD) from gone
    items = [obj for obj in found if _place(obj) > after and match(obj)]
    metadata: Object = {"resourceVersion": str(version or objects.version)}
    if limit and len(items) > limit:
        last = "/".join((metadata["resourceVersion"], *_place(items[limit - 1])))
        metadata["continue"] = urlsafe_b64encode(last.encode()).decode()
        if not request.params.keys() & {"labelSelector", "fieldSelector"}:
            metadata["remainingItemCount"] = len(items) - limit
    listed = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata}
    return listed | {"items": items[: limit or None]}


def _place(obj: Object) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _resumed(token: str) -> tuple[int, tuple[str, str]]:
    try:
        version, namespace, name = urlsafe_b64decode(token).decode().split("/") if token else ("0", "", "")
        return int(version), (namespace, name)
    except ValueError as error:
        raise errors.bad_request(f"continue key is not valid: {error}") from error


def require_known(objects: Objects, version: int) -> None:
    """Raise ApiError 504 for a resourceVersion in the future."""
    if version > objects.version:
        message = f"Too large resource version: {version}, current: {objects.version}"
        causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
        raise errors.ApiError(504, "Timeout", message, {"causes": causes, "retryAfterSeconds": 1})


def wants_table(accept: str) -> bool:
    """Return whether the client prefers a Table. Raise ApiError 406 if it accepts neither that nor JSON."""
    for option in accept.split(","):
        media, *parameters = (part.strip() for part in option.split(";"))
        table = {*parameters} >= _TABLE
        if media in (_JSON, "application/*", "*/*", "") and (table or not any(p.startswith("as=") for p in parameters)):
            return table
    raise errors.ApiError(
        406, "NotAcceptable", f"only the following media types are accepted: {_JSON}, also as=Table of v1"
    )


def table(kind: Kind, shown: Object, now: datetime, include: str) -> Object:
    """Convert a List, or a single object, to a Table. `include`: None, Metadata or Object, what each row carries."""
    definitions, rows = [], []
    for each in kind.columns:
        column = {"name": each.name, "type": each.type.replace("date", "string"), "priority": each.priority}
        form = "name" if each.name == "Name" and not each.priority else ""
        definitions.append(column | {"description": "", "format": form})
    for obj in shown.get("items", [shown]):
        computed = kind.computed(obj, now)
        partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
        carried = {"None": None, "Object": obj}.get(include, partial)
        rows.append({"cells": [each.cell(obj, computed, now) for each in kind.columns], "object": carried})
    kept = {"resourceVersion", "continue", "remainingItemCount"}
    metadata = {key: value for key, value in shown["metadata"].items() if key in kept}
    result = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    return result | {"columnDefinitions": definitions, "rows": rows}
