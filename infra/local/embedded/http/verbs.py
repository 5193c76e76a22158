"""The verbs of the API: from a request that is allowed to an answer."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from infra.local.embedded.http import discovery, lists, pod_logs, protobuf, removals
from infra.local.embedded.http.requests import (
    APPLY_PATCH,
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    PATCHES,
    PROTOBUF,
    STRATEGIC_MERGE_PATCH,
    Answer,
    Request,
)
from infra.local.embedded.http.selection import selection
from infra.local.embedded.http.tokens import Tokens
from infra.local.embedded.store import errors, patches
from infra.local.embedded.store.binding import bound
from infra.local.embedded.store.errors import ApiError
from infra.local.embedded.store.kinds import Key, Kind, Object
from infra.local.embedded.store.objects import Objects
from infra.local.embedded.store.writes import Writes
from infra.local.embedded.watch.streams import Asked, Streams

_GNOSTIC = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_WATCH_SECONDS = 1800  # --min-request-timeout
_NOT_INSTALLED = ("limitranges", "resourcequotas")
"""Asked for by kubectl describe, which accepts a 404."""
_NOT_FOUND = "the server could not find the requested resource"

Serve = Callable[[Kind, Request], Answer | Awaitable[Answer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verbs:
    objects: Objects
    writes: Writes
    streams: Streams
    tokens: Tokens
    clock: Callable[[], datetime]
    bookmark_seconds: float

    async def serve(self, request: Request) -> Answer:
        """Serve a request. Every refusal raises ApiError."""
        kinds = self.objects.catalog.all()
        if request.path == "/openapi/v2":
            return Answer(body=discovery.openapi_v2(kinds), media_type=_GNOSTIC)
        found = discovery.answer(request.path, kinds) if request.verb in ("get", "list") else None
        if found is not None:
            return Answer(body=found)
        kind = self._kind(request)
        own: Mapping[str, Serve] = {
            "binding": self._bind,
            "eviction": lambda _, request: removals.evict(self.objects, request, self.clock()),
            "log": self._log,
            "token": self._token,
        }
        verbs: Mapping[str, Serve] = {
            "get": self._get,
            "list": self._list,
            "watch": self._watch,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": lambda kind, request: removals.delete(self.objects, kind, request),
            "deletecollection": lambda kind, request: removals.delete_collection(self.objects, kind, request),
        }
        answer = own.get(request.subresource, verbs[request.verb])(kind, request)
        return answer if isinstance(answer, Answer) else await answer

    def _kind(self, request: Request) -> Kind:
        """Return the kind. Raise ApiError 404 or 501 for what is not served, 405 for what the path does not allow."""
        kind = self.objects.catalog.find(request.group, request.version, request.plural)
        if kind is None:
            own = not request.group or "." not in request.group or request.group.endswith(".k8s.io")
            known = {each.group for each in self.objects.catalog.all() if each.custom}
            if request.plural in _NOT_INSTALLED or not own or not request.plural or request.group in known:
                raise ApiError(404, "NotFound", _NOT_FOUND)
            raise errors.not_implemented(f"{errors.qualified(request.plural, request.group)} ({request.path})")
        verbs: tuple[str, ...] = discovery.VERBS
        if request.subresource == "status" and kind.status:
            verbs = discovery.STATUS_VERBS
        elif request.subresource:
            if request.subresource not in kind.subresources:
                raise errors.not_implemented(f"the subresource {request.subresource} of {kind.plural}")
            verbs = (discovery.SUBRESOURCES[request.subresource][3],)
        creates = request.verb == "create" and not request.subresource
        misplaced = creates is bool(request.name) and request.verb in ("create", "update", "patch")
        homeless = kind.namespaced and not request.namespace and request.verb in ("create", "update", "patch")
        if request.verb not in verbs or (misplaced and not request.subresource) or homeless:
            raise ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
        return kind

    def _get(self, kind: Kind, request: Request) -> Answer:
        return self._shown(kind, request, self._current(kind, request))

    def _list(self, kind: Kind, request: Request) -> Answer:
        return self._shown(kind, request, lists.page(self.objects, kind, selection(kind, request), request))

    def _shown(self, kind: Kind, request: Request, found: Object) -> Answer:
        if lists.wants_table(request.accept):
            found = lists.table(kind, found, self.clock(), request.params.get("includeObject", ""))
        return Answer(body=found)

    def _watch(self, kind: Kind, request: Request) -> Answer:
        said = [each for each in ("sendInitialEvents", "resourceVersionMatch") if request.params.get(each)]
        if said:
            cause = errors.prohibited(said[0], f"{said[0]} is forbidden for watch: the WatchList feature is off")
            raise errors.invalid("ListOptions", "meta.k8s.io", "", [cause])
        since = request.number("resourceVersion") or None
        lists.require_known(self.objects, since or 0)
        include = request.params.get("includeObject", "")
        shows_table = lists.wants_table(request.accept)
        asked = Asked(
            kind=kind,
            matches=selection(kind, request),
            since=since,
            render=(lambda obj: lists.table(kind, obj, self.clock(), include)) if shows_table else None,
            seconds=request.number("timeoutSeconds") or _WATCH_SECONDS,
            bookmark_seconds=self.bookmark_seconds if request.says("allowWatchBookmarks") else None,
        )
        return Answer(body=self.streams.stream(asked))

    async def _create(self, kind: Kind, request: Request) -> Answer:
        if request.content_type == PROTOBUF:
            wanted = protobuf.decode(request.body)
        else:
            _require_media(request, (JSON, ""))
            wanted = request.object()
        _agree(kind, request, wanted)
        return Answer(code=201, body=await self.writes.create(kind, wanted, dry_run=request.is_dry()))

    async def _update(self, kind: Kind, request: Request) -> Answer:
        _require_media(request, (JSON, ""))
        wanted, status = request.object(), request.subresource == "status"
        _agree(kind, request, wanted)
        if kind.put_creates and not status and self.objects.find(_key(kind, request)) is None:
            return Answer(code=201, body=await self.writes.create(kind, wanted, dry_run=request.is_dry()))
        return Answer(body=await self.writes.update(kind, wanted, status=status, dry_run=request.is_dry()))

    async def _patch(self, kind: Kind, request: Request) -> Answer:
        _require_media(request, tuple(each for each in PATCHES if each != STRATEGIC_MERGE_PATCH or not kind.custom))
        patch, status = request.parsed(), request.subresource == "status"
        if request.content_type != JSON_PATCH and not isinstance(patch, dict):
            raise errors.bad_request("the patch is not an object")
        applies = request.content_type == APPLY_PATCH
        if applies and not request.params.get("fieldManager"):
            raise errors.bad_request(
                "PatchOptions is invalid: fieldManager: Required value: is required for apply patch"
            )
        if applies and not status and self.objects.find(_key(kind, request)) is None:
            _agree(kind, request, patch)
            return Answer(code=201, body=await self.writes.create(kind, patch, dry_run=request.is_dry()))
        apply = _application(kind, request.content_type)

        def change(old: Object) -> Object:
            # A patch says nothing of the version that it is for, unless it names one.
            bare = old | {"metadata": {k: v for k, v in old["metadata"].items() if k != "resourceVersion"}}
            with errors.understood(kind.kind):
                patched: Object = apply(bare, patch)
                _agree(kind, request, patched)
            return patched

        key = _key(kind, request)
        return Answer(body=await self.writes.change(kind, key, change, status=status, dry_run=request.is_dry()))

    def _log(self, kind: Kind, request: Request) -> Answer:
        return Answer(body=pod_logs.output(self._current(kind, request), request), media_type="text/plain")

    def _bind(self, kind: Kind, request: Request) -> Answer:
        if request.is_dry():
            raise errors.not_implemented(f"dryRun of {request.path}")
        self.objects.put(kind, bound(self._current(kind, request), request.object(), self.clock()))
        return Answer(code=201, body=removals.SUCCESS | {"code": 201})

    def _token(self, kind: Kind, request: Request) -> Answer:
        asked = protobuf.decode(request.body) if request.content_type == PROTOBUF else request.object()
        return Answer(code=201, body=self.tokens.issue(self._current(kind, request), asked))

    def _current(self, kind: Kind, request: Request) -> Object:
        return self.objects.get(kind, request.namespace, request.name)


def _key(kind: Kind, request: Request) -> Key:
    return Key(kind.id, request.namespace if kind.namespaced else "", request.name)


def _application(kind: Kind, content_type: str) -> Callable[[Object, Object], Object]:
    """Return how a patch of this type is applied; a server-side apply is a merge that takes every field over."""
    if content_type == JSON_PATCH:
        return patches.json_patch
    return patches.merge if content_type == MERGE_PATCH or kind.custom else patches.strategic_merge


def _require_media(request: Request, accepted: tuple[str, ...]) -> None:
    if request.content_type not in accepted:
        listed = ", ".join(filter(None, accepted))
        message = f"the body of the request was in an unknown format - accepted media types include: {listed}"
        raise ApiError(415, "UnsupportedMediaType", message)


def _agree(kind: Kind, request: Request, obj: Object) -> None:
    """Set name and namespace from the path. Raise ApiError 400 if the object has others, or is of another kind."""
    for field, expected in (("kind", kind.kind), ("apiVersion", kind.api_version)):
        if obj.get(field, expected) != expected:
            raise errors.bad_request(f"{field} in the body ({obj[field]}) does not match that of the URL ({expected})")
    metadata = obj.setdefault("metadata", {})
    if kind.namespaced and (metadata.get("namespace") or request.namespace) != request.namespace:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if request.name and (metadata.get("name") or request.name) != request.name:
        shown = metadata["name"]
        raise errors.bad_request(
            f"the name of the object ({shown}) does not match the name on the URL ({request.name})"
        )
    metadata.update({"namespace": request.namespace} if kind.namespaced else {})
    metadata.update({"name": request.name} if request.name else {})
