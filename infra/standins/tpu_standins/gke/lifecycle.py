"""What an accepted request starts, and how it progresses over time. Pure; times in seconds since 1970."""

import math
from collections.abc import Iterator
from dataclasses import replace
from uuid import NAMESPACE_URL, uuid5

from google.cloud.container_v1 import NodePool
from google.cloud.container_v1 import Operation as Wire

from tpu_standins.cloud.timed import Moment
from tpu_standins.gke import faults, outages
from tpu_standins.gke.flex import filling
from tpu_standins.gke.paths import instance_names, instance_stem, operation_name
from tpu_standins.gke.rules import Ask
from tpu_standins.gke.state import Failure, Fault, Host, Kind, Operation, Pool, State

_Status = NodePool.Status
_Type = Wire.Type


def begin_create(ask: Ask, fault: Fault | None, moment: Moment) -> tuple[State, Operation]:
    """Create the pool, immediately visible as PROVISIONING; its VMs follow later, all or none [doc:concepts/tpus]."""
    state, pace, machine = ask.state, ask.state.pace, ask.machine
    name = ask.cluster.path.name
    pool = Pool(
        path=ask.pool_path,
        cluster=ask.cluster_path,
        spec=NodePool(ask.spec),
        machine=machine,
        topology=ask.topology or machine.single_host,
        zones=ask.zones,
        stem=instance_stem(name, ask.name, moment.token),
        status=_Status.PROVISIONING,
    )
    slower = _slower(fault)
    hosts = _new_hosts(pool, moment.now + pace.create + slower + pace.join)
    plan, takes = _plan(state, fault, pool, hosts[0])
    if fault and fault.kind is Kind.SLOW_END:
        takes += pace.join + fault.seconds
    operation = Operation(
        name=operation_name(moment.now, moment.token),
        kind=_Type.CREATE_NODE_POOL,
        cluster=pool.cluster,
        target=pool.path,
        started=moment.now,
        due=moment.now + takes + slower,
        plan=plan,
    )
    if ask.spec.config.flex_start:
        pool = replace(pool, fills=operation.due + pace.fill)
    if ask.spec.config.flex_start or (fault and fault.kind in {Kind.NEVER_JOINS, Kind.HELD}):
        hosts = tuple(replace(host, boots=None) for host in hosts)
    state = state.with_pool(pool).with_operation(operation)
    return (state if plan else state.with_hosts(*hosts)), operation


def _plan(state: State, fault: Fault | None, pool: Pool, first: Host) -> tuple[Failure | None, float]:
    """Return how the creation will end (None: successfully), decided in advance, and how many seconds it takes."""
    pace = state.pace
    match fault:
        case Fault(kind=Kind.STOCKOUT, conditions_only=only, available=elsewhere):
            short = faults.stockout(pool, first.name, pace.stockout, elsewhere)
            return replace(short, conditions_only=only), pace.stockout
        case Fault(kind=Kind.QUOTA, conditions_only=only):
            return replace(faults.quota(pool, first.name, pace.quota), conditions_only=only), pace.quota
        case _:
            return None, pace.create


def _new_hosts(pool: Pool, boots: float) -> tuple[Host, ...]:
    names = instance_names(pool.stem, pool.size)
    return tuple(
        Host(name=name, pool=pool.path, zone=pool.zones[index % len(pool.zones)], boots=boots)
        for index, name in enumerate(names)
    )


def begin_delete(ask: Ask, fault: Fault | None, moment: Moment) -> tuple[State, Operation]:
    """Start the deletion and cordon the Nodes: the pool is unusable now [py-gke Operation.Type.DELETE_NODE_POOL]."""
    state = ask.state
    due = moment.now + state.pace.delete + _slower(fault)
    state, operation = _begin(state, _Type.DELETE_NODE_POOL, ask.pool_path, due, moment)
    if fault and fault.kind is Kind.DELETE_FAILS:
        state = state.with_operation(replace(operation, plan=faults.not_deleted(usable=fault.usable)))
    hosts = (replace(host, cordoned=True) for host in state.hosts_of(ask.pool_path))
    return state.with_pool(replace(state.pools[ask.pool_path], status=_Status.STOPPING)).with_hosts(*hosts), operation


