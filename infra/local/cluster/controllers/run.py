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
    """Let every controller look once; answer when one wants to look again although nothing changes.

    `guests` are controllers that a cluster may go without; they look first.
    """
    return soonest([_look(controller, objects, now, pace) for controller in (*guests, *_CONTROLLERS)])


def _look(controller: Controller, objects: Objects, now: datetime, pace: Pace) -> datetime | None:
    """Let one controller look. What it did not expect is logged: the others, and the next round, go on."""
    try:
        return controller(objects, now, pace)
    except Exception:  # noqa: BLE001 - one controller's mistake must not end the cluster
        _log.exception("a round of %s failed", controller.__module__)
        return now + pace.retry


async def run(objects: Objects, clock: Callable[[], datetime], pace: Pace, guests: Sequence[Controller] = ()) -> None:
    """Keep the cluster alive until cancelled: a round after every change, and at the soonest wake-up.

    `clock` answers aware UTC datetimes that pass as the loop's time does. Changes are gathered for
    `pace.gather`, and for as long as the last round took, so that requests get half of the loop at least.
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
