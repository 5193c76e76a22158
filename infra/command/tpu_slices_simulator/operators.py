"""The operators in a simulation: they pause the cluster, hold slices and edit the policy, and undo it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from tpu_slices.domain.model.clusters import Allowed, Policy
from tpu_slices.domain.model.slices import ClaimId, SliceId
from tpu_slices.flows.edits import Edit, edit, hold, resume, wake
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.wire.cluster_settings import pause_key
from tpu_slices_simulator.scene import Scene

LONGEST = 45
"""Minutes that a pause, a hold or a policy lasts."""
PAUSES, HOLDS, EDITS = 0.01, 0.005, 0.01
"""How often in a minute the cluster is paused, each slice is held, and the policy is edited."""
FEW_CHIPS = (16, 32, 48)
"""What a cluster may have under an edited policy."""
NOTHING = Allowed(zones=())
"""What a namespace that is barred may request."""


class Operators:
    def __init__(self, simulation: Scene) -> None:
        self._of = simulation
        self.paused: tuple[int, int] | None = None
        """From when until when the cluster is."""
        self.held: dict[ClaimId | SliceId, tuple[int, int]] = {}
        """By slice that is held, from when until when."""
        self.policy: Policy = simulation.settings.policy
        """That of the story."""
        self.barred: tuple[str, int] | None = None
        """The namespace that may request nothing, and since when."""
        self.limits: list[tuple[int, int | None]] = [(0, self.policy.chips_per_cluster)]
        """The limits of chips, and since when each was in force."""
        self._edited_until: int | None = None
        own = {"store": simulation.store, "publisher": simulation.publisher, "clock": simulation.clock}
        self._deps = replace(simulation.deps, **cast("Any", own))
        """An operator's command does not crash halfway."""

    def act(self, minute: int) -> None:
        """Do what is drawn for a minute. A hold that the store does not let end ends in a later one."""
        if self._of.story.operated and minute < self._of.story.minutes:
            self._pauses(minute)
            self._holds(minute)
            self._regulates(minute)

    def calm_down(self) -> None:
        """Let all go on."""
        if self.paused is not None:
            self._goes_on()
        for slice_ in list(self.held):
            self._resumes(slice_)
        if self._edited_until is not None:
            self._puts(self.policy)

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

    def _regulates(self, minute: int) -> None:
        """Let the cluster have fewer chips than it has, or a namespace nothing, and put the policy back."""
        sim, plots = self._of, self._of.story.jobsets
        if self._edited_until is not None and minute >= self._edited_until:
            self._puts(self.policy)
        elif self._edited_until is None and plots and sim.chance.happens(EDITS, "edited", minute):
            self._edited_until = minute + sim.chance.between(1, LONGEST, "edited for", minute)
            if sim.chance.happens(0.5, "barred", minute):
                namespace = sim.chance.pick([each.namespace for each in plots], "barred", minute)
                self.barred = namespace, minute
                self._puts(replace(self.policy, namespaces={namespace: NOTHING}))
            else:
                self._puts(replace(self.policy, chips_per_cluster=sim.chance.pick(FEW_CHIPS, "chips", minute)))

    def _puts(self, policy: Policy) -> None:
        if policy == self.policy:
            self.barred = self._edited_until = None
        self.limits.append((self._of.minute, policy.chips_per_cluster))
        self._of.puts_settings(replace(self._of.settings, policy=policy))

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
