"""`python -m relay.webhook`: prints `listening on https://HOST:PORT` once it serves; a signal ends it."""

from __future__ import annotations

import os
import signal
import ssl
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

import structlog
from kubernetes.config import ConfigException

from relay.connection import connect
from relay.ending import end
from relay.webhook.calls import Calls
from relay.webhook.certificates import Certificates
from relay.webhook.server import Server, Webhook
from relay.webhook.settings import Settings
from tpu_slices.adapters import logs
from tpu_slices.ports.log_events import LogEvent

_log = structlog.get_logger()

SIGNAL_SECONDS = 0.5
"""How late a signal is noticed at most: one that comes as the main thread begins to wait does not wake it."""
LAST_ANSWERS_SECONDS = 10.0


class Process:
    """Keeps the certificates in one thread, and serves in another. If one of them ends by itself, the process does."""

    def __init__(self, settings: Settings) -> None:
        """Raise ConfigException without an API server, OSError if the address is taken."""
        self._settings = settings
        self._webhook = Webhook(settings.options)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        calls = Calls(connect(), settings.namespace)
        self._server = Server(self._webhook, settings.address, context)
        self._certificates = Certificates(calls, settings.names, lambda: datetime.now(UTC), context, settings.life)
        self._over = threading.Event()
        self._broken = False

    def run(self) -> int:
        """Run until a signal, or until a part fails; return the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._over.set())
        self._begin(self._certificates.run)
        serving = self._begin(self._serve)
        while not self._over.wait(SIGNAL_SECONDS):
            continue
        self._webhook.is_ending = True
        if self._certificates.usable.is_set() and not self._broken:
            time.sleep(self._settings.drain_seconds)
        self._certificates.stop()
        self._server.stop()
        serving.join(LAST_ANSWERS_SECONDS)
        return 1 if self._broken else 0

    def _serve(self) -> None:
        """Serve as soon as there is a certificate."""
        while not self._certificates.usable.wait(SIGNAL_SECONDS):
            if self._over.is_set():
                return
        sys.stdout.write(f"listening on https://{self._settings.address[0]}:{self._server.port}\n")
        sys.stdout.flush()
        self._server.run()

    def _begin(self, part: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=self._guarded, args=(part,), daemon=True)
        thread.start()
        return thread

    def _guarded(self, part: Callable[[], None]) -> None:
        """Run a part, and end the process with it: Kubernetes starts it again."""
        try:
            part()
        except Exception:  # noqa: BLE001 - whatever it is, without this part the webhook is of no use
            _log.exception(LogEvent.THREAD_FAILED)
            self._broken = True
        self._over.set()


def main() -> int:
    try:
        settings = Settings.read(os.environ)
        logs.configure(settings.project, settings.version)
        process = Process(settings)
    except (ValueError, OSError, ConfigException) as wrong:
        sys.stderr.write(f"webhook: {wrong}\n")
        return 2
    return process.run()


if __name__ == "__main__":
    end(main())