def begin_update(ask: Ask, fault: Fault | None, moment: Moment) -> tuple[State, Operation]:
    """Start an update of labels, which makes no VM anew [doc:how-to/update-existing-nodepools]; RECONCILING meanwhile.

    Its type: [py-gke Operation.Type.UPGRADE_NODES] "this includes most forms of updates to node pools".
    """
    due = moment.now + ask.state.pace.update + _slower(fault)
    state, operation = _begin(ask.state, _Type.UPGRADE_NODES, ask.pool_path, due, moment)
    operation = replace(operation, spec=ask.spec)
    pool = replace(state.pools[ask.pool_path], status=_Status.RECONCILING)
    return state.with_pool(pool).with_operation(operation), operation


def _slower(fault: Fault | None) -> float:
    """Return how much longer an operation takes: without end if it is held."""
    match fault:
        case Fault(kind=Kind.SLOW):
            return fault.seconds
        case Fault(kind=Kind.HELD):
            return math.inf
        case _:
            return 0.0


def held(state: State) -> tuple[Operation, ...]:
    """Return the operations on node pools that last until they are let go."""
    running = (each for each in state.operations.values() if each.ended is None and each.target in state.pools)
    return tuple(each for each in running if each.due == math.inf)


def let_go(state: State, operation: Operation, now: float) -> State:
    """Let a held operation go on, as if its own work were done now; the VMs of a creation run then."""
    pool = state.pools[operation.target]
    state = state.with_operation(replace(operation, due=now))
    if operation.kind != _Type.CREATE_NODE_POOL:
        return state
    if pool.fills is not None:
        return state.with_pool(replace(pool, fills=now + state.pace.fill))
    return state.with_hosts(*(replace(host, boots=now + state.pace.join) for host in state.hosts_of(pool.path)))


def begin_abort(state: State, operation: Operation, now: float) -> State:
    """Start to cancel a creation: VMs that do not run yet never will; the others stay in the pool."""
    waiting = (host for host in state.hosts_of(operation.target) if host.boots is None or host.boots > now)
    aborting = replace(operation, aborting=True, plan=faults.cancelled(), due=now + state.pace.abort)
    return state.with_operation(aborting).with_hosts(*(replace(host, boots=None) for host in waiting))


def begin_repair(state: State, pool: str, moment: Moment, lasts: float | None = None) -> tuple[State, Operation]:
    """Start recreating all VMs, as GKE does if one VM of a slice breaks [doc:concepts/tpus]; RECONCILING meanwhile.

    `lasts`: in seconds; None: as the pace says.
    """
    state, operation = _begin_work(state, _Type.AUTO_REPAIR_NODES, pool, moment, lasts)
    return outages.made_anew(state, pool, operation.due + state.pace.join), operation


def begin_upgrade(state: State, pool: str, moment: Moment, lasts: float | None = None) -> tuple[State, Operation]:
    """Start an upgrade: a multi-host pool is replaced as a whole [gke-upgrades], by VMs with names of their own."""
    state, operation = _begin_work(state, _Type.UPGRADE_NODES, pool, moment, lasts)
    return outages.replaced(state, state.pools[pool], operation.due + state.pace.join), operation


def _begin_work(state: State, kind: int, pool: str, moment: Moment, lasts: float | None) -> tuple[State, Operation]:
    due = moment.now + (state.pace.repair if lasts is None else lasts)
    state, operation = _begin(state, kind, pool, due, moment)
    return state.with_pool(replace(state.pools[pool], status=_Status.RECONCILING)), operation


def begin_on_cluster(state: State, cluster: str, kind: int, due: float, moment: Moment) -> State:
    """Start an operation of CLUSTER_KINDS, as GKE itself or a user would."""
    return _begin(state, kind, cluster, due, moment)[0]


def _begin(state: State, kind: int, target: str, due: float, moment: Moment) -> tuple[State, Operation]:
    operation = Operation(
        name=operation_name(moment.now, moment.token),
        kind=kind,
        cluster=target.partition("/nodePools/")[0],
        target=target,
        started=moment.now,
        due=due,
    )
    return state.with_operation(operation), operation


