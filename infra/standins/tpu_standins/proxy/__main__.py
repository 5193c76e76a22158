"""`python -m tpu_standins.proxy --kubeconfig FILE --write FILE2`: until SIGTERM; prints its addresses on one line."""

import argparse
import asyncio
import secrets
import signal
import ssl
from datetime import UTC, datetime
from pathlib import Path

from aiohttp import web

from tpu_standins.certificates import certificates
from tpu_standins.kubeconfig import Endpoint, kubeconfig, write_private
from tpu_standins.proxy import upstream
from tpu_standins.proxy.buttons import application
from tpu_standins.proxy.forwarding import Forwarder

HOST = "127.0.0.1"
GRACE_SECONDS = 0.5


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tpu_standins.proxy", description="Faults before any API server.")
    parser.add_argument("--kubeconfig", type=Path, required=True, metavar="FILE", help="the API server, and as whom")
    parser.add_argument("--write", type=Path, required=True, metavar="FILE", help="write the proxy's kubeconfig here")
    parser.add_argument("--port", type=int, default=0, help="port of TLS; 0: any free port")
    parser.add_argument("--buttons-port", type=int, default=0, help="port of the HTTP buttons; 0: any free port")
    return parser.parse_args()


async def _listening(runner: web.BaseRunner, port: int, tls: ssl.SSLContext | None = None) -> str:
    """Serve on loopback; return the address."""
    await runner.setup()
    await web.TCPSite(runner, HOST, port, ssl_context=tls).start()
    return f"{'https' if tls else 'http'}://{HOST}:{runner.addresses[0][1]}"


async def _serve(arguments: argparse.Namespace) -> None:
    over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, over.set)
    own, token = certificates(HOST, datetime.now(UTC)), secrets.token_urlsafe(32)
    forwarder = Forwarder(upstream.of_kubeconfig(arguments.kubeconfig), token)
    server = web.Server(forwarder.answer, handler_cancellation=True, access_log=None)
    serving = web.ServerRunner(server, shutdown_timeout=GRACE_SECONDS)
    pressing = web.AppRunner(application(forwarder), access_log=None, shutdown_timeout=GRACE_SECONDS)
    try:
        address = await _listening(serving, arguments.port, own.context())
        buttons = await _listening(pressing, arguments.buttons_port)
        endpoint = Endpoint(address=address, authority=own.authority)
        write_private(arguments.write, kubeconfig(endpoint, {"token": token}))
        print(f"listening on {address} buttons {buttons}", flush=True)
        await over.wait()
    finally:
        forwarder.cut()
        for runner in (serving, pressing):
            await runner.cleanup()
        await forwarder.close()


if __name__ == "__main__":
    asyncio.run(_serve(_arguments()))
