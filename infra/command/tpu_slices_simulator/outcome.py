"""What became of each workload of a story: how long it waited and why, how long it ran, what was bought for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import WorkloadJob, claim_id
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.reporting.timeline import Course, Window, course
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload
from tpu_slices_simulator.simulation import START, Simulation
from tpu_slices_simulator.story import Plot, Story


@dataclass(slots=True)
class Outcome:
    """Of one workload; times are minutes of the story."""

    plot: Plot
    served_at: int | None = None
    """When it had all of its slices for the first time."""
    ended_at: int | None = None
    state: WorkloadState = WorkloadState.ACTIVE
    ran: int = 0
    """Minutes in which it had all of its slices."""
    waited: Counter[Reason | None] = field(default_factory=Counter)
    """Minutes in which it had not, though it was to run, by the reason of the first slice that it lacked.

    None: the provisioner did not know of that slice.
    """
    message: str = ""
    """What the record of that slice said last."""
    courses: tuple[Course, ...] = ()
    """What its slices did, once the story is played."""

    @property
    def where(self) -> Counter[str]:
        """Return how many of its slices had hosts, by how and where, as in `spot in us-east5-b`."""
        return Counter(spec.how for each in self.courses for spec in each.held_as)


class CountedSimulation(Simulation):
    """A simulation that counts, minute by minute; `outcomes` in the order of the story."""

    def __init__(self, story: Story) -> None:
        super().__init__(story)
        self.outcomes = {plot.id: Outcome(plot) for plot in story.jobsets}
        self.spares: tuple[Course, ...] = ()
        """What slices did that were made beside demand and that nobody got, once the story is played."""

    def play(self) -> None:
        """Play the story to its end."""
        self.until(self.story.minutes)
        for each in self.courses:
            owner = each.record.owner
            if owner.kind.is_spare:
                self.spares += (each,)
            else:
                self.outcomes[f"{owner.namespace}/{owner.name}"].courses += (each,)

    @property
    def window(self) -> Window:
        return Window(START, self.clock.now())

    @property
    def courses(self) -> list[Course]:
        """What all slices did until now, as `slices timeline` has it."""
        return [found for record in self.records.values() if (found := course(record, self.window)) is not None]

    @property
    def creations(self) -> tuple[int, int]:
        """How many pools were created or tried, and how many of them in vain."""
        tried = set(self.backend.ordered(Verb.CREATE))
        failed = {each.pool for each in self.backend.operations.values() if each.creates and each.failure is not None}
        return len(tried), len(tried & failed)

    def _a_minute(self) -> None:
        super()._a_minute()
        for outcome in self.outcomes.values():
            workload = self.users.workloads.get(outcome.plot.id)
            if workload is not None and outcome.ended_at is None:
                self._counts(outcome, workload)

    def _counts(self, outcome: Outcome, workload: LiveWorkload) -> None:
        outcome.state = workload.state
        if workload.state.ended:
            outcome.ended_at = self.minute
        elif workload.state is WorkloadState.ACTIVE and workload.served:
            outcome.ran += 1
            outcome.served_at = outcome.served_at or self.minute
        elif workload.state is WorkloadState.ACTIVE:
            record = self._lacking(workload)
            outcome.waited[record.reason if record else None] += 1
            outcome.message = record.message if record else outcome.message

    def _lacking(self, workload: LiveWorkload) -> SliceRecord | None:
        """Return the record of the first slice that a workload lacks."""
        replicated_job, index = next(job for number, job in enumerate(workload.jobs) if number not in workload.bound)
        job = WorkloadJob(
            cluster=self.settings.cluster,
            owner=workload.ref.owner,
            replicated_job=replicated_job,
            job_index=index,
        )
        return self.records.get(claim_id(job))
