"""How far the watches have come, and when each of them showed a sign of life. Pure: time is passed in."""

from __future__ import annotations

from datetime import datetime, timedelta

from relay.objects import Kind


class WatchProgress:
    """The signs of life of each watch."""

    def __init__(self, blind_after: timedelta) -> None:
        self._blind_after = blind_after
        self._signs_of_life: dict[Kind, datetime] = {}
        self._versions: dict[Kind, int] = {}
        self._interrupted: set[Kind] = set()

    @property
    def complete(self) -> bool:
        """Whether every kind was listed: what is not in the cluster cache then does not exist."""
        return len(self._signs_of_life) == len(Kind)

    @property
    def interrupted(self) -> bool:
        """Whether a watch failed, and was not resumed yet."""
        return bool(self._interrupted)

    @property
    def sequence(self) -> int:
        """The sum of the versions up to which the watches have delivered: as none decreases, it never does.

        Nor is it lower after a restart: a list has the latest version that the API server has. Only if etcd was
        restored meanwhile does it go back; the functions notice by the list of all hosts.
        """
        return sum(self._versions.values())

    def is_current(self, now: datetime) -> bool:
        """Return whether every watch has shown a sign of life lately."""
        return self.complete and all(now - sign < self._blind_after for sign in self._signs_of_life.values())

    def bookmarked(self, kind: Kind, version: str, now: datetime) -> None:
        """Record that a watch has delivered everything up to a resourceVersion; others than numbers are ignored."""
        self._signs_of_life[kind] = now
        self._interrupted.discard(kind)
        if version.isdigit():
            self._versions[kind] = max(self._versions.get(kind, 0), int(version))

    def failed(self, kind: Kind) -> None:
        """Record that a watch failed: what it would have shown is unknown until its next sign of life."""
        self._interrupted.add(kind)
