"""A world in memory, and the command run on it as on the command line."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from click.testing import CliRunner, Result

from tests.world import World
from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.store import SettingsStore
from tpu_slices_cli.app import main
from tpu_slices_cli.session import Session
from tpu_slices_simulator.fakes.settings import FakeSettings
from tpu_slices_simulator.live import LiveWorkload


class StageSession(Session):
    """A session with the world's own dependencies."""

    def __init__(self, world: World) -> None:
        super().__init__("demo-project")
        self._world = world

    @cached_property
    def deps(self) -> ReconcileDeps:
        return self._world.deps

    @cached_property
    def operator(self) -> str:
        return "ada@example.com"

    @cached_property
    def written(self) -> SettingsStore:
        return FakeSettings(self._world.store)


@dataclass
class Stage:
    world: World = field(default_factory=World)

    def slices(self, *arguments: str, input: str | None = None) -> Result:  # noqa: A002 - as the runner calls it
        return CliRunner().invoke(main, list(arguments), obj=StageSession(self.world), input=input, prog_name="slices")

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
