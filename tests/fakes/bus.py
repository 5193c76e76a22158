"""The bus in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection

from tpu_slices.domain.model.facts import Question
from tpu_slices.domain.model.slices import ClusterId, SliceId
from tpu_slices.ports.bus import JobSetUpdate, SliceUpdate
from tpu_slices.ports.errors import Temporary


class FakeBus:
    """Remembers everything it took, in order; `fail_next` makes calls fail."""

    def __init__(self) -> None:
        self.nudges: list[tuple[ClusterId, SliceId]] = []
        self.updates: list[SliceUpdate] = []
        self.reports: list[tuple[ClusterId, JobSetUpdate]] = []
        self.questions: list[tuple[ClusterId, Question]] = []
        self.meanwhile: Callable[[], object] = lambda: None
        """What happens while nudges are being taken."""
        self._failures = 0

    def nudge(self, cluster: ClusterId, slices: Collection[SliceId]) -> None:
        self._fail_if_asked()
        self.meanwhile()
        self.nudges.extend((cluster, slice_) for slice_ in slices)

    def tell(self, cluster: ClusterId, updates: Collection[SliceUpdate]) -> None:
        assert all(update.job.cluster == cluster for update in updates), "an update of another cluster"
        self._fail_if_asked()
        self.updates.extend(updates)

    def report(self, cluster: ClusterId, updates: Collection[JobSetUpdate]) -> None:
        self._fail_if_asked()
        self.reports.extend((cluster, update) for update in updates)

    def ask(self, cluster: ClusterId, questions: Collection[Question]) -> None:
        self._fail_if_asked()
        self.questions.extend((cluster, question) for question in questions)

    def fail_next(self, times: int = 1) -> None:
        """Let the next calls raise Temporary and take nothing."""
        self._failures += times

    def take_nudges(self) -> list[tuple[ClusterId, SliceId]]:
        """Hand out what was nudged so far, once."""
        taken, self.nudges = self.nudges, []
        return taken

    def _fail_if_asked(self) -> None:
        if self._failures > 0:
            self._failures -= 1
            raise Temporary("the bus was told to fail")
