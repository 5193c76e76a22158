"""The loop: act for each step, observe, advance the steps, show them. One thread, one step at a time."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from google.api_core.exceptions import GoogleAPIError

from infra.local.demo.hands import ActFailed, Hands
from infra.local.demo.leftovers import dead_letters, leftovers
from infra.local.demo.report import Leftovers
from infra.local.demo.screen import Screen
from infra.local.demo.steps import Act, Progress, Step, advanced, done, failed
from infra.local.demo.table import news
from infra.local.demo.view import View
from infra.local.demo.watch import Eyes
from infra.local.stack import Stack
from tpu_standins.clients.errors import ApiError
from tpu_standins.patience import PATIENCE_SECONDS

LOOK_SECONDS = 0.4
STAGGER_SECONDS = 1.5
"""Delay between the starts of two steps, so that each can be followed."""


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True, kw_only=True)
class Stage:
    """Runs the steps. `started`: when the demo began, by `clock`, in seconds."""

    stack: Stack
    eyes: Eyes
    hands: Hands
    screen: Screen
    started: float
    clock: Callable[[], float] = time.monotonic
    view: View = field(default_factory=lambda: View(pools={}))

    def play(self, story: Sequence[Step]) -> tuple[Progress, ...]:
        """Run all steps in parallel until each completes or fails. Raise ProgramFailed if a part of the stack exits."""
        opening = self.clock()
        steps = tuple(
            Progress(step=step, since=opening + number * STAGGER_SECONDS) for number, step in enumerate(story)
        )
        while not all(each.over for each in steps):
            self.stack.processes.check()
            acted = tuple(map(self._act, steps))
            self._look()
            after = tuple(advanced(each, self.view, self.clock()) for each in acted)
            for line in news(steps, after, self.started):
                self.screen.say(line)
            self.screen.show(self.view, after, utc_now())
            steps = after
            time.sleep(LOOK_SECONDS)
        return steps

    def clean(self, steps: Sequence[Progress]) -> Leftovers:
        """Wait until nothing is left, for at most PATIENCE_SECONDS; return what is left."""
        deadline = self.clock() + PATIENCE_SECONDS
        while any((left := leftovers(self.eyes, self.view)).values()) and self.clock() < deadline:
            time.sleep(LOOK_SECONDS)
            self._look()
            self.screen.show(self.view, steps, utc_now())
        return {**left, **dead_letters(self.eyes)}

    def _act(self, progress: Progress) -> Progress:
        """Perform all actions of the step up to the next condition that must be observed."""
        while self.clock() >= progress.since and (act := progress.to_do) is not None:
            progress = self._done(progress, act)
        return progress

    def _done(self, progress: Progress, act: Act) -> Progress:
        try:
            said = self.hands.do(act)
        except ActFailed as refusal:
            return failed(progress, str(refusal))
        return done(progress, said, self.clock())

    def _look(self) -> None:
        """Update the view. A failed read is retried in the next iteration: the steps have the deadlines."""
        try:
            self.view = self.eyes.look()
        except (ApiError, OSError, GoogleAPIError) as trouble:
            self.screen.say(f"         cannot read the state: {trouble}")
