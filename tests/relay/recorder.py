"""A recorder of what one watch delivers, which waits for more."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from relay.objects import Bookmarked, Failed, Kind, Listed, Lost, Saw, Seen, Ticked, WatchEvent
from tpu_standins.patience import PATIENCE_SECONDS


@dataclass
class Recorder:
    """Takes the events of one kind; `until` waits for a condition."""

    kind: Kind = Kind.HOSTS
    lists: list[list[str]] = field(default_factory=list)
    present: dict[str, Seen] = field(default_factory=dict)
    signs: int = 0
    ticks: int = 0
    failures: list[str] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def put(self, event: WatchEvent) -> None:
        assert event.kind == self.kind
        if isinstance(event, Listed | Saw | Lost | Bookmarked):
            assert event.version.isdigit()
        with self.changed:
            self._record(event)
            self.changed.notify_all()

    def _record(self, event: WatchEvent) -> None:
        match event:
            case Listed(seen=listed):
                self.lists.append(sorted(each.identity for each in listed))
                self.present = {each.identity: each for each in listed}
            case Saw(seen=seen):
                self.present[seen.identity] = seen
            case Lost(identity=identity):
                self.present.pop(identity, None)
            case Bookmarked():
                self.signs += 1
            case Ticked():
                self.ticks += 1
            case Failed(why=why):
                self.failures.append(why)

    def until(self, true: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(true, PATIENCE_SECONDS), (
                self.lists,
                sorted(self.present),
                self.signs,
                self.failures,
            )
