"""The HTTP side: Starlette between uvicorn and the API, and the endpoint with which tests inject faults."""

from collections.abc import AsyncIterator, Callable, Mapping
from types import MappingProxyType
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from infra.local.cluster import discovery, errors, openapi
from infra.local.cluster.api import Answer, Api, Call
from infra.local.cluster.errors import ApiError
from infra.local.cluster.faults import Faults
from infra.local.cluster.filters import Caller, Filters
from infra.local.cluster.objects import RESOURCES, Objects
from infra.local.cluster.watch import Watches

_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


def application(api: Api, objects: Objects, watches: Watches, filters: Filters) -> Starlette:
    """Return the ASGI application."""
    faults = Faults()

    async def serve(request: Request) -> Response:
        if faulty := await faults.answer(request):
            return faulty
        try:
            call = await _call(request)
            user = filters.admit(_caller(request), call)
            found = _discovered(request) if request.method == "GET" else filters.answered(user, call)
            return _response(found or api.serve(call))
        except ApiError as error:
            return _response(Answer(code=error.code, body=error.status()))

    async def press(request: Request) -> Response:
        try:
            filters.admit(_caller(request), await _call(request))
            return _response(Answer(body=_press(orjson.loads(await request.body()), objects, watches, faults)))
        except ApiError as error:
            return _response(Answer(code=error.code, body=error.status()))

    async def healthy(_: Request) -> Response:
        return PlainTextResponse("ok")

    return Starlette(
        routes=[
            *(Route(path, healthy) for path in ("/healthz", "/readyz", "/livez")),
            Route("/local/faults", press, methods=["POST"]),
            Route("/{path:path}", serve, methods=_METHODS),
        ]
    )


def _discovered(request: Request) -> Answer | None:
    path = request.url.path
    if path == "/openapi/v2" and openapi.wants_gnostic(request.headers.get("accept", "")):
        return Answer(body=openapi.v2_protobuf(), media_type=openapi.GNOSTIC)
    found = discovery.answer(path)
    return None if found is None else Answer(body=found)


def _caller(request: Request) -> Caller:
    return Caller(headers=request.headers, secure=request.url.scheme == "https")


async def _call(request: Request) -> Call:
    return Call(
        method=request.method,
        path=request.url.path,
        params=dict(request.query_params),
        content_type=request.headers.get("content-type", "").partition(";")[0].strip(),
        accept=request.headers.get("accept", ""),
        body=await request.body(),
        agent=request.headers.get("user-agent", ""),
    )


def _response(answer: Answer) -> Response:
    if isinstance(answer.body, AsyncIterator):
        return StreamingResponse(answer.body, media_type=answer.media_type)
    body = answer.body if isinstance(answer.body, bytes) else orjson.dumps(answer.body)
    response = Response(body, status_code=answer.code, media_type=answer.media_type)
    for warning in answer.warnings:
        quoted = warning.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.append("Warning", f'299 - "{quoted}"')
    return response


def _press(wish: Mapping[str, Any], objects: Objects, watches: Watches, faults: Faults) -> dict[str, int]:
    """Inject a fault: `{"fault": "close-watches", "resource": "pods"}`; the resource is optional.

    Return how many watches it affected. Raise ApiError 422 for an unknown fault. For `answer` see `Fault`.
    """
    plural = wish.get("resource")
    buttons: Mapping[str, Callable[[], int]] = MappingProxyType(
        {
            "close-watches": lambda: watches.close(plural),
            "silence-watches": lambda: watches.silence(plural),
            "rewind-watches": lambda: watches.rewind(plural),
            "say-to-watches": lambda: watches.say(wish.get("text", "").encode(), plural),
            "answer": lambda: faults.add({key: value for key, value in wish.items() if key != "fault"}),
            "heal": faults.heal,
            "expire-history": lambda: _expire(objects),
        }
    )
    fault = wish.get("fault", "")
    if fault not in buttons or plural not in (None, *RESOURCES):
        why = f'Unsupported value: "{fault}": supported values: ' + ", ".join(buttons)
        cause = errors.FieldError("fault", "FieldValueNotSupported", why)
        raise errors.invalid("Fault", "local", "", [cause])
    return {"watches": buttons[fault]()}


def _expire(objects: Objects) -> int:
    objects.expire_history()
    return 0
