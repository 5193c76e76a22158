"""The cordoned hosts (`spec.unschedulable`), and since when. Pure: time is passed in."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from relay.objects import Host


class Cordons:
    """The cordoned hosts, whoever cordoned them.

    A host counts as closed once it has been seen cordoned for `settle`: a pod that was under way to it has arrived.
    """

    def __init__(self, settle: timedelta) -> None:
        self._settle = settle
        self._since: dict[str, datetime] = {}

    def saw(self, host: Host, now: datetime) -> None:
        if host.cordoned:
            self._since.setdefault(host.node, now)
        else:
            self._since.pop(host.node, None)

    def lost(self, node: str) -> None:
        self._since.pop(node, None)

    def closed(self, hosts: Iterable[Host], now: datetime) -> int:
        """Return how many of these hosts are closed."""
        return sum(now >= at for at in self._closed_at(hosts))

    def is_closed(self, host: Host, now: datetime) -> bool:
        return self.closed([host], now) == 1

    def next_change(self, hosts: Iterable[Host], now: datetime) -> datetime | None:
        """Return when the last of those that are cordoned will count as closed; None if all of them do."""
        return max((at for at in self._closed_at(hosts) if at > now), default=None)

    def _closed_at(self, hosts: Iterable[Host]) -> Iterable[datetime]:
        return (self._since[host.node] + self._settle for host in hosts if host.node in self._since)
