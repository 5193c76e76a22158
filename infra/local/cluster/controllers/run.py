import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from infra.local.cluster.controllers import job, jobset, kubelet, scheduler
from infra.local.cluster.controllers.pace import Pace
from infra.local.cluster.controllers.rounds import soonest
from infra.local.cluster.objects import Objects

_CONTROLLERS = (jobset.reconcile, job.reconcile, scheduler.reconcile, kubelet.reconcile)


def reconcile(objects: Objects, now: datetime, pace: Pace) -> datetime | None:
    """Let every controller look once; answer when one wants to look again although nothing changes."""
    return soonest([controller(objects, now, pace) for controller in _CONTROLLERS])


async def run(objects: Objects, clock: Callable[[], datetime], pace: Pace) -> None:
    """Keep the cluster alive until cancelled: a round after every change, and at the soonest wake-up.

    `clock` answers aware UTC datetimes that pass as the loop's time does. Changes are gathered for
    `pace.gather`, and for as long as the last round took, so that requests get half of the loop at least.
    An error of a controller ends the run: a cluster that is half dead would only mislead.
    """
    loop = asyncio.get_running_loop()
    while True:
        seen, began = objects.version, loop.time()
        wake = reconcile(objects, clock(), pace)
        await asyncio.sleep(max(pace.gather.total_seconds(), loop.time() - began))
        left = None if wake is None else max((wake - clock()).total_seconds(), 0)
        with suppress(TimeoutError):
            await asyncio.wait_for(objects.changed(seen), left)
