"""A sink that records what one watch delivers, and waits for more."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from relay.objects import JobSet, Kind, Seen

DEADLINE = 10.0


@dataclass
class Recorder:
    """A fact sink for one kind; `until` waits for a condition."""

    kind: Kind = Kind.HOSTS
    lists: list[list[str]] = field(default_factory=list)
    present: dict[str, Seen] = field(default_factory=dict)
    signs: int = 0
    ticks: int = 0
    failures: list[str] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def listed(self, kind: Kind, seen: Sequence[Seen], version: str) -> None:
        self._expect(kind, version)
        with self.changed:
            self.lists.append(sorted(each.identity for each in seen))
            self.present = {each.identity: each for each in seen}
            self.changed.notify_all()

    def saw(self, kind: Kind, seen: Seen, version: str) -> None:
        self._put(seen.identity, seen, kind, version)

    def lost(self, kind: Kind, identity: str, version: str, last: JobSet | None) -> None:
        assert last is None
        self._put(identity, None, kind, version)

    def bookmarked(self, kind: Kind, version: str) -> None:
        self._expect(kind, version)
        with self.changed:
            self.signs += 1
            self.changed.notify_all()

    def ticked(self, kind: Kind) -> None:
        self._expect(kind)
        with self.changed:
            self.ticks += 1
            self.changed.notify_all()

    def failed(self, kind: Kind, why: str) -> None:
        self._expect(kind)
        with self.changed:
            self.failures.append(why)
            self.changed.notify_all()

    def until(self, true: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(true, DEADLINE), (self.lists, sorted(self.present), self.signs, self.failures)

    def _put(self, identity: str, seen: Seen | None, kind: Kind, version: str) -> None:
        self._expect(kind, version)
        with self.changed:
            if seen is None:
                self.present.pop(identity, None)
            else:
                self.present[identity] = seen
            self.changed.notify_all()

    def _expect(self, kind: Kind, version: str = "1") -> None:
        assert (kind, version.isdigit()) == (self.kind, True)
