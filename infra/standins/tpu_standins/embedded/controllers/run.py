"""The controllers, each in a thread of its own, and the store as they see it."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import wait
from datetime import datetime
from typing import Any, TypeVar

from tpu_standins.clients.objects import copied
from tpu_standins.clients.rounds import crew
from tpu_standins.clients.run import Program
from tpu_standins.embedded.controllers.job import AT_A_TIME, JobController
from tpu_standins.embedded.controllers.nodes import NodeController, Pace, collect
from tpu_standins.embedded.controllers.scheduler import Scheduler
from tpu_standins.embedded.store import patches
from tpu_standins.embedded.store.kinds import Key, Object
from tpu_standins.embedded.store.objects import Deletion, Objects
from tpu_standins.embedded.store.table import BUILT_IN
from tpu_standins.embedded.store.writes import Writes, bound

T = TypeVar("T")

_LOOK_SECONDS = 1.0
"""Until a thread that waits for the event loop looks whether all is over."""


class Local:
    """Implements `tpu_standins.clients.run.Changing` for other threads than the event loop's, which does all writes."""

    def __init__(self, objects: Objects, writes: Writes, clock: Callable[[], datetime]) -> None:
        self._objects = objects
        self._writes = writes
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._changed = threading.Condition()
        self._over = False
        objects.listeners.append(self._wake)

    @property
    def changes(self) -> int:
        return self._objects.version

    def wait_for_change(self, since: int, within: float) -> int:
        """Wait until the version is greater than `since`, for some seconds. Raise SystemExit once all is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or self._objects.version > since, within)
        if self._over:
            raise SystemExit
        return self._objects.version

    def end(self) -> None:
        self._over = True
        self._wake()

    def stored(self, plural: str, namespace: str | None = None) -> Sequence[Object]:
        return self._objects.stored(BUILT_IN[plural], namespace or "")

    def get(self, plural: str, namespace: str | None, name: str) -> Object:
        return copied(self._objects.get(BUILT_IN[plural], namespace or "", name))

    def create(self, plural: str, obj: Object) -> Object:
        return self._done(self._writes.create(BUILT_IN[plural], obj))

    def update(self, plural: str, obj: Object, *, status: bool = False) -> Object:
        return self._done(self._writes.update(BUILT_IN[plural], obj, status=status))

    def patch(self, plural: str, namespace: str | None, name: str, change: Object, *, status: bool = False) -> Object:
        kind, key = BUILT_IN[plural], Key(plural, namespace or "", name)
        return self._done(self._writes.change(kind, key, lambda old: patches.merge(old, change), status=status))

    def delete(
        self, plural: str, namespace: str | None, name: str, *,
        grace_seconds: int | None = None, propagation: str = "Background",
    ) -> None:  # fmt: skip
        how = Deletion(propagation=propagation, grace_seconds=grace_seconds)
        self._done(_called(lambda: self._objects.delete(BUILT_IN[plural], namespace or "", name, how)))

    def bind(self, pod: Object, node: str) -> Object:
        """Bind a pod to a node. Raise ApiError 409 if it is bound, or being deleted."""
        pods, target = BUILT_IN["pods"], {"target": {"name": node}}

        def put() -> Object:
            current = self._objects.get(pods, pod["metadata"]["namespace"], pod["metadata"]["name"])
            return self._objects.put(pods, bound(current, target, self._clock()))

        return self._done(_called(put))

    def _done(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what the event loop returns for it, or raise what it raises. Raise SystemExit once all is over."""
        if self._over:
            work.close()
            raise SystemExit
        done = asyncio.run_coroutine_threadsafe(work, self._loop)
        while not wait([done], _LOOK_SECONDS).done:
            if self._over:  # then the loop may have ended before it began this
                raise SystemExit
        return done.result()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


async def _called(do: Callable[[], T]) -> T:
    return do()


def started(objects: Objects, writes: Writes, clock: Callable[[], datetime]) -> Callable[[], None]:
    """Start each controller in a thread that ends with the process; return what ends them before."""
    local = Local(objects, writes, clock)
    jobs, scheduler = JobController(crew(AT_A_TIME)), Scheduler(local.bind)
    for each in (NodeController().reconcile, jobs.reconcile, scheduler.reconcile, collect):
        program = Program([each], Pace(), clock)
        threading.Thread(target=program.run, args=[local], name="controller", daemon=True).start()
    return local.end
