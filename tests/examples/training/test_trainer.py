"""The trainer learns, continues after a kill, and gives the same whatever it runs on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack

import pytest

from infra.local.ports import free_ports
from tests.examples.training.bucket import bucket
from tests.examples.training.conftest import LOCK, TRAINER, Trainer
from tests.infra.sources import pins

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

STEPS = ("--steps", "200", "--every", "20")


@pytest.fixture(scope="module")
def alone(trainer: Trainer) -> list[str]:
    """What is printed on one device, without an interruption."""
    return trainer.train("alone", *STEPS)


@pytest.fixture(scope="module")
def killed(trainer: Trainer) -> list[str]:
    """What the first of two processes printed that train together, up to where both are killed."""
    (port,) = free_ports(1)
    together = ("--coordinator", f"127.0.0.1:{port}", "--processes", "2", "--process")
    with ExitStack() as both:
        first, second = (both.enter_context(trainer.starting("killed", *STEPS, *together, one)) for one in "01")
        assert first.stdout is not None
        printed = list(until(first.stdout, "step 20:"))
        first.kill()
        second.kill()
        return [*printed, *first.stdout]


@pytest.fixture(scope="module")
def continued(trainer: Trainer, killed: list[str]) -> list[str]:
    """What is printed on four devices of one process that continues where those were killed."""
    assert losses(killed)
    return trainer.train("killed", *STEPS, XLA_FLAGS="--xla_force_host_platform_device_count=4")


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
    assert losses(killed) == pytest.approx({step: losses(alone)[step] for step in losses(killed)}, abs=2e-4)


def test_after_a_kill_four_devices_continue_from_the_last_checkpoint(
    alone: list[str], killed: list[str], continued: list[str]
) -> None:
    done = max(losses(killed))
    (began,) = re.findall(r"4 devices, step (\d+)$", continued[0])
    assert done <= int(began) < 200
    rest = range(int(began) + 20, 201, 20)
    assert losses(continued) == pytest.approx({step: losses(alone)[step] for step in rest}, abs=2e-4)


def test_in_a_bucket_it_reads_and_writes_objects_and_needs_no_other_right(trainer: Trainer, alone: list[str]) -> None:
    with bucket() as (runs, url):
        runs.objects["run/checkpoints/00000160.npz"] = (trainer.folder / "alone/checkpoints/00000160.npz").read_bytes()
        google = {"STORAGE_EMULATOR_HOST": url, "GOOGLE_CLOUD_PROJECT": "shop"}
        printed = trainer.train("gs://runs/run", *STEPS, **google)
    assert losses(printed) == {step: losses(alone)[step] for step in (180, 200)}
    board, *checkpoints = sorted(name.removeprefix("run/") for name in runs.objects)[::-1]
    assert checkpoints == [f"checkpoints/00000{step}.npz" for step in (200, 180, 160)]
    assert board.startswith("tensorboard/events.out.tfevents.")


def test_the_image_has_the_versions_that_are_tested() -> None:
    assert pins(LOCK).items() <= pins(TRAINER / "image.txt").items()
