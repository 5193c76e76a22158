"""One request: answered by a fault, or passed on to the API server."""

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial

import aiohttp
from aiohttp import web
from yarl import URL

from tpu_standins.proxy import faults
from tpu_standins.proxy.faults import Asked, Fault
from tpu_standins.proxy.upstream import Upstream
from tpu_standins.proxy.watches import OpenWatch, Turn, Watches

_OF_ONE_CONNECTION = frozenset(
    ("connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "host")
)
"""Headers that are not passed on (RFC 9110, section 7.6.1)."""

_NEVER = aiohttp.ClientTimeout(total=None)
Again = Callable[[], AbstractAsyncContextManager[aiohttp.ClientResponse]]
Ask = Callable[[URL], AbstractAsyncContextManager[aiohttp.ClientResponse]]


class Forwarder:
    """Answers requests. `token`: who shows it has the rights of the kubeconfig's user; others have their own."""

    def __init__(self, upstream: Upstream, token: str) -> None:
        self._upstream = upstream
        self._token = token
        self._sessions = {as_user: _session(upstream.trust(as_user=as_user)) for as_user in (True, False)}
        self._connections: set[asyncio.Transport] = set()
        self.watches = Watches()
        self.faults: tuple[Fault, ...] = ()

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()

    def cut(self) -> int:
        """Cut all connections that wait for an answer or watch; return how many."""
        cut = list(self._connections)
        for connection in cut:
            connection.abort()
        return len(cut)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request. Where the API server does not answer, or no longer, the connection is lost."""
        connection = request.transport
        assert isinstance(connection, asyncio.Transport)
        self._connections.add(connection)
        try:
            return await self._answered(request)
        except (aiohttp.ClientError, OSError):
            connection.abort()
            return web.Response(status=502)
        finally:
            self._connections.discard(connection)

    async def _answered(self, request: web.BaseRequest) -> web.StreamResponse:
        asked = Asked(
            method=request.method,
            path=request.path,
            query=request.query,
            authorization=request.headers.get("Authorization", ""),
        )
        self.faults, fault = faults.struck(faults.in_force(self.faults, time.monotonic()), asked)
        if fault is not None:
            await asyncio.sleep(fault.seconds)
            if fault.code:
                return _response(fault)
        ask = await self._ask(request, asked)
        url = URL(self._upstream.address + request.raw_path, encoded=True)
        if not asked.watches:
            async with ask(url) as answer:
                return await _passed_on(request, answer)
        with self.watches.opened(asked.segments) as one:
            return await _watched(request, partial(ask, url), partial(ask, url.update_query(resourceVersion="0")), one)

    async def _ask(self, request: web.BaseRequest, asked: Asked) -> Ask:
        """Return the same request to an URL of the API server, which may be made again."""
        headers = _passing(request.headers)
        as_user = asked.authorization == f"Bearer {self._token}"
        if as_user:
            del headers["Authorization"]
            if own := self._upstream.authorization():
                headers["Authorization"] = own
        return partial(
            self._sessions[as_user].request,
            request.method,
            headers=headers,
            data=await request.content.read() or None,
            allow_redirects=False,
            server_hostname=self._upstream.server_name,
        )


def _session(trust: ssl.SSLContext) -> aiohttp.ClientSession:
    """Return a client that changes nothing; a connection for each request: none is found closed when it is used."""
    connector = aiohttp.TCPConnector(ssl=trust, limit=0, force_close=True)
    skipped = ("User-Agent", "Accept-Encoding", "Accept", "Content-Type")
    return aiohttp.ClientSession(
        connector=connector, timeout=_NEVER, auto_decompress=False, skip_auto_headers=skipped, trust_env=False
    )


def _passing(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _OF_ONE_CONNECTION}


def _response(fault: Fault) -> web.Response:
    headers = {"Retry-After": str(fault.retry_after)} if fault.retry_after else None
    if fault.text is not None:
        return web.Response(text=fault.text, status=fault.code, headers=headers)
    return web.json_response(fault.status(), status=fault.code, headers=headers)


async def _begun(request: web.BaseRequest, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, reason=answer.reason)
    for name, value in answer.headers.items():
        if name.lower() not in _OF_ONE_CONNECTION:
            response.headers.add(name, value)
    await response.prepare(request)
    return response


async def _passed_on(request: web.BaseRequest, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    response = await _begun(request, answer)
    async for piece in answer.content.iter_any():
        await response.write(piece)
    await response.write_eof()
    return response


async def _watched(request: web.BaseRequest, first: Again, rewound: Again, one: OpenWatch) -> web.StreamResponse:
    """Stream a watch; when it is rewound, the same response goes on with all there is, in its old versions."""
    async with first() as answer:
        if answer.status != web.HTTPOk.status_code:
            return await _passed_on(request, answer)
        response = await _begun(request, answer)
        turn = await _streamed(answer, one, response)
    while turn is Turn.REWIND:
        async with rewound() as again:
            turn = await _streamed(again, one, response)
    if turn is Turn.BREAK:
        raise ConnectionResetError("the API server was lost")
    await response.write_eof()
    return response


async def _streamed(answer: aiohttp.ClientResponse, one: OpenWatch, response: web.StreamResponse) -> Turn:
    """Send what the API server and the buttons say, until a turn."""
    hearing = asyncio.create_task(one.hear(answer.content.iter_any()))
    try:
        async for item in one.told():
            if isinstance(item, Turn):
                return item
            await response.write(item)
        return Turn.END
    finally:
        hearing.cancel()
