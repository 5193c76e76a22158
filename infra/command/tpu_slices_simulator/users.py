"""Those whose workloads are in a simulation: what becomes of each is its plot's, or drawn."""

from __future__ import annotations

from collections import Counter
from uuid import NAMESPACE_URL, uuid5

from tpu_slices.domain.model.facts import WorkloadRef, WorkloadState
from tpu_slices.domain.model.slices import Owner, OwnerKind, WorkloadUid
from tpu_slices_simulator.live import LiveWorkload
from tpu_slices_simulator.scene import Scene
from tpu_slices_simulator.story import Kind, Plot


class Users:
    def __init__(self, simulation: Scene) -> None:
        self._of = simulation
        self.workloads: dict[str, LiveWorkload] = {}
        """Those that there are or were, by the IDs of their plots; the last one of its name."""
        self._lives: Counter[str] = Counter()
        """By plot, how many workloads it had."""
        self._served: Counter[str] = Counter()
        """By plot, in how many minutes its workload had all of its slices."""

    def act(self, minute: int) -> None:
        """Do what the story tells of a minute."""
        for plot in self._of.story.jobsets:
            self._acts(plot, minute)
        live = [each for each in self.workloads.values() if not each.state.ended]
        if live and self._of.strikes(Kind.WORKLOADS_DELETED, minute):
            for workload in live:
                self._of.ends(workload, WorkloadState.DELETED)

    def are_restless(self, minute: int) -> bool:
        """Return whether one of them does something again and again in a minute."""
        rests = (plot.restless for plot in self._of.story.jobsets)
        return any(each is not None and each.since <= minute < each.until for each in rests)

    def act_in_second(self, minute: int, second: int) -> bool:
        """Do what is done again and again; return whether that was anything."""
        acting = [
            plot for plot in self._of.story.jobsets if plot.restless is not None and plot.restless.acts(minute, second)
        ]
        for plot in acting:
            workload = self.workloads[plot.id]
            if plot.restless is not None and plot.restless.remakes:
                self._of.ends(workload, WorkloadState.DELETED)
                self._creates(plot)
            elif workload.state is WorkloadState.ACTIVE:
                self._of.suspends(workload)
            else:
                self._of.resumes(workload)
        return bool(acting)

    def make_all_again(self) -> None:
        """Create in a new cluster what was live in the old one."""
        for plot in self._of.story.jobsets:
            workload = self.workloads.get(plot.id)
            if workload is not None and not workload.state.ended:
                workload.state = WorkloadState.MISSING
                self._creates(plot)

    def _acts(self, plot: Plot, minute: int) -> None:
        lives = {start: end for start, end in plot.lives if start <= self._of.story.minutes}
        if minute in lives:
            self._creates(plot)
        for since, until in plot.suspended:
            if minute == since and self._is(plot, WorkloadState.ACTIVE):
                self._of.suspends(self.workloads[plot.id])
            elif minute == until and self._is(plot, WorkloadState.SUSPENDED):
                self._of.resumes(self.workloads[plot.id])
        for at, manifest in plot.edits:
            if minute == at and self._is(plot, WorkloadState.ACTIVE):
                self.workloads[plot.id].edit(manifest)
                self._of.cluster.changes(self.workloads[plot.id])
                self._of.cluster.rolls_out(self.workloads[plot.id])
        if minute in lives.values() and not self.workloads[plot.id].state.ended:
            self._ends(self.workloads[plot.id], WorkloadState.DELETED if plot.deleted else WorkloadState.COMPLETED)
        if plot.runs is not None and minute >= plot.at:
            self._runs(plot, plot.runs)

    def _runs(self, plot: Plot, needed: int) -> None:
        """Let a workload work for a minute, if it can; it goes on where it was, and completes when it has done all."""
        workload = self.workloads[plot.id]
        if workload.state is WorkloadState.ACTIVE and workload.served:
            self._served[plot.id] += 1
            if self._served[plot.id] >= needed:
                self._ends(workload, WorkloadState.COMPLETED)

    def end_all(self) -> None:
        """End what is live."""
        for workload in self.workloads.values():
            if not workload.state.ended:
                self._ends(workload, WorkloadState.COMPLETED)

    def _ends(self, workload: LiveWorkload, state: WorkloadState) -> None:
        """End a workload; a LeaderWorkerSet serves until it is deleted."""
        serves = workload.ref.owner.kind is OwnerKind.LEADER_WORKER_SET
        self._of.ends(workload, WorkloadState.DELETED if serves else state)

    def _is(self, plot: Plot, state: WorkloadState) -> bool:
        return self.workloads[plot.id].state is state

    def _creates(self, plot: Plot) -> None:
        life = self._lives[plot.id]
        self._lives[plot.id] += 1
        owner = Owner(
            kind=plot.kind,
            namespace=plot.namespace,
            name=plot.name,
            uid=WorkloadUid(str(uuid5(NAMESPACE_URL, f"{plot.id}/{life}"))),
        )
        ref = WorkloadRef(owner=owner, generation=1, resource_version="100")
        self.workloads[plot.id] = LiveWorkload(ref, plot.manifest, created=self._of.clock.now())
        self._of.cluster.puts(self.workloads[plot.id])
