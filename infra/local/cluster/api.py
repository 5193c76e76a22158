"""The verbs of the API, from a request that is read to an answer that can be written."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from infra.local.cluster import bodies, errors, patches, targets
from infra.local.cluster.binding import bind, refuse_rebinding
from infra.local.cluster.listing import Lists, as_table, require_known, wants_table, whole_number
from infra.local.cluster.objects import Object, Objects
from infra.local.cluster.selectors import Predicate, selection
from infra.local.cluster.targets import Target
from infra.local.cluster.watch import Watches, WatchRequest

_WATCH_SECONDS = 1800  # --min-request-timeout
_REHEARSED = ("create", "update", "patch")
_TRUE = ("1", "t", "T", "TRUE", "true", "True")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request. `content_type` and `accept` as sent, without parameters for the former."""

    method: str
    path: str
    params: Mapping[str, str]
    content_type: str
    accept: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response: an object to be written as JSON, or the lines of a watch."""

    code: int = 200
    body: dict[str, Any] | AsyncIterator[bytes]
    warnings: Sequence[str] = field(default_factory=tuple)


class Api:
    def __init__(
        self, objects: Objects, watches: Watches, clock: Callable[[], datetime], bookmark_seconds: float
    ) -> None:
        self._objects = objects
        self._watches = watches
        self._clock = clock
        self._bookmark_seconds = bookmark_seconds
        self._lists = Lists(objects)

    def serve(self, call: Call) -> Answer:
        """Answer a request for resources. Every refusal is an ApiError."""
        target = targets.find(call.path)
        verb = target.verb(call.method, watch=call.params.get("watch") in _TRUE)
        target.check(verb, call.content_type)
        if call.params.get("dryRun") and (verb not in _REHEARSED or target.subresource == "binding"):
            raise errors.not_implemented(f'dryRun of the verb "{verb}" on {call.path}')
        verbs: Mapping[str, Callable[[Target, Call], Answer]] = {
            "get": self._get,
            "list": self._list,
            "watch": self._watch,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }
        if target.subresource == "binding":
            return self._bind(target, call)
        return verbs[verb](target, call)

    def _get(self, target: Target, call: Call) -> Answer:
        found = self._current(target)
        if wants_table(call.accept):
            return Answer(body=as_table(target, found, self._clock(), call.params))
        return Answer(body=found)

    def _list(self, target: Target, call: Call) -> Answer:
        listed = self._lists.page(target, _matches(target, call), call.params)
        if wants_table(call.accept):
            return Answer(body=as_table(target, listed, self._clock(), call.params))
        return Answer(body=listed)

    def _watch(self, target: Target, call: Call) -> Answer:
        if call.params.get("sendInitialEvents"):
            why = "Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
            cause = errors.FieldError("sendInitialEvents", "FieldValueForbidden", why)
            raise errors.invalid("ListOptions", "meta.k8s.io", "", [cause])
        version = call.params.get("resourceVersion", "")
        if version and not version.isdigit():
            raise errors.bad_request(f'Invalid value: "{version}": must be a resourceVersion')
        since = int(version) if version not in ("", "0") else None
        require_known(self._objects, since or 0)
        request = WatchRequest(
            plural=target.resource.plural,
            matches=_matches(target, call),
            since=since,
            render=self._render(target, call) if wants_table(call.accept) else None,
            timeout_seconds=whole_number(call.params, "timeoutSeconds") or _WATCH_SECONDS,
            bookmark_seconds=(self._bookmark_seconds if call.params.get("allowWatchBookmarks") in _TRUE else None),
        )
        return Answer(body=self._watches.stream(request))

    def _render(self, target: Target, call: Call) -> Callable[[Object], Object]:
        return lambda obj: as_table(target, obj, self._clock(), call.params)

    def _create(self, target: Target, call: Call) -> Answer:
        body = self._read(target, call)
        metadata = body.object.setdefault("metadata", {})
        if target.resource.namespaced:
            _agree(metadata, "namespace", target.namespace)
        created = self._objects.create(target.resource.plural, body.object, dry_run=_is_dry(call))
        return Answer(code=201, body=created, warnings=body.warnings)

    def _update(self, target: Target, call: Call) -> Answer:
        body = self._read(target, call)
        version = body.object.get("metadata", {}).get("resourceVersion")
        if target.resource.custom and not version:
            cause = errors.FieldError(
                "metadata.resourceVersion",
                "FieldValueInvalid",
                "Invalid value: 0x0: must be specified for an update",
            )
            raise errors.invalid(target.resource.kind, target.resource.group, target.name, [cause])
        return self._store(target, call, body)

    def _patch(self, target: Target, call: Call) -> Answer:
        current = self._current(target)
        patch = bodies.parse(call.body, call.content_type)
        match call.content_type:
            case targets.JSON_PATCH:
                patched = patches.json_patch(current, patch)
            case targets.STRATEGIC_MERGE_PATCH if isinstance(patch, dict):
                patched = patches.strategic_merge(current, patch)
            case targets.MERGE_PATCH if isinstance(patch, dict):
                patched = patches.merge(current, patch)
            case _:
                raise errors.bad_request("the patch is not a JSON object")
        validation = call.params.get("fieldValidation", "")
        return self._store(target, call, bodies.read_patched(target.resource, patched, validation))

    def _store(self, target: Target, call: Call, body: bodies.Body) -> Answer:
        metadata = body.object.setdefault("metadata", {})
        _agree(metadata, "name", target.name)
        if target.resource.namespaced:
            _agree(metadata, "namespace", target.namespace)
        if target.resource.plural == "pods" and not target.subresource:
            refuse_rebinding(self._current(target), body.object)
        status = target.subresource == "status"
        stored = self._objects.update(target.resource.plural, body.object, status=status, dry_run=_is_dry(call))
        return Answer(body=stored, warnings=body.warnings)

    def _delete(self, target: Target, call: Call) -> Answer:
        options = _delete_options(call)
        current = self._current(target)
        _check_preconditions(target, current, options.get("preconditions") or {})
        deleted = self._remove(target, current, options)
        if target.resource.returns_deleted or self._still_there(target, deleted):
            return Answer(body=deleted)
        details = {
            "name": target.name,
            "group": target.resource.group,
            "kind": target.resource.plural,
            "uid": deleted["metadata"]["uid"],
        }
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        return Answer(body=status | {"details": details})

    def _delete_collection(self, target: Target, call: Call) -> Answer:
        options = _delete_options(call)
        listed = self._lists.page(target, _matches(target, call), {})
        for item in listed["items"]:
            self._remove(target, item, options)
        return Answer(body=listed)

    def _remove(self, target: Target, item: Object, options: Mapping[str, Any]) -> Object:
        return self._objects.delete(
            target.resource.plural,
            item["metadata"].get("namespace"),
            item["metadata"]["name"],
            grace_seconds=options.get("gracePeriodSeconds"),
            propagation=options.get("propagationPolicy") or "Background",
        )

    def _bind(self, target: Target, call: Call) -> Answer:
        bind(self._objects, self._clock(), self._current(target), bodies.parse_object(call.body, call.content_type))
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
        return Answer(code=201, body=status)

    def _read(self, target: Target, call: Call) -> bodies.Body:
        parsed = bodies.parse(call.body, call.content_type)
        return bodies.read(target.resource, parsed, call.params.get("fieldValidation", ""))

    def _current(self, target: Target) -> Object:
        return self._objects.get(target.resource.plural, target.namespace or None, target.name)

    def _still_there(self, target: Target, deleted: Object) -> bool:
        try:
            return bool(self._current(target)["metadata"]["uid"] == deleted["metadata"]["uid"])
        except errors.ApiError:
            return False


def _matches(target: Target, call: Call) -> Predicate:
    labels, fields = call.params.get("labelSelector", ""), call.params.get("fieldSelector", "")
    return selection(target.resource, labels, fields, target.namespace)


def _is_dry(call: Call) -> bool:
    """Whether to do all but store. ApiError 422 for an unknown directive."""
    asked = call.params.get("dryRun", "")
    if asked not in ("", "All"):
        why = f'Unsupported value: "{asked}": supported values: "All"'
        cause = errors.FieldError("dryRun", "FieldValueNotSupported", why)
        raise errors.invalid("PatchOptions", "meta.k8s.io", "", [cause])
    return bool(asked)


def _agree(metadata: dict[str, Any], key: str, expected: str) -> None:
    """Take a name or namespace from the path; ApiError 400 when the body says another."""
    if metadata.setdefault(key, expected) == expected:
        return
    if key == "namespace":
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    raise errors.bad_request(
        f"the name of the object ({metadata[key]}) does not match the name on the URL ({expected})"
    )


def _delete_options(call: Call) -> dict[str, Any]:
    """Read metav1.DeleteOptions from the body, else from the query."""
    if call.body:
        if call.content_type not in ("", targets.JSON):
            raise errors.not_implemented(f'"{call.content_type}" in the verb "delete"')
        options = bodies.parse_object(call.body, targets.JSON)
    else:
        options = {"propagationPolicy": call.params.get("propagationPolicy")}
        if "gracePeriodSeconds" in call.params:
            options["gracePeriodSeconds"] = whole_number(call.params, "gracePeriodSeconds")
    for missing in ("orphanDependents", "dryRun"):
        if options.get(missing):
            raise errors.not_implemented(f"{missing} of DeleteOptions")
    return options


def _check_preconditions(target: Target, current: Object, wanted: Mapping[str, str]) -> None:
    metadata, resource = current["metadata"], target.resource
    for key, shown in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        asked = wanted.get(key)
        if asked and asked != metadata[key]:
            why = f"Precondition failed: {shown} in precondition: {asked}, {shown} in object meta: {metadata[key]}"
            raise errors.conflict(resource.plural, resource.group, target.name, why)
