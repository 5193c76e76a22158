"""The HTTP side: Starlette between uvicorn and the verbs."""

from collections.abc import AsyncIterator

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from infra.local.embedded.http import access
from infra.local.embedded.http.requests import Answer, read
from infra.local.embedded.http.verbs import Verbs
from infra.local.embedded.store.errors import ApiError


def application(verbs: Verbs) -> Starlette:
    """Return the ASGI application."""

    async def serve(request: Request) -> Response:
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
    response = Response(body, status_code=answer.code, media_type=answer.media_type)
    for warning in answer.warnings:
        response.headers.append("Warning", f'299 - "{warning}"')
    return response
