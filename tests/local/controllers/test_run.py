import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from infra.local.cluster.controllers import Pace, run
from infra.local.cluster.objects import Objects
from tests.local.controllers.cluster import annotated, jobset, node, replicated_job

QUICK = Pace(
    gather=timedelta(milliseconds=1),
    scheduling_backoff=timedelta(),
    pod_start=timedelta(milliseconds=10),
    pod_termination=timedelta(),
)


def clock() -> datetime:
    return datetime.now(UTC)


async def until(objects: Objects, holds: Callable[[], bool]) -> None:
    """Wait for a state of the cluster, for at most ten seconds."""
    async with asyncio.timeout(10):
        while not holds():
            await objects.changed(objects.version)


async def life_of_a_jobset() -> None:
    objects = Objects(clock)
    life = asyncio.create_task(run(objects, clock, QUICK))
    job = replicated_job(replicas=1, pod=annotated(run_seconds="1.2"))
    objects.create("jobsets", jobset("train", job))
    await until(objects, lambda: len(objects.stored("pods")) == 1)
    for host in range(2):
        objects.create("nodes", node(f"host-{host}"))
    await until(objects, lambda: "terminalState" in objects.get("jobsets", "default", "train").get("status", {}))

    assert objects.get("jobsets", "default", "train")["status"]["terminalState"] == "Completed"
    assert not life.done()
    objects.delete("jobsets", "default", "train")
    await until(objects, lambda: not objects.stored("pods"))
    life.cancel()
    with suppress(asyncio.CancelledError):
        await life


def test_a_jobset_lives_and_ends_on_a_loop() -> None:
    asyncio.run(life_of_a_jobset())


async def life_after_a_sweep() -> None:
    objects = Objects(clock)
    about = {"metadata": {"name": "old", "namespace": "default"}, "involvedObject": {"namespace": "default"}}
    objects.create("events", about)
    pace = replace(QUICK, event_life=timedelta(seconds=-2), sweep=timedelta(milliseconds=20))
    life = asyncio.create_task(run(objects, clock, pace))
    await until(objects, lambda: not objects.stored("events"))
    life.cancel()
    with suppress(asyncio.CancelledError):
        await life


def test_a_running_cluster_sweeps_although_nothing_changes() -> None:
    asyncio.run(life_after_a_sweep())
