"""The verbs of the API over HTTP: from a request to an answer. Starlette is between uvicorn and the verbs."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial

import orjson
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from tpu_standins.embedded.http import access, discovery, lists, removals
from tpu_standins.embedded.http.access import Tokens, first_roles
from tpu_standins.embedded.http.requests import APPLY_PATCH, JSON, PROTOBUF, Answer, Request, read
from tpu_standins.embedded.store import errors, patches
from tpu_standins.embedded.store.defaults import containers
from tpu_standins.embedded.store.errors import ApiError
from tpu_standins.embedded.store.kinds import Kind, Object
from tpu_standins.embedded.store.objects import Objects
from tpu_standins.embedded.store.writes import Writes, bound, first_objects
from tpu_standins.embedded.watch.streams import Asked, Streams

_GNOSTIC = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_WATCH_SECONDS = 1800  # --min-request-timeout
_NOT_INSTALLED = ("limitranges", "resourcequotas")  # asked for by kubectl describe, which accepts a 404
_WRITES = ("create", "update", "patch")
_UNCHECKED = "the embedded API server checks neither the schema of this kind nor its rules (x-kubernetes-validations)"
_PATCHES: Mapping[str, Callable[[Object, Object], Object]] = {
    "application/merge-patch+json": patches.merge,
    "application/json-patch+json": patches.json_patch,
    "application/strategic-merge-patch+json": patches.strategic_merge,
    APPLY_PATCH: patches.strategic_merge,
}
"""How a patch of a type is applied; a server-side apply is a merge that takes every field over."""

Serve = Callable[[Kind, Request], Answer | Awaitable[Answer]]


class Verbs:
    def __init__(
        self, objects: Objects, clock: Callable[[], datetime], bookmark_seconds: float, authority: str
    ) -> None:
        self.objects, self.writes = objects, Writes(objects, clock, authority)
        self.streams, self.tokens = Streams(objects), Tokens(objects, clock)
        self._clock, self._bookmark_seconds = clock, bookmark_seconds
        self._verbs: Mapping[str, Serve] = {
            "get": lambda kind, request: self._shown(kind, request, self._current(kind, request)),
            "list": lambda kind, request: self._shown(kind, request, lists.page(objects, kind, request)),
            "watch": self._watch,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": partial(removals.delete, objects),
            "deletecollection": partial(removals.delete_collection, objects),
            "binding": self._bind,
            "eviction": lambda kind, request: removals.evict(objects, kind, request, clock()),
            "log": self._log,
            "token": lambda kind, request: _made(self.tokens.issue(self._current(kind, request), request.object())),
        }

    async def begin(self) -> None:
        """Create what a new cluster has."""
        for kind, obj in (*first_objects(), *first_roles()):
            await self.writes.create(kind, obj)

    async def serve(self, request: Request) -> Answer:
        """Serve a request. Every refusal raises ApiError."""
        kinds = list(self.objects.kinds.values())
        if request.path == "/openapi/v2":
            return Answer(body=discovery.openapi_v2(kinds), media_type=_GNOSTIC)
        found = discovery.answer(request.path, kinds) if request.verb in ("get", "list") else None
        if found is not None:
            return Answer(body=found)
        verb = request.subresource if request.subresource in self._verbs else request.verb
        kind = self._kind(request)
        answer = self._verbs[verb](kind, request)
        answer = answer if isinstance(answer, Answer) else await answer
        unchecked = kind.unchecked and request.verb in _WRITES and not request.subresource
        return replace(answer, warning=_UNCHECKED) if unchecked else answer

    def _kind(self, request: Request) -> Kind:
        """Return the kind. Raise ApiError 404 or 501 for what is not served, 405 for what the path does not allow."""
        wanted, kinds = (request.group, request.version, request.plural), self.objects.kinds.values()
        kind = next((each for each in kinds if (each.group, each.version, each.plural) == wanted), None)
        if kind is None:
            own = "." not in request.group or request.group.endswith(".k8s.io")
            custom = request.group in {each.group for each in kinds if each.custom}
            if request.plural in ("", *_NOT_INSTALLED) or not own or custom:
                raise errors.ApiError(404, "NotFound", "the server could not find the requested resource")
            raise errors.not_implemented(f"{errors.qualified(request.plural, request.group)} ({request.path})")
        verbs: tuple[str, ...] = discovery.VERBS
        if request.subresource == "status" and kind.status:
            verbs = discovery.STATUS_VERBS
        elif request.subresource:
            if request.subresource not in kind.subresources:
                raise errors.not_implemented(f"the subresource {request.subresource} of {kind.plural}")
            verbs = (discovery.SUBRESOURCES[request.subresource][3],)
        misplaced = (request.verb == "create") is bool(request.name) and not request.subresource
        homeless = kind.namespaced and not request.namespace
        if request.verb not in verbs or (request.verb in _WRITES and (misplaced or homeless)):
            raise errors.ApiError(405, "MethodNotAllowed", "the server does not allow this method on the resource")
        return kind

    def _current(self, kind: Kind, request: Request) -> Object:
        return self.objects.get(kind, request.namespace, request.name)

    def _shown(self, kind: Kind, request: Request, found: Object) -> Answer:
        render = self._render(kind, request)
        return Answer(body=render(found) if render else found)

    def _render(self, kind: Kind, request: Request) -> Callable[[Object], Object] | None:
        """Return what converts a list or an object to the Table that the client prefers; None if it wants JSON."""
        if not lists.wants_table(request.accept):
            return None
        return lambda found: lists.table(kind, found, self._clock(), request.params.get("includeObject", ""))

    def _watch(self, kind: Kind, request: Request) -> Answer:
        for parameter in {"sendInitialEvents", "resourceVersionMatch"} & request.params.keys():
            cause = errors.prohibited(parameter, f"{parameter} is forbidden for watch: WatchList is off")
            raise errors.invalid("ListOptions", "meta.k8s.io", "", [cause])
        since = request.number("resourceVersion") or None
        lists.require_known(self.objects, since or 0)
        bookmark_seconds = self._bookmark_seconds if request.asks("allowWatchBookmarks") else None
        seconds, matches = request.number("timeoutSeconds") or _WATCH_SECONDS, lists.selection(kind, request)
        asked = Asked(kind, matches, since, self._render(kind, request), seconds, bookmark_seconds)
        return Answer(body=self.streams.stream(asked))

    async def _create(self, kind: Kind, request: Request) -> Answer:
        _require_media(request, (JSON, PROTOBUF))
        wanted = _agreed(kind, request, request.object())
        return _made(await self.writes.create(kind, wanted, dry_run=request.is_dry))

    async def _update(self, kind: Kind, request: Request) -> Answer:
        _require_media(request, (JSON,))
        status = request.subresource == "status"
        if kind.put_creates and not status and self.objects.find(request.key(kind)) is None:
            return await self._create(kind, request)
        wanted = _agreed(kind, request, request.object())
        return Answer(body=await self.writes.update(kind, wanted, status=status, dry_run=request.is_dry))

    async def _patch(self, kind: Kind, request: Request) -> Answer:
        plain = [media for media, how in _PATCHES.items() if how is not patches.strategic_merge]
        _require_media(request, (*plain, APPLY_PATCH) if kind.custom else tuple(_PATCHES))
        apply = patches.merge if kind.custom and request.content_type == APPLY_PATCH else _PATCHES[request.content_type]
        patch = request.parsed() if apply is patches.json_patch else request.object()
        if request.content_type == APPLY_PATCH:
            if not request.params.get("fieldManager"):
                cause = errors.required("fieldManager", "is required for apply patch")
                raise errors.invalid("PatchOptions", "meta.k8s.io", "", [cause])
            if not request.subresource and self.objects.find(request.key(kind)) is None:
                wanted = _agreed(kind, request, patch)
                return _made(await self.writes.create(kind, wanted, dry_run=request.is_dry))

        def change(old: Object) -> Object:
            # A patch says nothing of the version that it is for, unless it names one.
            bare = old | {"metadata": {k: v for k, v in old["metadata"].items() if k != "resourceVersion"}}
            with errors.understood(kind.kind):
                return _agreed(kind, request, apply(bare, patch))

        key, status = request.key(kind), request.subresource == "status"
        return Answer(body=await self.writes.change(kind, key, change, status=status, dry_run=request.is_dry))

    def _log(self, kind: Kind, request: Request) -> Answer:
        """Answer a line that tells that there is no output (pkg/registry/core/pod: LogLocation)."""
        pod, line = self._current(kind, request), f'no containers run here: pod "{request.name}" has no output\n'
        if request.params.get("container", "") not in ("", *(each["name"] for each in containers(pod["spec"]))):
            raise errors.bad_request(f"container {request.params['container']} is not valid for pod {request.name}")
        return Answer(body=line.encode() if pod["spec"].get("nodeName") else b"", media_type="text/plain")

    def _bind(self, kind: Kind, request: Request) -> Answer:
        if request.is_dry:
            raise errors.not_implemented(f"dryRun of {request.path}")
        self.objects.put(kind, bound(self._current(kind, request), request.object(), self._clock()))
        return _made(removals.SUCCESS | {"code": 201})


def _made(obj: Object) -> Answer:
    return Answer(code=201, body=obj)


def _require_media(request: Request, accepted: tuple[str, ...]) -> None:
    if (request.content_type or JSON) not in accepted:
        message = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        raise errors.ApiError(415, "UnsupportedMediaType", message)


def _agreed(kind: Kind, request: Request, obj: Object) -> Object:
    """Return the object with name and namespace of the path. Raise ApiError 400 if it has others, or another kind."""
    metadata, path = obj.get("metadata") or {}, {"name": request.name}
    path |= {"namespace": request.namespace} if kind.namespaced else {}
    typed = (obj, {"kind": kind.kind, "apiVersion": kind.api_version})
    for holder, expected in (typed, (metadata, path)):
        for field, value in expected.items():
            if value and (holder.get(field) or value) != value:
                why = f"the {field} of the object ({holder[field]}) does not match the {field} on the URL ({value})"
                raise errors.bad_request(why)
    return obj | {"metadata": metadata | {field: value for field, value in path.items() if value}}


def application(verbs: Verbs) -> Starlette:
    """Return the ASGI application."""

    async def serve(request: HttpRequest) -> Response:
        try:
            user = verbs.tokens.user(request.headers.get("authorization", ""))
            params, body = dict(request.query_params), await request.body()
            asked = read(request.method, request.url.path, params, request.headers, body)
            access.require(verbs.objects, user, asked)
            if asked.path in ("/healthz", "/readyz", "/livez"):
                return PlainTextResponse("ok")
            return _response(await verbs.serve(asked))
        except ApiError as error:
            return _response(Answer(code=error.code, body=error.status()))

    return Starlette(routes=[Route("/{path:path}", serve, methods=["GET", "POST", "PUT", "PATCH", "DELETE"])])


def _response(answer: Answer) -> Response:
    if isinstance(answer.body, AsyncIterator):
        return StreamingResponse(answer.body, media_type=answer.media_type)
    body = answer.body if isinstance(answer.body, bytes) else orjson.dumps(answer.body)
    headers = {"Warning": f'299 - "{answer.warning}"'} if answer.warning else None
    return Response(body, status_code=answer.code, headers=headers, media_type=answer.media_type)
