"""When a controller tries again what was refused: as controller-runtime does, later each time, or after a change."""

from dataclasses import dataclass
from datetime import datetime, timedelta

FIRST = timedelta(milliseconds=5)
LONGEST = timedelta(seconds=1000)


@dataclass(frozen=True, slots=True)
class _Pause:
    version: object
    failures: int
    end: datetime


class Backoff:
    """Pauses by an object's UID; `version` is all on which the outcome depends: if it changes, the pause is over."""

    def __init__(self) -> None:
        self._pauses: dict[str, _Pause] = {}

    def until(self, uid: str, version: object, now: datetime) -> datetime | None:
        """Return until when to leave the object alone; None: try now."""
        pause = self._pauses.get(uid)
        return pause.end if pause and pause.version == version and now < pause.end else None

    def failed(self, uid: str, version: object, now: datetime) -> datetime:
        """Note a failure; return when to try again."""
        known = self._pauses.get(uid)
        failures = known.failures if known else 0
        end = now + min(FIRST * (1 << min(failures, 30)), LONGEST)
        self._pauses[uid] = _Pause(version, failures + 1, end)
        return end

    def succeeded(self, uid: str) -> None:
        self._pauses.pop(uid, None)

    def keep(self, uids: set[str]) -> None:
        """Forget all other objects."""
        self._pauses = {uid: pause for uid, pause in self._pauses.items() if uid in uids}
