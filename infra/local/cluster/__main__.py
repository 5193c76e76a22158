"""`python -m infra.local.cluster --port N`: the API server and the controllers, until SIGTERM.

It serves plain HTTP on one port, for the local parts, and TLS on another, where requests are authenticated by token.
"""

import argparse
import asyncio
import contextlib
import secrets
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import uvicorn

from infra.local.certificates import Certificates, certificates
from infra.local.cluster import controllers, rbac_defaults
from infra.local.cluster.api import Api
from infra.local.cluster.authentication import Authenticator, Keys
from infra.local.cluster.filters import Filters
from infra.local.cluster.kueue.controller import controller
from infra.local.cluster.kueue.settings import Settings
from infra.local.cluster.objects import Objects
from infra.local.cluster.server import application
from infra.local.cluster.watch import Watches
from infra.local.kubeconfig import Endpoint, kubeconfig, write_private

_HOST = "127.0.0.1"
_LONGEST = 10**9
"""In seconds; about thirty years."""


def _now() -> datetime:
    return datetime.now(UTC)


class _Server(uvicorn.Server):
    """One of two servers that stop together: the event loop, not the server, handles signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m infra.local.cluster", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port of plain HTTP; 0: any free port")
    parser.add_argument("--secure-port", type=int, default=0, help="port of TLS; 0: any free port")
    parser.add_argument("--kubeconfig", type=Path, help="write the administrator's kubeconfig to this file")
    parser.add_argument("--bookmark-seconds", type=float, default=60.0, help="interval of watch bookmarks")
    parser.add_argument("--window", type=int, default=2000, help="number of changes kept per resource")
    parser.add_argument("--no-controllers", action="store_true", help="serve only the API, without controllers")
    parser.add_argument(
        "--kueue-wait-for-pods-ready",
        type=_seconds,
        metavar="SECONDS",
        help="evict a Workload whose pods are not ready in time (Kueue's waitForPodsReady.timeout; default: off)",
    )
    return parser.parse_args()


def _seconds(text: str) -> timedelta:
    seconds = float(text)
    if not 0 < seconds < _LONGEST:
        raise argparse.ArgumentTypeError(f"{text} is not a valid number of seconds")
    return timedelta(seconds=seconds)


@contextlib.contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    # asyncio disables Nagle's algorithm only if the protocol is given: otherwise every response waits 40 ms.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((_HOST, port))
        listener.listen(1024)
        yield listener


class _Serving:
    """The API server on its two ports."""

    def __init__(self, arguments: argparse.Namespace, keys: Keys, own: Certificates) -> None:
        self.objects = Objects(_now, window=arguments.window)
        rbac_defaults.install(self.objects)
        self._watches = Watches(self.objects)
        api = Api(self.objects, self._watches, _now, arguments.bookmark_seconds)
        filters = Filters(self.objects, Authenticator(self.objects, _now, keys), _now)
        self._application = application(api, self.objects, self._watches, filters)
        self._servers = [_Server(self._config()), _Server(self._config(own))]

    def _config(self, own: Certificates | None = None) -> uvicorn.Config:
        return uvicorn.Config(
            self._application,
            log_level="error",
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=2,
            ssl_context_factory=None if own is None else lambda *_: own.context(),
        )

    async def run(self, listeners: list[socket.socket]) -> None:
        """Serve until `end` is called."""
        both = zip(self._servers, listeners, strict=True)
        await asyncio.gather(*(server.serve(sockets=[listener]) for server, listener in both))

    def end(self) -> None:
        """Stop, and end the open watches, for which uvicorn would wait."""
        for server in self._servers:
            server.should_exit = True
        self._watches.end()


async def _serve(serving: _Serving, listeners: list[socket.socket], queueing: Settings | None) -> None:
    """Serve until a signal arrives; without `queueing` there are no controllers."""
    loop = asyncio.get_running_loop()
    for ending in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(ending, serving.end)
    served = asyncio.create_task(serving.run(listeners))
    # Connections are accepted from listen() on, and served as soon as the event loop runs.
    print(f"listening on {_address('http', listeners[0])}", flush=True)
    if queueing is None:
        await served
        return
    running = asyncio.create_task(controllers.run(serving.objects, _now, controllers.Pace(), [controller(queueing)]))
    await asyncio.wait({served, running}, return_when=asyncio.FIRST_COMPLETED)
    serving.end()
    running.cancel()
    await served
    with contextlib.suppress(asyncio.CancelledError):
        await running


def _address(scheme: str, listener: socket.socket) -> str:
    return f"{scheme}://{_HOST}:{listener.getsockname()[1]}"


def main() -> None:
    arguments = _arguments()
    keys = Keys(signing=secrets.token_bytes(32), administrator=secrets.token_urlsafe(32))
    own = certificates(_HOST, _now())
    with ExitStack() as held:
        listeners = [held.enter_context(_listening(port)) for port in (arguments.port, arguments.secure_port)]
        if arguments.kubeconfig:
            endpoint = Endpoint(address=_address("https", listeners[1]), authority=own.authority)
            write_private(arguments.kubeconfig, kubeconfig(endpoint, {"token": keys.administrator}))
        serving = _Serving(arguments, keys, own)
        queueing = Settings(pods_ready_timeout=arguments.kueue_wait_for_pods_ready)
        asyncio.run(_serve(serving, listeners, None if arguments.no_controllers else queueing))


if __name__ == "__main__":
    main()
