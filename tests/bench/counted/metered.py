"""The ports behind a meter: what each call uses of Google Cloud, as the adapters use it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any

from tests.bench.counted.counters import GKE_READS, READS, Counts
from tpu_slices.adapters.gke.backend import CONFIRMED_FOR
from tpu_slices.domain.model.observations import Absent, Broken, Creating
from tpu_slices.ports.backend import PoolOrder
from tpu_slices.ports.store import CLAIMS_AT_ONCE, Found, Names
from tpu_slices.wire.documents import DUE_QUEUE, REPORT_QUEUE
from tpu_slices_simulator.fakes.store import FakeStore


class MeteredStore:
    """A store that counts the documents it reads, as Firestore bills them."""

    def __init__(self, store: FakeStore, counts: Counts, calls: list[str]) -> None:
        self._store = store
        self._counts = counts
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        def and_count(*args: Any, **kwargs: Any) -> Any:
            result = method(*args, **kwargs)
            if isinstance(result, Iterator):
                result = tuple(result)
            self._calls.append(name)
            self._counts[READS] += reads(name, args, result, self._store)
            return iter(result) if name in LAZY else result

        return and_count


class MeteredBackend:
    """GKE with a meter on its calls: each method of the port makes those that the adapter makes."""

    def __init__(self, backend: object, counts: Counts, calls: list[str], seconds: Callable[[], float]) -> None:
        self._backend = backend
        self._counts = counts
        self._calls = calls
        self._seconds = seconds
        self._confirmed_at = -math.inf

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._backend, name)
        return partial(self._counted, name, method) if callable(method) else method

    def _counted(self, name: str, method: Callable[..., Any], *args: Any) -> Any:
        result = method(*args)
        now = self._seconds()
        confirmed = now - self._confirmed_at < CONFIRMED_FOR
        if isinstance(result, Absent) and not confirmed:
            self._confirmed_at = now
        self._calls.append(name)
        self._counts[GKE_READS] += gke_reads(name, args[0], result, confirmed=confirmed)
        return result


class MeteredPublisher:
    """A publisher whose calls are told."""

    def __init__(self, publisher: object, calls: list[str]) -> None:
        self._publisher = publisher
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        self._calls.append(name)
        return getattr(self._publisher, name)


def gke_reads(name: str, order: object, result: object, *, confirmed: bool) -> int:
    """Return how many calls that read the adapter for GKE makes in a method of the port.

    `confirmed`: the cluster was seen within CONFIRMED_FOR.
    """
    operation = order.operation if isinstance(order, PoolOrder) else None
    match name, result:
        case "look", Absent():
            return 1 + (not confirmed) + (operation is not None)
        case "look", Creating() | Broken():
            return 2
        case "create", _:
            return 0
        case "delete", _:
            return 0 if isinstance(order, PoolOrder) and order.seen_ours else 1
        case "cancel", _:
            return 2
        case _:
            return 1


def _having(claims: Collection[str], result: Found[Any, Any]) -> int:
    """Return the reads of queries by claims: what each finds, and one for each that finds nothing."""
    asked = sorted({*claims})
    parts = (asked[first : first + CLAIMS_AT_ONCE] for first in range(0, len(asked), CLAIMS_AT_ONCE))
    return sum(max(sum(claim in {*result, *result.unreadable} for claim in part), 1) for part in parts)


def _alike(most: int, counts: Sequence[int]) -> int:
    """Return the reads of pages of so many, each of which begins with a reason; what fills one is counted, too."""
    pages = (min(most, sum(counts[number:])) for number in range(len(counts)))
    return sum(pages) + sum(count >= most for count in counts) + 1


def _heads(store: FakeStore, field: str) -> int:
    """Return the reads of the first of each queue, named by a field, and of nothing behind the last."""
    documents = (store.document(place) or {} for place in store.places())
    return len({queue for each in documents if (queue := each.get(field)) is not None}) + 1


def _of_heads(name: str, arguments: tuple[Any, ...], result: Any, store: FakeStore) -> int:
    """Return the reads of the first of each queue, due or not: until there are enough or, if one is due, no more."""
    if name == "due_namespaces":
        most: int = arguments[2]
        return min(_heads(store, DUE_QUEUE), most)
    return 1 + _heads(store, REPORT_QUEUE) if result else 1


LAZY = {"alike", "live_workloads", "live_standings", "kept_slices", "every_slice"}
ONE = {
    *("heartbeat", "limiter", "budget", "brake", "awaits_slot"),
    *(
        "chips_bought",
        "hosts_reserved",
        "chips_held",
        "unconfirmed_ends",
        "ready_count",
        "slice_count",
    ),
    *("phase_count", "reason_count", "oldest_since", "paid_longest"),
}
"""One document, or a number that the server makes of up to 1,000 entries of an index."""
FIXED = {**dict.fromkeys(ONE, 1), "commit": 0, "reject": 0, "settings": 2, "digests": 2, "mirror_digest": 2}
"""With the settings the pause is read; digests are sums over the workloads at once, and one over the slices."""


def reads(name: str, arguments: tuple[Any, ...], result: Any, store: FakeStore) -> int:
    """Return how many reads Firestore bills for a call of the store: one for what is not there, and for no result."""
    if name in FIXED:
        return FIXED[name]
    match name:
        case "together":
            names: Names = arguments[1]
            each = len({*names.slices}) + len({*names.workloads}) + names.heartbeat + names.limiter + names.brake
            each += _having(names.claims, result.having)
            return 2 * names.settings + each + (0 if result.slots is None else max(len(result.slots), 1))
        case "workloads" | "slices":
            return len(set(arguments[1]))
        case "having":
            return _having(arguments[1], result)
        case "clusters_with_slices":  # the first of each, until there is none
            return len(result) + 1
        case "report_queues" | "due_namespaces":
            return _of_heads(name, arguments, result, store)
        case "alike":
            return _alike(arguments[2], [each.count for each in result])
        case "settings_at":  # the settings, and the pause of each
            return max(2 * len(result), 1)
        case _:
            return max(len(result), 1)
