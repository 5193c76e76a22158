"""How soon something may be told of a workload that replaces what was told of it. Pure: time is passed in.

A *renewal* is telling of a workload what replaces what was told: its state in another form, or the demand of a Job that
this renewal, the last one, told already.

| of a workload is to be told                          | it may be told                                             |
|------------------------------------------------------|------------------------------------------------------------|
| the first of it, an end of the use of slices         | at once: no renewal, and of no pace                        |
| a renewal, the first ever, or after quiet            | at once; the pause after it is `renew`                     |
| another one                                          | once the pause after the last one is over; the next pause  |
|                                                      | is twice as long, up to `renew_at_most`                    |
| demand of Jobs that were told before, but not since  | with the renewal; as more leaders come, once an eighth of  |
| the last renewal                                     | the pause has passed since the last of them, or of the     |
|                                                      | time from the renewal to that, if this is longer; at least |
|                                                      | `gather`, at most `regather`                               |
| the same after quiet                                 | as a renewal after quiet                                   |

Quiet: nothing of this was told for longer than two pauses, and longer than `quiet`. What waits is told in the end as it
is then, so a workload that flaps on is never quiet.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from relay.agenda import Timing

SHARE = 8


@dataclass(frozen=True, slots=True)
class Pace:
    """Of one workload."""

    timing: Timing
    pause: timedelta = timedelta(0)
    """After the last renewal."""
    renewed_at: datetime | None = None
    """When the last renewal was; None: there was none."""
    joined_at: datetime | None = None
    """When it last told demand of Jobs that had been told before it; None: not yet."""
    changes: int = 0
    """How often the workload changed, or a leader of a Job waited again, without quiet between two of them."""
    changing_since: datetime | None = None
    changed_at: datetime | None = None

    def is_quiet(self, now: datetime) -> bool:
        last = self.joined_at or self.renewed_at
        return last is None or self._is_over(last, now)

    def renewal_due(self, now: datetime) -> datetime:
        """Return when a renewal may be told that is to be told now."""
        return now if self.renewed_at is None else max(now, self.renewed_at + self.pause)

    def renewed(self, now: datetime) -> Pace:
        """Return the pace after a renewal."""
        longer = self.timing.renew if self.is_quiet(now) else min(2 * self.pause, self.timing.renew_at_most)
        return replace(self, pause=longer, renewed_at=now, joined_at=None)

    def joining_due(self, now: datetime) -> datetime:
        """Return when demand of Jobs that were told before the last renewal may join it."""
        if self.renewed_at is None or self.joined_at is None:
            return now
        share = max(self.pause, self.joined_at - self.renewed_at) / SHARE
        return max(now, self.joined_at + min(max(share, self.timing.gather), self.timing.regather))

    def joined(self, now: datetime) -> Pace:
        return replace(self, joined_at=now)

    def changed(self, now: datetime) -> Pace:
        """Return the pace after something changed that a renewal may tell."""
        if self.changed_at is None or self._is_over(self.changed_at, now):
            return replace(self, changes=1, changing_since=now, changed_at=now)
        return replace(self, changes=self.changes + 1, changed_at=now)

    def _is_over(self, last: datetime, now: datetime) -> bool:
        return now - last > max(2 * self.pause, self.timing.quiet)
