"""`python -m tpu_standins.embedded --port N --kubeconfig FILE`: the API server and its controllers, until SIGTERM.

It serves TLS on loopback only, and writes the administrator's kubeconfig.
"""

import argparse
import asyncio
import contextlib
import signal
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import uvicorn

from tpu_standins.certificates import certificates
from tpu_standins.embedded.controllers.run import started
from tpu_standins.embedded.http.verbs import Verbs, application
from tpu_standins.embedded.store.objects import Objects
from tpu_standins.kubeconfig import Endpoint, kubeconfig, write_private

_HOST = "127.0.0.1"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tpu_standins.embedded", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port of TLS; 0: any free port")
    parser.add_argument("--kubeconfig", type=Path, required=True, help="write the administrator's kubeconfig here")
    parser.add_argument("--bookmark-seconds", type=float, default=60.0, help="interval of watch bookmarks")
    parser.add_argument("--window", type=int, default=2000, help="number of changes kept per kind")
    parser.add_argument("--no-controllers", action="store_true", help="serve only the API, without controllers")
    return parser.parse_args()


def _now() -> datetime:
    return datetime.now(UTC)


IDLE_SECONDS = 90
"""Until a connection without requests is closed, as kube-apiserver does (k8s.io/apiserver, `secure_serving.go`).

With uvicorn's 5 seconds, a client that pauses for as long sends a request as the connection is closed.
"""


class _Server(uvicorn.Server):
    """Leaves signals to the event loop."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _serve(arguments: argparse.Namespace, listener: socket.socket) -> None:
    """Serve until a signal arrives."""
    own, address = certificates(_HOST, _now()), f"https://{_HOST}:{listener.getsockname()[1]}"
    objects = Objects(_now, window=arguments.window)
    verbs = Verbs(objects, _now, arguments.bookmark_seconds, own.authority.decode())
    await verbs.begin()
    serving = uvicorn.Config(
        application(verbs), log_level="error", access_log=False, lifespan="off", timeout_keep_alive=IDLE_SECONDS
    )
    serving.timeout_graceful_shutdown = 2
    serving.ssl_context_factory = lambda *_: own.context()
    server = _Server(serving)

    def end() -> None:
        server.should_exit = True
        verbs.streams.end()

    for ending in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(ending, end)
    endpoint = Endpoint(address=address, authority=own.authority)
    write_private(arguments.kubeconfig, kubeconfig(endpoint, {"token": verbs.tokens.administrator}))
    end_controllers = None if arguments.no_controllers else started(verbs.objects, verbs.writes, _now)
    # Connections are accepted from listen() on, and served as soon as the event loop runs.
    print(f"listening on {address}", flush=True)
    await server.serve(sockets=[listener])
    if end_controllers:
        end_controllers()


def main() -> None:
    arguments = _arguments()
    # asyncio disables Nagle's algorithm only if the protocol is given: otherwise every response waits 40 ms.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((_HOST, arguments.port))
        listener.listen(1024)
        asyncio.run(_serve(arguments, listener))


if __name__ == "__main__":
    main()
