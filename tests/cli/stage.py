"""A world in memory, and the command run on it as on the command line."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

from click.testing import CliRunner, Result

from tests.world import World
from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.ports.clock import Clock
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.log_events import LogEvent, LogLines
from tpu_slices.ports.messaging import RUNS, Messaging
from tpu_slices.ports.settings_store import SettingsStore
from tpu_slices_cli.app import main
from tpu_slices_cli.session import Session
from tpu_slices_simulator.fakes.settings import FakeSettings
from tpu_slices_simulator.live import LiveWorkload


class FakeLines:
    """The metrics of log lines: they count what the sweeps of a world write, unless they match nothing."""

    def __init__(self) -> None:
        self.match = True
        self.trouble: Exception | None = None

    def counts(self, event: LogEvent, since: datetime) -> bool:
        assert (event, since.tzinfo) == (LogEvent.SWEEP_COMPLETED, UTC)
        if self.trouble is not None:
            raise self.trouble
        return self.match


class FakeMessaging:
    """What is deployed for each cluster: all of it, unless something is missing."""

    def __init__(self) -> None:
        self.missed: dict[ClusterId, tuple[str, ...]] = {}
        self.state: str | None = RUNS
        self.trouble: Exception | None = None

    def missing(self, cluster: ClusterId) -> tuple[str, ...]:
        if self.trouble is not None:
            raise self.trouble
        return self.missed.get(cluster, ())

    def schedule(self, cluster: ClusterId) -> str | None:
        if self.trouble is not None:
            raise self.trouble
        assert cluster
        return self.state


class StageSession(Session):
    """A session with the world's own dependencies."""

    def __init__(self, world: World, lines: FakeLines | None = None, deployed: FakeMessaging | None = None) -> None:
        super().__init__("demo-project")
        self._world = world
        self._lines = lines or FakeLines()
        self._deployed = deployed or FakeMessaging()

    @cached_property
    def messaging(self) -> Messaging:
        return self._deployed

    @cached_property
    def lines(self) -> LogLines:
        return self._lines

    @cached_property
    def deps(self) -> ReconcileDeps:
        return self._world.deps

    @cached_property
    def operator(self) -> str:
        return "ada@example.com"

    @cached_property
    def clock(self) -> Clock:
        return self._world.deps.clock

    @cached_property
    def written(self) -> SettingsStore:
        return FakeSettings(self._world.store)


@dataclass
class Stage:
    world: World = field(default_factory=World)
    lines: FakeLines = field(default_factory=FakeLines)
    deployed: FakeMessaging = field(default_factory=FakeMessaging)

    def slices(self, *arguments: str, input: str | None = None) -> Result:  # noqa: A002 - as the runner calls it
        session = StageSession(self.world, self.lines, self.deployed)
        return CliRunner().invoke(main, list(arguments), obj=session, input=input, prog_name="slices")

    def output_of(self, *arguments: str) -> str:
        result = self.slices(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout


def serving(stage: Stage, name: str = "llama") -> LiveWorkload:
    jobset = stage.world.jobset_appears(name)
    stage.world.settle(minutes=10, until=lambda: jobset.bound == {0})
    stage.world.settle(minutes=2)
    return jobset


def out_of_stock(stage: Stage) -> LiveWorkload:
    jobset = stage.world.jobset_appears("gemma")
    stage.world.backend.refuse_next_create(Failure(FailureKind.STOCKOUT, "[GCE_STOCKOUT] none left"))
    stage.world.cluster_lives()
    stage.world.deliver()
    return jobset
