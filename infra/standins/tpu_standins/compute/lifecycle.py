"""What an accepted request starts, and how it progresses over time. Pure; times in seconds since 1970."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tpu_standins.cloud.faults import lasting
from tpu_standins.cloud.timed import Moment
from tpu_standins.compute import faults, groups
from tpu_standins.compute.paths import Resource, operation_name
from tpu_standins.compute.refusals.groups import misfit, policy_path, template
from tpu_standins.compute.refusals.rules import Ask
from tpu_standins.compute.reservations import times
from tpu_standins.compute.state import Fault, Group, Kind, Operation, Policy, State, Template


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """An accepted call that starts an operation: its method, its requestId, and the fault of the operation."""

    method: str
    moment: Moment
    request: str = ""
    fault: Fault | None = None

    def operation(self, target: Resource, seconds: float) -> Operation:
        """Return the operation, which takes so many seconds if nothing slows it."""
        now, fault = self.moment.now, self.fault
        slower = fault.seconds if fault and fault.kind is Kind.SLOW else 0.0
        name = operation_name(now, self.moment.token)
        return Operation(
            path=Resource(target.project, target.scope, "operations", name),
            method=self.method,
            target=target,
            started=now,
            due=now + seconds + slower,
            request=self.request,
            plan=faults.failed(fault) if fault and fault.kind is Kind.FAILS else None,
        )


def insert_policy(ask: Ask, start: Start) -> tuple[State, Operation]:
    operation = start.operation(ask.path, ask.state.pace.insert)
    policy = Policy(path=ask.path, message=ask.body, created=ask.now, ready=operation.due)
    return ask.state.with_policy(policy).with_operation(operation), operation


def insert_template(ask: Ask, start: Start) -> tuple[State, Operation]:
    operation = start.operation(ask.path, ask.state.pace.insert)
    made = Template(path=ask.path, message=ask.body, created=ask.now, ready=operation.due)
    return ask.state.with_template(made).with_operation(operation), operation


def insert_group(ask: Ask, start: Start) -> tuple[State, Operation]:
    """Create the group; its managed instances exist once the operation ended, its VMs later [doc:about-bulk-mode]."""
    operation = start.operation(ask.path, ask.state.pace.insert)
    policy, size = policy_path(ask), ask.body.target_size
    wrong = misfit(template(ask).machine, ask.state.policies.get(policy) if policy else None, size)
    operation = replace(operation, plan=operation.plan or wrong)
    group = Group(
        path=ask.path,
        message=ask.body,
        template=template(ask).path,
        policy=policy,
        created=ask.now,
        ready=operation.due,
        target=size,
    )
    return ask.state.with_group(group).with_operation(operation), operation


def delete(ask: Ask, start: Start) -> tuple[State, Operation]:
    """Start the deletion of a policy, a template or a group; a group's VMs are deleted first."""
    operation = start.operation(ask.path, ask.state.pace.remove)
    state = ask.state.with_operation(operation)
    if ask.path in state.groups and operation.plan is None:
        slower = operation.due - ask.now - state.pace.remove
        state = groups.leave(state, ask.path, ask.now + slower)
    return state, operation


def on_instances(ask: Ask, start: Start) -> tuple[State, Operation]:
    """Start recreateInstances or deleteInstances, which end once it is scheduled [doc:reference/rest/v1].

    If one of the instances is none of the group's, the operation fails [py-gce DeleteInstances].
    """
    operation = start.operation(ask.path, ask.state.pace.remove)
    strangers = groups.strangers(ask.state, ask.path, ask.body.instances)
    operation = replace(operation, plan=operation.plan or strangers)
    state = ask.state.with_operation(operation)
    if operation.plan is None:
        state = groups.schedule(state, ask.path, ask.body.instances, operation.verb, ask.now)
    return state, operation


def set_metadata(ask: Ask, start: Start) -> tuple[State, Operation]:
    """Start to write an instance's metadata, which others see once the operation ended."""
    operation = start.operation(ask.path, ask.state.pace.metadata)
    written = {item.key: item.value for item in ask.body.items}
    operation = replace(operation, metadata=written)
    return ask.state.with_operation(operation), operation


def patch_group(ask: Ask, start: Start) -> tuple[State, Operation]:
    """Start to write a group's description, which others see once the operation ended."""
    operation = start.operation(ask.path, ask.state.pace.metadata)
    operation = replace(operation, description=ask.body.description)
    return ask.state.with_operation(operation), operation


def advance(state: State, now: float) -> tuple[State, tuple[Operation, ...]]:
    """Return the state at `now`, and the operations that ended on the way."""
    state = times.pass_time(replace(state, faults=lasting(state.faults, now)), now)
    state = groups.pass_time(state, now)
    ended: list[Operation] = []
    for operation in tuple(state.operations.values()):
        if operation.ended is not None or now < operation.due or _waits(state, operation):
            continue
        state = _finish(state, operation, now)
        ended.append(state.operations[operation.path])
    if ended:
        state = groups.pass_time(state, now)
    return _forgetful(state, now), tuple(ended)


def _waits(state: State, operation: Operation) -> bool:
    """Return whether it is the deletion of a group that still has VMs."""
    leaving = operation.verb == "delete" and operation.plan is None and operation.target in state.groups
    return leaving and bool(state.members(operation.target))


def _finish(state: State, operation: Operation, now: float) -> State:
    state = state.with_operation(replace(operation, ended=now, error=operation.plan))
    if operation.plan is not None:
        return state.without(operation.target) if operation.verb == "insert" else state
    match operation.verb:
        case "insert" if operation.target in state.groups:
            return groups.populate(state, operation.target, now)
        case "delete":
            return state.without(operation.target)
        case "patch" if operation.target in state.groups:
            return groups.described(state, operation.target, operation.description or "")
        case "setMetadata":
            return groups.written(state, operation.target, operation.metadata or {})
        case _:
            return state


def _forgetful(state: State, now: float) -> State:
    """Return the state without operations that ended longer ago than `Pace.history`."""
    oldest = now - state.pace.history
    if all(operation.ended is None or operation.ended > oldest for operation in state.operations.values()):
        return state
    kept = {path: op for path, op in state.operations.items() if op.ended is None or op.ended > oldest}
    return replace(
        state,
        operations=kept,
        requests={key: path for key, path in state.requests.items() if path in kept},
    )


def next_change(state: State, now: float) -> float:
    """Return when the passing of time will next change the state; infinity: never."""
    return min((at for at in _milestones(state) if at > now), default=math.inf)


def _milestones(state: State) -> Iterator[float]:
    yield from _of_operations(state.operations.values())
    yield from groups.milestones(state)
    yield from times.milestones(state)
    yield from (fault.until for fault in state.faults if fault.until is not None)


def _of_operations(operations: Iterable[Operation]) -> Iterator[float]:
    return (operation.due for operation in operations if operation.ended is None)
