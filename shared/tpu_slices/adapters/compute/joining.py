"""Hands a bootstrap token on to the hosts of a group, or takes it away, by the metadata of its instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from google.api_core import exceptions as google
from google.cloud.compute_v1.types import Instance, InstanceGroupManager, Items, Metadata

from tpu_slices.adapters.compute.api import CHANGE, Clients, Reads, location
from tpu_slices.domain.model.observations import Failure, FailureKind, Outcome, Refused, Started
from tpu_slices.domain.planning.joining import changed_items
from tpu_slices.ports.clock import Clock

_LONGEST = timedelta(seconds=15)
"""How long instances are changed in one call: it ends within a minute, and is repeated for those that are left."""


def change_metadata(
    clients: Clients, reads: Reads, group: InstanceGroupManager, wanted: Mapping[str, str | None], clock: Clock
) -> Outcome:
    """Change the metadata of each instance of a group that differs; Refused if not every one has it then.

    Instances that do not exist yet, are gone, or were changed by others meanwhile are left to the next call, and so is
    what becomes of a change that was accepted. Raise what the client raises.
    """
    until = clock.now() + _LONGEST
    members = {location(each.instance) for each in reads.instances(group)}
    count, served = max(len(members), group.target_size), 0
    for vm in reads.vms(location(group.zone), group.name):
        items = changed_items([(each.key, each.value) for each in vm.metadata.items], wanted)
        if vm.name not in members or (items is not None and clock.now() >= until):
            continue
        served += items is None or _set(clients, reads, vm, items)
    if served < count:
        message = f"{count - served} of {count} instances do not exist yet, or are being changed."
        return Refused(Failure(FailureKind.BUSY, message))
    return Started(None)


def _set(clients: Clients, reads: Reads, vm: Instance, items: Sequence[tuple[str, str]]) -> bool:
    """Request the change of an instance; return whether it is accepted: it is not if others changed it meanwhile."""
    written = [Items(key=key, value=value) for key, value in items]
    request = {
        "project": reads.project,
        "zone": location(vm.zone),
        "instance": vm.name,
        "metadata_resource": Metadata(fingerprint=vm.metadata.fingerprint, items=written),
    }
    try:
        clients.instances.set_metadata_unary(request=request, **CHANGE)
    except (google.NotFound, google.PreconditionFailed):
        return False
    return True
