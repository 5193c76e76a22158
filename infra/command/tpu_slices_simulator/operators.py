"""The operators in a simulation: they pause the cluster and hold slices, and let both go on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from tpu_slices.domain.model.slices import ClaimId, SliceId
from tpu_slices.flows.edits import Edit, edit, hold, resume, wake
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.wire.cluster_settings import pause_key
from tpu_slices_simulator.scene import Scene

LONGEST = 45
"""Minutes that a pause or a hold lasts."""
PAUSES, HOLDS = 0.01, 0.005
"""How often in a minute the cluster is paused, and each slice is held."""


class Operators:
    def __init__(self, simulation: Scene) -> None:
        self._of = simulation
        self.paused: tuple[int, int] | None = None
        """From when until when the cluster is."""
        self.held: dict[ClaimId | SliceId, tuple[int, int]] = {}
        """By slice that is held, from when until when."""
        own = {"store": simulation.store, "publisher": simulation.publisher, "clock": simulation.clock}
        self._deps = replace(simulation.deps, **cast("Any", own))
        """An operator's command does not crash halfway."""

    def act(self, minute: int) -> None:
        """Do what is drawn for a minute. A hold that the store does not let end ends in a later one."""
        if self._of.story.operated and minute < self._of.story.minutes:
            self._pauses(minute)
            self._holds(minute)

    def calm_down(self) -> None:
        """Let all go on."""
        if self.paused is not None:
            self._goes_on()
        for slice_ in list(self.held):
            self._resumes(slice_)

    def repeat(self) -> None:
        """Pause and hold, after the database was set back, what is to be, and let all else go on."""
        if self.paused is not None:
            self._puts_pause()
        elif self._of.store.document(pause_key(self._of.settings.cluster)) is not None:
            self._goes_on()
        self.held = {slice_: span for slice_, span in self.held.items() if slice_ in self._of.records}
        for slice_, record in self._of.records.items():
            if slice_ in self.held:
                self._edit(slice_, self._hold())
            elif record.hold:
                self._edit(slice_, resume)

    def _pauses(self, minute: int) -> None:
        sim = self._of
        if self.paused is not None and minute >= self.paused[1]:
            self._goes_on()
        elif self.paused is None and sim.chance.happens(PAUSES, "paused", minute):
            self.paused = minute, minute + sim.chance.between(1, LONGEST, "paused for", minute)
            self._puts_pause()

    def _puts_pause(self) -> None:
        pause = {"message": "maintenance", "paused_at": self._of.clock.now()}
        self._of.store.put_document(pause_key(self._of.settings.cluster), pause)

    def _goes_on(self) -> None:
        sim = self._of
        self.paused = None
        sim.store.remove_document(pause_key(sim.settings.cluster))
        try:
            wake(sim.settings.cluster, self._deps)
        except Temporary:
            return  # each slice is looked at in its own time

    def _holds(self, minute: int) -> None:
        sim = self._of
        for slice_ in [slice_ for slice_, (_, until) in self.held.items() if minute >= until]:
            self._resumes(slice_)
        for slice_ in [] if sim.store.unavailable else sim.records:
            if slice_ not in self.held and sim.chance.happens(HOLDS, "held", slice_, minute):
                until = minute + sim.chance.between(1, LONGEST, "held for", slice_, minute)
                if self._edit(slice_, self._hold()):
                    self.held[slice_] = minute, until

    def _hold(self) -> Edit:
        return hold("for a look", "operator@example.com", self._of.clock.now())

    def _resumes(self, slice_: ClaimId | SliceId) -> None:
        if self._edit(slice_, resume):
            del self.held[slice_]

    def _edit(self, slice_: ClaimId | SliceId, change: Edit) -> bool:
        """Return whether the record could be edited."""
        try:
            edit(self._of.settings.cluster, slice_, change, self._deps)
        except (Permanent, Temporary):
            return False
        return True
