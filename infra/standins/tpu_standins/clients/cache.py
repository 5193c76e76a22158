"""The objects of some kinds, kept up to date by watches: what controllers see of a cluster."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

from tpu_standins.clients.api import Api
from tpu_standins.clients.errors import ApiError
from tpu_standins.clients.kinds import KINDS, Kind
from tpu_standins.clients.memory import Memory
from tpu_standins.clients.objects import Object, copied
from tpu_standins.clients.watch import Watch
from tpu_standins.patience import PATIENCE_SECONDS

Selection = Mapping[str, str]
"""Selectors by their names in URLs: labelSelector, fieldSelector."""

_ALL: Selection = MappingProxyType({})
_ENDS_WITHIN = 2.0
"""Seconds, for all watches together."""


class NotListed(Exception):
    """A kind could not be listed in time; says why, for the user."""


class Cache:
    """Implements `Objects`: reads of the watched kinds are answered from memory, all else asks the server.

    Use `watching`. It may be used from several threads.
    """

    def __init__(self, api: Api, kinds: Mapping[str, Selection]) -> None:
        self._api = api
        self._memories = {plural: Memory(KINDS[plural]) for plural in kinds}
        self._watches = [Watch(api, KINDS[plural], self, selection) for plural, selection in kinds.items()]
        self._changing = threading.Condition()
        self._failures: dict[str, Exception] = {}
        self._changes = 0

    def start(self) -> None:
        for each in self._watches:
            each.start()

    def stop(self) -> None:
        """End the watches: whoever closes the API's connections after this closes all, unless the server hangs."""
        for each in self._watches:
            each.stop()
        deadline = time.monotonic() + _ENDS_WITHIN
        for each in self._watches:
            each.ended(max(0.0, deadline - time.monotonic()))

    def wait_until_listed(self, within: float) -> None:
        """Wait until all kinds are known. Raises NotListed after so many seconds."""
        with self._changing:
            if not self._changing.wait_for(lambda: not self._unlisted(), within):
                missing = self._unlisted()
                why = "; ".join(sorted({str(self._failures.get(plural, "no answer")) for plural in missing}))
                raise NotListed(f"cannot list {', '.join(missing)} in {within:g} s: {why}")

    def _unlisted(self) -> list[str]:
        return [plural for plural, memory in self._memories.items() if memory.version < 0]

    @property
    def changes(self) -> int:
        """Return how many changes there were."""
        with self._changing:
            return self._changes

    def wait_for_change(self, since: int, within: float) -> int:
        """Wait until there are more changes than `since`, at most for so many seconds; return how many."""
        with self._changing:
            self._changing.wait_for(lambda: self._changes > since, within)
            return self._changes

    def stored(self, plural: str, namespace: str | None = None) -> Sequence[Object]:
        with self._changing:
            return self._memories[plural].all(namespace)

    def get(self, plural: str, namespace: str | None, name: str) -> Object:
        if plural not in self._memories:
            return self._api.get(plural, namespace, name)
        with self._changing:
            found = self._memories[plural].get(namespace, name)
        if found is None:
            raise ApiError(404, "NotFound", f'{plural} "{name}" not found')
        return copied(found)

    def create(self, plural: str, obj: Object) -> Object:
        return self._written(plural, self._api.create(plural, obj))

    def update(self, plural: str, obj: Object, *, status: bool = False) -> Object:
        return self._written(plural, self._api.update(plural, obj, status=status))

    def patch(self, plural: str, namespace: str | None, name: str, change: Object, *, status: bool = False) -> Object:
        return self._written(plural, self._api.patch(plural, namespace, name, change, status=status))

    def delete(
        self,
        plural: str,
        namespace: str | None,
        name: str,
        *,
        grace_seconds: int | None = None,
        propagation: str = "Background",
    ) -> None:
        answer = self._api.delete(plural, namespace, name, grace_seconds=grace_seconds, propagation=propagation)
        if plural in self._memories:
            with self._noting() as noted:
                noted.append(self._memories[plural].deleted((namespace or "", name), answer))

    def listed(self, kind: Kind, items: list[Object], version: int) -> None:
        with self._noting() as noted:
            noted.append(self._memories[kind.plural].listed(items, version) or True)
            self._failures.pop(kind.plural, None)

    def saw(self, kind: Kind, change: str, obj: Object) -> None:
        with self._noting() as noted:
            noted.append(self._memories[kind.plural].saw(change, obj))

    def failed(self, kind: Kind, error: Exception) -> None:
        with self._changing:
            self._failures[kind.plural] = error

    def _written(self, plural: str, answer: Object) -> Object:
        if plural in self._memories:
            with self._noting() as noted:
                noted.append(self._memories[plural].wrote(answer))
        return copied(answer)

    @contextmanager
    def _noting(self) -> Iterator[list[bool]]:
        """Hold the lock, and count a change if one was noted."""
        noted: list[bool] = []
        with self._changing:
            yield noted
            if any(noted):
                self._changes += 1
                self._changing.notify_all()


@contextmanager
def watching(
    api: Api, kinds: Sequence[str] | Mapping[str, Selection], *, within: float = PATIENCE_SECONDS
) -> Iterator[Cache]:
    """Yield the objects of these kinds, by plural, once all are listed. Raises NotListed after so many seconds."""
    cache = Cache(api, kinds if isinstance(kinds, Mapping) else dict.fromkeys(kinds, _ALL))
    cache.start()
    try:
        cache.wait_until_listed(within)
        yield cache
    finally:
        cache.stop()
