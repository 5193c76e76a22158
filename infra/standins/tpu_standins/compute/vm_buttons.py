"""Buttons for what happens to VMs. Each acts on one instance or on all of a group, and takes a JSON object. Pure.

POST /instances/kill     {"instance": NAME} or {"group": NAME}: the VM fails, as with its host. Compute restarts a
                         standard VM whose template lets it [py-gce automatic_restart]; else its group repairs it, if
                         it does; else it stays TERMINATED. {"for_good": true}: Compute does not restart it.
POST /instances/preempt  the same, of spot VMs: a notice, then they stop or are deleted, as their template says
POST /instances/silence  the VM runs, but its kubelet does not answer any more
POST /instances/heal     it answers again
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tpu_standins.cloud.buttons import UnknownThingError
from tpu_standins.compute import groups
from tpu_standins.compute.state import Action, Instance, State

Body = Mapping[str, Any]
VmButton = Callable[[State, Body, float], State]


def _kill(state: State, body: Body, now: float) -> State:
    good = bool(body.get("for_good", False))
    return state.with_instances(groups.failed(each, now, for_good=good) for each in _running(state, body, now))


def _preempt(state: State, body: Body, now: float) -> State:
    chosen = _running(state, body, now)
    kept = [each for each in chosen if state.templates[state.groups[each.group].template].provisioning != "SPOT"]
    if kept:
        raise UnknownThingError(f"{kept[0].path.name} is no spot VM")
    return state.with_instances(groups.preempted(each, now, state.pace.shutdown) for each in chosen)


def _silence(state: State, body: Body, now: float) -> State:
    return state.with_instances(_with_silence(each, silent=True) for each in _running(state, body, now))


def _heal(state: State, body: Body, now: float) -> State:
    return state.with_instances(_with_silence(each, silent=False) for each in _running(state, body, now))


def _with_silence(instance: Instance, *, silent: bool) -> Instance:
    assert instance.vm is not None
    return replace(instance, vm=replace(instance.vm, silent=silent))


def _running(state: State, body: Body, now: float) -> list[Instance]:
    """Return the chosen instances that have a running VM. Raise UnknownThingError if there are none."""
    name, group = body.get("instance"), body.get("group")
    chosen = [each for each in state.instances.values() if name == each.path.name or group == each.group.name]
    running = [each for each in chosen if each.vm is not None and each.vm.status(now) == "RUNNING"]
    usable = [each for each in running if each.action is Action.NONE]
    if not usable:
        raise UnknownThingError(f"no running VM: {name or group}")
    return usable


VM_BUTTONS: Mapping[str, VmButton] = {
    "/instances/kill": _kill,
    "/instances/preempt": _preempt,
    "/instances/silence": _silence,
    "/instances/heal": _heal,
}