def advance(state: State, now: float) -> tuple[State, tuple[Operation, ...]]:
    """Return the state at `now`, and the operations that ended on the way."""
    state = _repaired(outages.pass_time(filling.pass_time(state, now), now), now)
    ended: list[Operation] = []
    for operation in tuple(state.operations.values()):
        if operation.ended is not None or now < operation.due:
            continue
        state = _finish(state, operation, now)
        after = state.operations[operation.name]
        if after.ended is not None:
            ended.append(after)
    return _forgetful(state, now), tuple(ended)


def _repaired(state: State, now: float) -> State:
    """Start GKE's automatic repairs. They have no caller, so their names are derived from the pool and the time."""
    for pool in outages.to_be_repaired(state, now):
        token = str(uuid5(NAMESPACE_URL, f"{pool.path} {now}"))
        state, _ = begin_repair(state, pool.path, Moment(now, token))
    return state


def _forgetful(state: State, now: float) -> State:
    """Return the state without operations that ended longer ago than `Pace.history`."""
    oldest = now - state.pace.history
    if all(operation.ended is None or operation.ended > oldest for operation in state.operations.values()):
        return state
    kept = {name: op for name, op in state.operations.items() if op.ended is None or op.ended > oldest}
    return replace(state, operations=kept)


def _finish(state: State, operation: Operation, now: float) -> State:
    match operation.kind:
        case _Type.UPGRADE_NODES if operation.spec is not None:
            pool = replace(state.pools[operation.target], status=_Status.RUNNING, spec=operation.spec)
            return _ended(state.with_pool(pool), operation, now)
        case _Type.CREATE_NODE_POOL | _Type.AUTO_REPAIR_NODES | _Type.UPGRADE_NODES:
            return _finish_joining(state, operation, now)
        case _Type.DELETE_NODE_POOL:
            return _finish_delete(state, operation, now)
        case _:
            return _ended(state, operation, now)


def _finish_joining(state: State, operation: Operation, now: float) -> State:
    """End the creation once every host's Node is registered; it becomes Ready and offers its chips only after that."""
    pool = state.pools[operation.target]
    hosts = () if pool.spec.config.flex_start else state.hosts_of(pool.path)
    joined = [host for host in hosts if (host.name, host.life) in state.nodes]
    failure = operation.plan
    if failure is None and len(joined) < len(hosts):
        if now < operation.due + state.pace.join_limit:
            return state
        failure = faults.not_registered(pool, len(joined))
    status = failure.pool_status if failure else _Status.RUNNING
    return _ended(state.with_pool(replace(pool, status=status, failure=failure)), operation, now, failure)


def _finish_delete(state: State, operation: Operation, now: float) -> State:
    """Remove the VMs first, and the pool once their Nodes are gone or `Pace.join_limit` has passed."""
    if operation.plan is not None:
        return _keep(state, operation, now, operation.plan)
    names = {host.name for host in state.hosts_of(operation.target)}
    standing = any(name in names for name, _ in state.nodes)
    if standing and now < operation.due + state.pace.join_limit:
        return state.with_hosts(*(replace(host, leaving=True) for host in state.hosts_of(operation.target)))
    return _ended(state.without_pool(operation.target), operation, now)


def _keep(state: State, operation: Operation, now: float, why: Failure) -> State:
    """End a deletion that failed: the pool and its VMs stay, and new pods may come."""
    shown = None if why.pool_status == _Status.RUNNING else why
    pool = replace(state.pools[operation.target], status=why.pool_status, failure=shown)
    hosts = (replace(host, cordoned=False) for host in state.hosts_of(operation.target))
    return _ended(state.with_pool(pool).with_hosts(*hosts), operation, now, why)


def _ended(state: State, operation: Operation, now: float, error: Failure | None = None) -> State:
    return state.with_operation(replace(operation, ended=now, error=error))


def next_change(state: State, now: float) -> float:
    """Return when the passing of time will next change the state; infinity: never."""
    return min((at for at in _milestones(state) if at > now), default=math.inf)


def _milestones(state: State) -> Iterator[float]:
    for operation in state.operations.values():
        if operation.ended is None:
            yield operation.due
            yield operation.due + state.pace.join_limit
    yield from outages.milestones(state)
    yield from filling.milestones(state)
    yield from (fault.until for fault in state.faults if fault.until is not None)
    for host in state.hosts.values():
        if host.boots is not None:
            yield host.boots
            yield host.boots + state.pace.ready
            yield host.boots + state.pace.ready + state.pace.chips
