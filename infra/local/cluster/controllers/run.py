import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime

from infra.local.cluster.controllers import job, jobset, kubelet, node_lifecycle, placement, scheduler
from infra.local.cluster.controllers.pace import Pace
from infra.local.cluster.controllers.rounds import soonest
from infra.local.cluster.controllers.sweeping import sweep
from infra.local.cluster.objects import Objects

_log = logging.getLogger(__name__)

Controller = Callable[[Objects, datetime, Pace], datetime | None]

_CONTROLLERS: tuple[Controller, ...] = (
    node_lifecycle.reconcile,
    jobset.reconcile,
    job.reconcile,
    placement.reconcile,
    scheduler.reconcile,
    kubelet.reconcile,
)


def reconcile(objects: Objects, now: datetime, pace: Pace, guests: Sequence[Controller] = ()) -> datetime | None:
    """Run every controller once; return when one wants to run again even if nothing changes.

    `guests` are optional controllers of a cluster; they run first.
    """
    return soonest([_look(controller, objects, now, pace) for controller in (*guests, *_CONTROLLERS)])


def _look(controller: Controller, objects: Objects, now: datetime, pace: Pace) -> datetime | None:
    """Run one controller. An unexpected error is logged; the other controllers, and the next iteration, continue."""
    try:
        return controller(objects, now, pace)
    except Exception:  # noqa: BLE001 - an error in one controller must not end the cluster
        _log.exception("an iteration of %s failed", controller.__module__)
        return now + pace.retry


async def run(objects: Objects, clock: Callable[[], datetime], pace: Pace, guests: Sequence[Controller] = ()) -> None:
    """Run the controllers until cancelled: an iteration after every change, and at the earliest wake-up time.

    `clock` returns timezone-aware UTC datetimes that advance as the loop's time does. Changes are gathered for
    `pace.gather`, and for at least as long as the last iteration took, so that requests get half of the loop's time.
    """
    loop = asyncio.get_running_loop()
    swept = clock()
    while True:
        if clock() >= swept + pace.sweep:
            swept = clock()
            _look(sweep, objects, swept, pace)
        seen, began = objects.version, loop.time()
        wake = min(reconcile(objects, clock(), pace, guests) or swept + pace.sweep, swept + pace.sweep)
        await asyncio.sleep(max(pace.gather.total_seconds(), loop.time() - began))
        left = max((wake - clock()).total_seconds(), 0)
        with suppress(TimeoutError):
            await asyncio.wait_for(objects.changed(seen), left)
