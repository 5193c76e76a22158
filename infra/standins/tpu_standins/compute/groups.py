"""How managed instance groups create, keep and delete their instances. Pure; times in seconds since 1970."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from google.cloud.compute_v1 import types as gce

from tpu_standins.compute import supply
from tpu_standins.compute.errors import Trouble
from tpu_standins.compute.paths import Resource, instance_name, number, parse_link
from tpu_standins.compute.state import Action, Group, Instance, Record, State, Vm

_RECORDS_KEPT = 200
_WITHOUT_VM = (Action.CREATING, Action.RECREATING)


def populate(state: State, path: Resource, now: float) -> State:
    """Give the group its managed instances, to be created: names without VMs."""
    group = state.groups[path]
    names = (instance_name(group.base_name, f"{path} {group.created}", index) for index in range(group.target))
    made = (
        Instance(
            path=Resource(path.project, path.scope, "instances", name),
            group=path,
            action=Action.CREATING,
            attempt=now,
        )
        for name in names
    )
    return state.with_instances(made)


def leave(state: State, path: Resource, now: float) -> State:
    """Delete all instances of a group that is being deleted."""
    state = state.with_group(replace(state.groups[path], leaving=True))
    return _delete(state, state.members(path), now)


def strangers(state: State, path: Resource, links: Iterable[str]) -> Trouble | None:
    """Return the error of a request for instances that are none of the group's. Code and wording are ours."""
    members = {instance.path for instance in state.members(path)}
    wrong = next((link for link in links if parse_link(link, path.project) not in members), None)
    if wrong is None:
        return None
    message = f"Invalid value for field 'instances': '{wrong}'. It is not a member of {path.link}."
    return Trouble(code="INVALID_FIELD_VALUE", message=message)


def schedule(state: State, path: Resource, links: Iterable[str], verb: str, now: float) -> State:
    """Recreate or delete instances; with each deleted one the target is one less [py-gce target_size]."""
    chosen = {parse_link(link, path.project) for link in links}
    members = [each for each in state.members(path) if each.path in chosen and each.action is not Action.DELETING]
    if verb == "recreateInstances":
        return state.with_instances(_recreated(each, now, state.pace.delete) for each in members)
    group = state.groups[path]
    state = state.with_group(replace(group, target=group.target - len(members)))
    return _delete(state, members, now)


def _delete(state: State, members: Iterable[Instance], now: float) -> State:
    members = tuple(members)
    for each in members:
        if each.vm is None:
            state = state.without(each.path)
    with_vms = (each for each in members if each.vm is not None)
    return state.with_instances(
        replace(each, action=Action.DELETING, vm=_ending(each.vm, now + state.pace.delete)) for each in with_vms
    )


def _recreated(instance: Instance, now: float, delete: float) -> Instance:
    """Return the instance whose VM is to be deleted, and created again under the same name."""
    vm = None if instance.vm is None else _ending(instance.vm, now + delete)
    return replace(instance, action=Action.RECREATING, vm=vm, attempt=now)


def _ending(vm: Vm | None, ends: float) -> Vm | None:
    return None if vm is None else replace(vm, ends=ends if vm.ends is None else vm.ends)


def written(state: State, path: Resource, metadata: Mapping[str, str]) -> State:
    """Return the state with the metadata of an instance, if it still has a VM."""
    instance = state.instances.get(path)
    if instance is None or instance.vm is None:
        return state
    return state.with_instances([replace(instance, vm=replace(instance.vm, metadata=metadata))])


def described(state: State, path: Resource, description: str) -> State:
    """Return the state with another description of a group."""
    group = state.groups[path]
    message = gce.InstanceGroupManager(group.message)
    message.description = description
    return state.with_group(replace(group, message=message))


def failed(instance: Instance, now: float, *, for_good: bool) -> Instance:
    """Return the instance whose VM's host failed. `for_good`: Compute does not restart it."""
    if instance.vm is None or instance.vm.stops is not None:
        return instance
    return replace(instance, vm=replace(instance.vm, noticed=now, stops=now, for_good=for_good))


def preempted(instance: Instance, now: float, shutdown: float) -> Instance:
    """Return the instance whose VM stops after a notice."""
    if instance.vm is None or instance.vm.stops is not None:
        return instance
    vm = replace(instance.vm, noticed=now, stops=now + shutdown, preempted=True, for_good=True)
    return replace(instance, vm=vm)


def pass_time(state: State, now: float) -> State:
    """Return the state at `now`: VMs end, failed ones are replaced, missing ones are created."""
    for instance in tuple(state.instances.values()):
        state = _ended(state, instance, now)
    for instance in tuple(state.instances.values()):
        if _repair_due(state, instance) <= now:
            state = state.with_instances([_repaired(state, instance, now)])
    for group, due in _lacking(state, now).items():
        state = _supplied(state, state.groups[group], due, now)
    running = (each for each in state.instances.values() if each.action in _WITHOUT_VM and _runs(each) <= now)
    return state.with_instances(replace(each, action=Action.NONE, trouble=None) for each in tuple(running))


def _ended(state: State, instance: Instance, now: float) -> State:
    """Take a VM away whose deletion is done, or that was to be deleted when it stops [py-gce Scheduling]."""
    vm = instance.vm
    if vm is None or now < _end(state, instance, vm):
        return state
    if instance.action is Action.DELETING:
        return state.without(instance.path)
    return state.with_instances([replace(instance, vm=None, attempt=now)])


def _end(state: State, instance: Instance, vm: Vm) -> float:
    if vm.ends is not None:
        return vm.ends
    if vm.stops is None or not vm.preempted:
        return float("inf")
    scheduling = state.templates[state.groups[instance.group].template].message.properties.scheduling
    return vm.stops if scheduling.instance_termination_action == "DELETE" else float("inf")


