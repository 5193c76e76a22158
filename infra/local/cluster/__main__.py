"""`python -m infra.local.cluster --port N`: the API server and the controllers, until SIGTERM."""

import argparse
import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import uvicorn

from infra.local.cluster import controllers
from infra.local.cluster.api import Api
from infra.local.cluster.kubeconfig import write_kubeconfig
from infra.local.cluster.objects import Objects
from infra.local.cluster.server import application
from infra.local.cluster.watch import Watches

_HOST = "127.0.0.1"


def _now() -> datetime:
    return datetime.now(UTC)


class _Server(uvicorn.Server):
    """Ends the open watches on a signal: uvicorn would wait for them."""

    def __init__(self, config: uvicorn.Config, end: Callable[[], object]) -> None:
        super().__init__(config)
        self._end = end

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._end()
        super().handle_exit(sig, frame)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m infra.local.cluster", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--kubeconfig", type=Path, help="write a kubeconfig to this file")
    parser.add_argument("--bookmark-seconds", type=float, default=60.0, help="how often watches send one")
    parser.add_argument("--window", type=int, default=2000, help="changes remembered for each resource")
    parser.add_argument("--no-controllers", action="store_true", help="serve the API alone: nothing happens by itself")
    return parser.parse_args()


@contextlib.contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    # asyncio turns off Nagle only where the protocol is said: without it every answer waits 40 ms.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((_HOST, port))
        listener.listen(1024)
        yield listener


async def _serve(arguments: argparse.Namespace, listener: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    objects = Objects(_now, window=arguments.window)
    watches = Watches(objects)
    api = Api(objects, watches, _now, arguments.bookmark_seconds)
    config = uvicorn.Config(
        application(api, objects, watches),
        log_level="error",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=2,
    )
    # The signal comes in the middle of anything: the watches are ended by the loop.
    server = _Server(config, lambda: loop.call_soon_threadsafe(watches.close))
    address = f"http://{_HOST}:{listener.getsockname()[1]}"
    if arguments.kubeconfig:
        write_kubeconfig(arguments.kubeconfig, address)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    # Connections are accepted from listen() on and served as soon as the loop turns.
    print(f"listening on {address}", flush=True)
    if arguments.no_controllers:
        await serving
        return
    running = asyncio.create_task(controllers.run(objects, _now, controllers.Pace()))
    await asyncio.wait({serving, running}, return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        server.should_exit = True
        watches.close()
    running.cancel()
    await serving
    with contextlib.suppress(asyncio.CancelledError):
        await running


def main() -> None:
    arguments = _arguments()
    with _listening(arguments.port) as listener:
        asyncio.run(_serve(arguments, listener))


if __name__ == "__main__":
    main()
