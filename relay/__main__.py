"""`python -m relay`: prints `ready` once every list is in place; SIGTERM and SIGINT end it within seconds.

While it runs it answers Kubernetes' probes (`relay.probe`), if a setting names their socket. It listens on no port.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import structlog
from kubernetes.client import ApiClient
from kubernetes.config import ConfigException

from relay import cluster
from relay.agenda import SteadyClock, rising_pause
from relay.connection import connect
from relay.ending import end
from relay.fact_queue import FactQueue
from relay.gangs.opener import Opener
from relay.health import Health, Limits, Probes
from relay.inbox import Inbox
from relay.kueue.calls import KueueCalls
from relay.kueue.keeper import CheckKeeper
from relay.lookups.threads import Lookups, VolumeLookups
from relay.lookups.users import Looks
from relay.messages import noted
from relay.mirror.calls import MirrorCalls
from relay.mirror.writer import MirrorWriter
from relay.node_groups.calls import SelfManagedCluster
from relay.node_groups.evictor import Evictor
from relay.node_groups.keeper import NodeGroupKeeper
from relay.node_groups.labeler import NodeLabeler
from relay.node_patcher import NodePatcher
from relay.notices.gangs import GangsTold
from relay.notices.gating import GatingCheck
from relay.notices.held_back import HeldBackTold
from relay.notices.legacy_provisioner import TPU_OPERATOR, TPU_PROVISIONER, LegacyProvisionerCheck
from relay.notices.pinning import PinningCheck
from relay.notices.unserved import OwnersTold
from relay.outbox import Outbox
from relay.relay import Relay
from relay.settings import Settings
from relay.watch import GARBAGE_AFTER, Patience, Watch
from tpu_slices.adapters import logs
from tpu_slices.adapters.clock import SystemClock
from tpu_slices.adapters.pubsub import connect_publisher, publish
from tpu_slices.adapters.subscription import Subscription
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.ports.publisher import AnyMirror

_log = structlog.get_logger()

PUBLISH_SECONDS = 10.0
LAST_WORDS_SECONDS = 5.0
SIGNAL_SECONDS = 0.5
"""How late a signal is noticed at most: one that comes as the main thread begins to wait does not wake it."""
MESSAGES_AT_ONCE = 8


class Process:
    """Runs every part in a thread of its own. A part that fails with an exception ends the process."""

    def __init__(self, settings: Settings) -> None:
        api, chance = connect(), random.Random()  # noqa: S311 - jitter, not a secret
        calls, now = SelfManagedCluster(api), SteadyClock(datetime.now(UTC), time.monotonic).now
        self._health = Health(now, _limits(settings))
        self._self_managed = bool(settings.hosts_in)
        once = min(PUBLISH_SECONDS, settings.publish_patience)
        send = partial(publish, connect_publisher(once), settings.topic, patience=once)
        self._outbox = Outbox(noted(send), chance, now, self._health)
        self._lookups = Lookups(VolumeLookups(calls, now), Looks(calls, lambda: datetime.now(UTC)), self._health)
        self._pinning, self._gating = PinningCheck(calls), GatingCheck(calls)
        queue = FactQueue(settings.cluster, pinning=lambda: self._pinning.seen)
        self._mirror = MirrorWriter(settings.cluster, MirrorCalls(api), now)
        queue.mirrored, queue.gating = lambda: self._mirror.digest, lambda: self._gating.seen
        queue.reservations.forget()
        self._relay = Relay(queue, now, self._lookups.begin, self._outbox.post, self._health)
        self._outbox.demand_expired = self._relay.ask
        self._held_back = HeldBackTold(self._relay.held_back, calls, now)
        self._opener, self._gangs = Opener(calls, now, self._health), GangsTold(calls, now)
        self._relay.gates.open, self._relay.gates.tell = self._opener.want, self._gangs.tell
        self._owners = OwnersTold(calls, now, self._health, self._relay.unserved, settings.vendor)
        self._kueue = KueueCalls(api, calls)
        self._checks = CheckKeeper(self._kueue, self._relay, now, self._health)
        self._watches = self._watches_of(settings, api, chance)
        self._patcher = NodePatcher(self._relay.needed_patches, calls, now)
        self._keeper = NodeGroupKeeper(self._relay.groups_not_held, calls, now)
        self._evictor = Evictor(self._relay.needed_evictions, calls, self._relay.evicted)
        self._labeler = NodeLabeler(calls, now)
        if settings.hosts_in:
            self._relay.nodes_expected = self._labeler.expect
        other = TPU_OPERATOR if settings.hosts_in else TPU_PROVISIONER
        self._legacy_check = LegacyProvisionerCheck(calls, SystemClock().now, other)
        inbox = Inbox(settings.cluster, calls, self._relay, self._outbox.post, SystemClock().now)
        inbox.forgets_nodes = self._self_managed
        inbox.mirror = self._show
        self._subscriptions = [
            Subscription(each, MESSAGES_AT_ONCE, inbox.handle, chance) for each in settings.subscriptions
        ]
        self._probes = _probes(settings, self._health)
        self._over = threading.Event()
        self._broken = False

    def _watches_of(self, settings: Settings, api: ApiClient, chance: random.Random) -> list[Watch[Any, Any]]:
        patience = Patience(settings.watch_silence, time.monotonic)
        sources = cluster.sources(api, hosts_in=settings.hosts_in, serves_pods=bool(settings.serve))
        unscheduled = cluster.unscheduled(api, settings.vendor, settings.serve)
        return [
            *(Watch(source, self._relay.put, patience, chance) for source in sources),
            Watch(unscheduled, self._owners.put, patience, chance),
            *(Watch(each, self._checks.put, patience, chance) for each in self._kueue.sources(self._checks.is_asked)),
        ]

    def _show(self, told: AnyMirror) -> None:
        """Have what the functions told shown, by the mirror and in admission checks."""
        self._mirror.put(told)
        self._checks.tell(told)

    def run(self) -> int:
        """Run until a signal or until a part fails; return the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._over.set())
        parts = [self._outbox.run, self._lookups.run_demand, self._lookups.run_looks]
        parts += [self._keeper.run, self._evictor.run, self._labeler.run] if self._self_managed else []
        parts += [self._announce, self._patcher.run, self._legacy_check.run, self._owners.run, self._pinning.run]
        parts += [self._held_back.run, self._mirror.run, self._opener.run, self._gangs.run, self._checks.run]
        parts.append(self._gating.run)
        if self._probes is not None:
            parts.append(self._probes.run)
        for part in (*parts, *(watch.run for watch in self._watches)):
            self._begin(part)
        serving = self._begin(self._relay.run)
        while not self._over.wait(SIGNAL_SECONDS):
            continue
        self._end(serving)
        return 1 if self._broken else 0

    def _announce(self) -> None:
        """Print `ready` and serve the subscriptions, once the cluster cache is complete: some answers come from it."""
        self._relay.wait_until_complete()
        if not self._over.is_set():
            sys.stdout.write("\nready\n")  # on a line of its own, also if another thread is writing a line of the log
            sys.stdout.flush()
            for each in self._subscriptions:
                self._begin(partial(self._listen, each))

    def _listen(self, subscription: Subscription) -> None:
        """Serve a subscription until the relay ends. Facts are published even while it is interrupted."""
        failures = 0
        while not self._over.is_set():
            try:
                subscription.run()
            except Exception:  # noqa: BLE001 - the client's threads may raise anything
                _log.exception(LogEvent.SUBSCRIPTION_INTERRUPTED, subscription=subscription.path)
            failures += 1
            self._over.wait(rising_pause(1.0, failures))

    def _end(self, serving: threading.Thread) -> None:
        """Stop all input, then publish what was gathered."""
        for stop in (
            *(each.stop for each in self._subscriptions),
            self._patcher.stop,
            self._keeper.stop,
            self._evictor.stop,
            self._labeler.stop,
            self._legacy_check.stop,
            self._pinning.stop,
            self._gating.stop,
            self._held_back.stop,
            self._opener.stop,
            self._gangs.stop,
            self._mirror.stop,
            self._checks.stop,
            self._owners.stop,
            *(watch.stop for watch in self._watches),
        ):
            stop()
        self._relay.stop()
        serving.join(LAST_WORDS_SECONDS)
        if not self._outbox.close(LAST_WORDS_SECONDS):
            _log.warning(LogEvent.OUTBOX_ABANDONED)
        if self._probes is not None:
            self._probes.stop()

    def _begin(self, part: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=self._guarded, args=(part,), daemon=True)
        thread.start()
        return thread

    def _guarded(self, part: Callable[[], None]) -> None:
        try:
            part()
        except Exception:  # noqa: BLE001 - a relay with a dead thread is worse than one that restarts
            _log.exception(LogEvent.THREAD_FAILED)
            self._broken = True
            self._over.set()


def _limits(settings: Settings) -> Limits:
    patience = timedelta(seconds=settings.publish_patience)
    return Limits(silence=timedelta(seconds=settings.watch_silence), publishing=patience)


def _probes(settings: Settings, health: Health) -> Probes | None:
    """Return the probes' server; None if there is to be none, or if its socket is taken.

    The relay then runs without it: a probe gets its answer from the process that has the socket.
    """
    if not settings.probe_socket:
        return None
    try:
        probes = Probes(settings.probe_socket, {"readyz": health.unready, "livez": health.hung})
    except OSError as taken:
        _log.error(LogEvent.PROBES_FAILED, socket=settings.probe_socket, error=str(taken))
        return None
    _log.info(LogEvent.PROBES_STARTED, socket=settings.probe_socket)
    return probes


def main() -> int:
    gc.set_threshold(*GARBAGE_AFTER)
    try:
        settings = Settings.read(os.environ)
        logs.configure(settings.project, settings.version)
        relay = Process(settings)
    except (ValueError, ConfigException) as wrong:
        sys.stderr.write(f"relay: {wrong}\n")
        return 2
    return relay.run()


if __name__ == "__main__":
    end(main())
