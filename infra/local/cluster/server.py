"""The HTTP side: Starlette between uvicorn and the API, and the buttons tests may press."""

from collections.abc import AsyncIterator, Callable, Mapping
from types import MappingProxyType

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from infra.local.cluster import discovery, errors
from infra.local.cluster.api import Answer, Api, Call
from infra.local.cluster.errors import ApiError
from infra.local.cluster.objects import RESOURCES, Objects
from infra.local.cluster.watch import Watches

_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
_JSON = "application/json"


def application(api: Api, objects: Objects, watches: Watches) -> Starlette:
    """Make the ASGI application."""

    async def serve(request: Request) -> Response:
        try:
            found = discovery.answer(request.url.path) if request.method == "GET" else None
            return _response(Answer(body=found) if found is not None else api.serve(await _call(request)))
        except ApiError as error:
            return _response(Answer(code=error.code, body=error.status()))

    async def press(request: Request) -> Response:
        try:
            return _response(Answer(body=_press(orjson.loads(await request.body()), objects, watches)))
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


async def _call(request: Request) -> Call:
    return Call(
        method=request.method,
        path=request.url.path,
        params=dict(request.query_params),
        content_type=request.headers.get("content-type", "").partition(";")[0].strip(),
        accept=request.headers.get("accept", ""),
        body=await request.body(),
    )


def _response(answer: Answer) -> Response:
    if isinstance(answer.body, AsyncIterator):
        return StreamingResponse(answer.body, media_type=_JSON)
    response = Response(orjson.dumps(answer.body), status_code=answer.code, media_type=_JSON)
    for warning in answer.warnings:
        quoted = warning.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.append("Warning", f'299 - "{quoted}"')
    return response


def _press(wish: Mapping[str, str], objects: Objects, watches: Watches) -> dict[str, int]:
    """Press a button: `{"fault": "close-watches", "resource": "pods"}`; the resource may be left out.

    Answers how many watches it met. ApiError 422 for a button that does not exist.
    """
    plural = wish.get("resource")
    buttons: Mapping[str, Callable[[], int]] = MappingProxyType(
        {
            "close-watches": lambda: watches.close(plural),
            "silence-watches": lambda: watches.silence(plural),
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