def _repair_due(state: State, instance: Instance) -> float:
    """Return when a VM that failed is restarted by Compute, or recreated by its group.

    [py-gce Scheduling.automatic_restart, DefaultActionOnFailure]. That of the two Compute is first, is our choice. TPU
    spot VMs that were preempted come back only with a new group [doc:tpu/spot-compute].
    """
    group, vm = state.groups[instance.group], instance.vm
    since = instance.attempt if vm is None else vm.stops
    if since is None or instance.action is not Action.NONE or group.leaving or _lost_spot(state, instance):
        return float("inf")
    return since + state.pace.repair if group.repairs or _restarts(state, instance) else float("inf")


def _lost_spot(state: State, instance: Instance) -> bool:
    spot = state.templates[state.groups[instance.group].template].provisioning == "SPOT"
    return spot and (instance.vm is None or instance.vm.preempted)


def _restarts(state: State, instance: Instance) -> bool:
    """Return whether Compute itself restarts a VM that failed; the default for standard VMs is that it does."""
    template = state.templates[state.groups[instance.group].template]
    scheduling = template.message.properties.scheduling
    chosen = "automatic_restart" not in scheduling or scheduling.automatic_restart
    standard = template.provisioning == "STANDARD"
    return instance.vm is not None and not instance.vm.for_good and standard and chosen


def _repaired(state: State, instance: Instance, now: float) -> Instance:
    """Return the instance whose VM is restarted, with the disk and the metadata that it has, or recreated."""
    if instance.vm is None or not _restarts(state, instance):
        return _recreated(instance, now, state.pace.delete)
    vm = replace(instance.vm, noticed=None, stops=None, staged=now, runs=now + state.pace.create / 2)
    return replace(instance, vm=vm, life=instance.life + 1)


def _lacking(state: State, now: float) -> Mapping[Resource, list[Instance]]:
    """Return the instances whose VMs it is time to create, by group."""
    found: dict[Resource, list[Instance]] = {}
    for each in state.instances.values():
        if each.action in _WITHOUT_VM and each.vm is None and each.attempt <= now:
            found.setdefault(each.group, []).append(each)
    return found


def _supplied(state: State, group: Group, due: list[Instance], now: float) -> State:
    """Try to create VMs of a group: with BULK all that it lacks, whichever of them it is time for."""
    if group.bulk:
        lacking = [each for each in state.members(group.path) if each.action in _WITHOUT_VM]
        if any(each.vm and each.vm.ends for each in lacking):
            return state  # VMs have to go before all can be created at once
        due = [each for each in lacking if each.vm is None]
    state, granted, trouble, told = supply.available(state, group, len(due))
    made = [replace(each, vm=_new_vm(state, each, now), life=each.life + 1) for each in due[:granted]]
    state = state.with_instances(made)
    if trouble is None:
        return state.with_group(replace(group, check=None))
    return _told(state, group, due[granted:], (trouble, now), told)


def _told(state: State, group: Group, rest: list[Instance], check: tuple[Trouble, float], told: str) -> State:
    """Tell why VMs were not created.

    In the group's `lastProgressCheck` with BULK [doc:view-cancel-vm-bulk-creation-in-migs], and in each instance's
    `lastAttempt` [py-gce ManagedInstance]; whether BULK has the latter too is not known: `Fault.told`.
    """
    trouble, now = check
    in_group = group.bulk and told in ("both", "group")
    on_instances = not group.bulk or told in ("both", "instances")
    retried = (
        replace(each, attempt=now + state.pace.retry, trouble=trouble if on_instances else None) for each in rest
    )
    state = state.with_instances(retried).with_group(replace(group, check=check if in_group else None))
    if not on_instances:
        return state
    new = (Record(group=group.path, instance=each.path, action=each.action, trouble=trouble, at=now) for each in rest)
    return replace(state, records=(*state.records, *new)[-_RECORDS_KEPT:])


def _new_vm(state: State, instance: Instance, now: float) -> Vm:
    """Return a VM with its template's metadata, and with what a group adds to it: `created-by`, `instance-template`.

    GKE's device plugin reads the first [tpuop]; the form, with the project's number, is seen on VMs of groups. What is
    configured for all instances overrides the template [py-gce all_instances_config].
    """
    group = state.groups[instance.group]
    items = state.templates[group.template].message.properties.metadata.items
    numbered = number(group.path.project)
    links = {
        "created-by": f"projects/{numbered}/{group.path.scope}/{group.path.collection}/{group.path.name}",
        "instance-template": f"projects/{numbered}/{group.template.scope}/instanceTemplates/{group.template.name}",
    }
    return Vm(
        born=now,
        staged=now + state.pace.create / 2,
        runs=now + state.pace.create,
        metadata={**{item.key: item.value for item in items}, **_for_all(group), **links},
    )


def _for_all(group: Group) -> Mapping[str, str]:
    return dict(group.message.all_instances_config.properties.metadata)


def _runs(instance: Instance) -> float:
    vm = instance.vm
    return float("inf") if vm is None or vm.ends is not None else vm.runs


def milestones(state: State) -> Iterator[float]:
    """Yield the times at which an instance changes, or what runs on it."""
    pace = state.pace
    for each in state.instances.values():
        yield _repair_due(state, each)
        if each.vm is None:
            yield each.attempt if each.action in _WITHOUT_VM else float("inf")
            continue
        vm = each.vm
        yield from (at for at in (vm.noticed, vm.stops, vm.ends) if at is not None)
        for later in (0.0, pace.join, pace.join + pace.ready, pace.join + pace.ready + pace.chips):
            yield vm.runs + later
