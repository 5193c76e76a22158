"""The trainer learns, continues after a kill, and gives the same whatever it runs on."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack

import pytest

from tests.examples.training.bucket import Bucket, bucket
from tests.examples.training.conftest import LOCK, TRAINER, Trainer
from tests.infra.sources import pins
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.ports import free_ports
from tpu_standins.testing import waiting

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.real]

STEPS = ("--steps", "200", "--every", "20")


@pytest.fixture(scope="module")
def alone(trainer: Trainer) -> list[str]:
    """What is printed on one device, without an interruption."""
    return trainer.train("alone", *STEPS)


@pytest.fixture(scope="module")
def runs() -> Iterator[tuple[Bucket, Mapping[str, str]]]:
    """A bucket, and the environment in which Google's client finds it."""
    with bucket() as (made, url):
        yield made, {"STORAGE_EMULATOR_HOST": url, "GOOGLE_CLOUD_PROJECT": "shop"}


@pytest.fixture(scope="module")
def killed(trainer: Trainer, runs: tuple[Bucket, Mapping[str, str]]) -> list[str]:
    """What the first of two processes printed that train together, killed while the second checkpoint is written."""
    made, google = runs
    made.held = "run/checkpoints/00000040.npz"
    (port,) = free_ports(1)
    together = ("--coordinator", f"127.0.0.1:{port}", "--processes", "2", "--process")
    with ExitStack() as both:
        first, second = (
            both.enter_context(trainer.starting("gs://runs/run", *STEPS, *together, one, **google)) for one in "01"
        )
        assert first.stdout is not None
        printed = list(until(first.stdout, "step 20:"))
        assert made.waiting.wait(PATIENCE_SECONDS)
        first.kill()
        second.kill()
        printed += first.stdout
    made.held = ""
    made.let_go.set()
    return printed


@pytest.fixture(scope="module")
def continued(trainer: Trainer, runs: tuple[Bucket, Mapping[str, str]], killed: list[str]) -> list[str]:
    """What is printed on four devices of one process that continues where those were killed."""
    assert losses(killed)
    _, google = runs
    return trainer.train("gs://runs/run", *STEPS, XLA_FLAGS="--xla_force_host_platform_device_count=4", **google)


def until(printed: Iterable[str], beginning: str) -> Iterator[str]:
    for line in printed:
        yield line
        if line.startswith(beginning):
            return


def losses(printed: Iterable[str]) -> dict[int, float]:
    found = (re.fullmatch(r"step (\d+): loss (\S+)\n?", line) for line in printed)
    return {int(line[1]): float(line[2]) for line in found if line}


def test_the_loss_falls(alone: list[str]) -> None:
    assert alone[0] == "process 0 of 1: 1 devices, step 0"
    assert [*losses(alone)] == [*range(20, 201, 20)]
    assert losses(alone)[200] < 0.5 * losses(alone)[20]


def test_two_processes_lose_as_much_as_one(alone: list[str], killed: list[str]) -> None:
    assert "process 0 of 2: 2 devices, step 0\n" in killed
    assert losses(killed) == pytest.approx({20: losses(alone)[20]}, abs=2e-4)


def test_after_a_kill_four_devices_continue_from_the_last_whole_checkpoint(
    alone: list[str], continued: list[str]
) -> None:
    assert continued[0] == "process 0 of 1: 4 devices, step 20"
    assert losses(continued) == pytest.approx({step: losses(alone)[step] for step in range(40, 201, 20)}, abs=2e-4)


def test_on_a_disk_it_continues_from_the_last_whole_checkpoint_too(trainer: Trainer, alone: list[str]) -> None:
    """A pipe holds what is written of the second checkpoint: where it ends, the disk has the beginning of a file."""
    trainer.train("disk", "--steps", "20", "--every", "20")
    unfinished = trainer.folder / "disk" / "checkpoints" / "unfinished"
    os.mkfifo(unfinished)
    pipe = os.open(unfinished, os.O_RDONLY | os.O_NONBLOCK)
    with trainer.starting("disk", *STEPS) as killed, os.fdopen(pipe, "rb", buffering=0) as written:
        begun = waiting.until(lambda: written.read(1000), "the second checkpoint")
        killed.kill()
        killed.wait(PATIENCE_SECONDS)
    unfinished.unlink()
    unfinished.write_bytes(begun)
    continued = trainer.train("disk", "--steps", "60", "--every", "20")
    assert continued[0] == "process 0 of 1: 1 devices, step 20"
    assert losses(continued) == pytest.approx({step: losses(alone)[step] for step in (40, 60)}, abs=2e-4)
    assert sorted(each.name for each in unfinished.parent.iterdir()) == [f"000000{step}.npz" for step in (20, 40, 60)]


def test_in_a_bucket_it_reads_and_writes_objects_and_needs_no_other_right(
    runs: tuple[Bucket, Mapping[str, str]], continued: list[str]
) -> None:
    assert losses(continued)
    board, again, *checkpoints = sorted((name.removeprefix("run/") for name in runs[0].objects), reverse=True)
    assert checkpoints == [f"checkpoints/00000{step:03}.npz" for step in range(200, 0, -20)]
    assert all(each.startswith("tensorboard/events.out.tfevents.") for each in (board, again))


def test_the_image_has_the_versions_that_are_tested() -> None:
    assert pins(LOCK).items() <= pins(TRAINER / "image.txt").items()
