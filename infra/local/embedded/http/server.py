"""The HTTP side: Starlette between uvicorn and the verbs."""

from collections.abc import AsyncIterator

import orjson
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from infra.local.embedded.http import rbac
from infra.local.embedded.http.requests import Answer, read
from infra.local.embedded.http.verbs import Verbs
from infra.local.embedded.store.errors import ApiError

_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
_HEALTH = ("/healthz", "/readyz", "/livez")


def application(verbs: Verbs) -> Starlette:
    """Return the ASGI application."""

    async def serve(request: HttpRequest) -> Response:
        try:
            user = verbs.tokens.user(request.headers.get("authorization", ""))
            body = await request.body()
            asked = read(request.method, request.url.path, dict(request.query_params), request.headers, body)
            rbac.require(verbs.objects, user, asked)
            if asked.path in _HEALTH:
                return PlainTextResponse("ok")
            return _response(await verbs.serve(asked))
        except ApiError as error:
            return _response(Answer(code=error.code, body=error.status()))

    return Starlette(routes=[Route("/{path:path}", serve, methods=_METHODS)])


def _response(answer: Answer) -> Response:
    if isinstance(answer.body, AsyncIterator):
        return StreamingResponse(answer.body, media_type=answer.media_type)
    body = answer.body if isinstance(answer.body, bytes) else orjson.dumps(answer.body)
    response = Response(body, status_code=answer.code, media_type=answer.media_type)
    for warning in answer.warnings:
        response.headers.append("Warning", f'299 - "{warning}"')
    return response
