"""The webhook's HTTPS server: uvicorn on one port.

| path                  | answer                                                                            |
|-----------------------|-----------------------------------------------------------------------------------|
| `/pods`, `/workloads` | the AdmissionReview that answers the one posted                                   |
| `/healthz`            | 200                                                                               |
| `/readyz`             | 200; 503 once it is about to end                                                  |
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from relay.webhook.placing import Options
from relay.webhook.reviews import answer

MOST_BYTES = 8 << 20
"""Of a review: etcd takes 1.5 MiB for an object, and requests may have 3 MiB."""
IDLE_SECONDS = 180
"""After which an idle connection is closed. The API server closes its own after 90 s, so that no request of its
meets one that is being closed (k8s.io/client-go rest: the transport's IdleConnTimeout)."""
ASKED_WITHIN = 15.0
"""Seconds in which a new connection has to ask, and a review to be complete: each takes memory meanwhile."""

_Message = MutableMapping[str, Any]
_Answer = tuple[HTTPStatus, bytes]


class Webhook:
    """An ASGI application. Judging a pod takes well below a millisecond, so that nothing waits for it."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.is_ending = False
        """Whether connections are closed after the answer, so that the API server turns to another replica."""

    async def __call__(
        self,
        scope: _Message,
        receive: Callable[[], Awaitable[_Message]],
        send: Callable[[_Message], Awaitable[None]],
    ) -> None:
        status, body = await self._answered(scope, receive)
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if self.is_ending:
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": status.value, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answered(self, scope: _Message, receive: Callable[[], Awaitable[_Message]]) -> _Answer:
        match scope["method"], scope["path"]:
            case "POST", "/pods" | "/workloads":
                try:
                    return self._judged(await _body(receive))
                except TimeoutError:
                    return HTTPStatus.REQUEST_TIMEOUT, b"{}"
            case "GET", "/healthz":
                return HTTPStatus.OK, b"{}"
            case "GET", "/readyz":
                return HTTPStatus.SERVICE_UNAVAILABLE if self.is_ending else HTTPStatus.OK, b"{}"
            case _:
                return HTTPStatus.NOT_FOUND, b"{}"

    def _judged(self, review: bytes | None) -> _Answer:
        if review is None:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, b"{}"
        try:
            return HTTPStatus.OK, answer(review, self._options)
        except ValueError:
            return HTTPStatus.BAD_REQUEST, b"{}"


async def _body(receive: Callable[[], Awaitable[_Message]]) -> bytes | None:
    """Return a request's body; None: it is too long. Raise TimeoutError."""
    parts, size, more = list[bytes](), 0, True
    async with asyncio.timeout(ASKED_WITHIN):
        while more:
            message = await receive()
            part, more = message.get("body", b""), message.get("more_body", False)
            size += len(part)
            if size > MOST_BYTES:
                return None
            parts.append(part)
    return b"".join(parts)


class _Connection(H11Protocol):
    """A connection that is closed unless it asks in time."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn declares it
        super().connection_made(transport)
        self.loop.call_later(ASKED_WITHIN, self._close_unless_asked)

    def _close_unless_asked(self) -> None:
        asked = cast("RequestResponseCycle | None", self.cycle)
        if asked is None:
            self.transport.close()


class Server:
    """Serves a webhook at an address until `stop`. The constructor raises OSError if the address is taken."""

    def __init__(self, webhook: Webhook, address: tuple[str, int], context: ssl.SSLContext) -> None:
        self._socket = socket.create_server(address, backlog=1024)
        # Connections have it from the listening socket. Without it, each answer waits 40 ms for an acknowledgement.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            webhook,
            loop="asyncio",
            http=_Connection,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=IDLE_SECONDS,
            ssl_context_factory=lambda _config, _default: context,
        )
        self._server = uvicorn.Server(config)

    def run(self) -> None:
        """Serve until `stop`: what was asked until then is answered."""
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # not a line for each connection that is no HTTP
        self._server.run([self._socket])

    def stop(self) -> None:
        """End `run`, from another thread."""
        self._server.should_exit = True
