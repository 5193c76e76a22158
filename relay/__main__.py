"""`python -m relay`: prints `ready` once every list is in place; SIGTERM and SIGINT end it within seconds."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial

import structlog

from relay import cluster
from relay.claims import Claims
from relay.inbox import Inbox
from relay.ledger import Ledger
from relay.own_nodes import Marks
from relay.report import Outbox
from relay.service import Service
from relay.settings import Settings
from relay.tpu_provisioner import Neighbour
from relay.watch import Watch
from shared.adapters import logs
from shared.adapters.clock import SystemClock
from shared.adapters.pubsub import connect_publisher, publish
from shared.adapters.subscription import Subscription

_log = structlog.get_logger()

PUBLISH_SECONDS = 10.0
LAST_WORDS_SECONDS = 5.0
MESSAGES_AT_ONCE = 8


class Relay:
    """Every part, each in its thread. None is expected to end before it is told to: if one does, all do."""

    def __init__(self, settings: Settings) -> None:
        api = cluster.connect()
        calls, now = cluster.Cluster(api), SystemClock().now
        send = partial(publish, connect_publisher(), settings.topic, patience=PUBLISH_SECONDS)
        self._outbox = Outbox(send, random.Random())  # noqa: S311 - jitter, not a secret
        self._service = Service(Ledger(settings.cluster), now, Claims(calls, now).complete, self._outbox.post)
        self._watches = [
            Watch(source, self._service, settings.watch_silence, random.Random())  # noqa: S311 - as above
            for source in cluster.sources(api)
        ]
        self._marks = Marks(self._service.unmarked, calls, now)
        self._neighbour = Neighbour(calls, now)
        inbox = Inbox(settings.cluster, calls, self._service, self._outbox.post)
        self._subscription = Subscription(
            settings.subscription,
            MESSAGES_AT_ONCE,
            inbox.handle,
            random.Random(),  # noqa: S311 - as above
        )
        self._over = threading.Event()
        self._broken = False

    def run(self) -> int:
        """Run until a signal or until a part breaks; the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._over.set())
        beside = (self._outbox.run, self._announce, self._marks.run, self._neighbour.run)
        for part in (*beside, *(watch.run for watch in self._watches)):
            self._begin(part)
        serving = self._begin(self._service.run)
        self._over.wait()
        self._end(serving)
        return 1 if self._broken else 0

    def _announce(self) -> None:
        """Say `ready`, and listen to what we are asked: before, there is no picture to answer from."""
        self._service.wait_until_complete()
        if not self._over.is_set():
            sys.stdout.write("ready\n")
            sys.stdout.flush()
            self._subscription.run()

    def _end(self, serving: threading.Thread) -> None:
        """Close what comes in, then say what was gathered."""
        self._subscription.stop()
        for stop in (self._marks.stop, self._neighbour.stop, *(watch.stop for watch in self._watches)):
            stop()
        self._service.stop()
        serving.join(LAST_WORDS_SECONDS)
        if not self._outbox.close(LAST_WORDS_SECONDS):
            _log.warning("not-everything-was-said")

    def _begin(self, part: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=self._guarded, args=(part,), daemon=True)
        thread.start()
        return thread

    def _guarded(self, part: Callable[[], None]) -> None:
        try:
            part()
        except Exception:  # noqa: BLE001 - whatever it is: a relay with a dead part is worse than one that restarts
            _log.exception("part-broke")
            self._broken = True
            self._over.set()


def main() -> int:
    logs.configure()
    try:
        settings = Settings.read(os.environ)
    except ValueError as wrong:
        sys.stderr.write(f"relay: {wrong}\n")
        return 2
    return Relay(settings).run()


if __name__ == "__main__":
    sys.exit(main())
