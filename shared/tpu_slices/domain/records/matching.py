"""By what slices are found without a read for each of the others: texts that are equal.

A claim that waits for a slice and a slice that goes find each other; an event finds the slices that it concerns.
"""

from __future__ import annotations

from datetime import datetime

from tpu_slices.domain.model.reasons import LIMITED, OF_WAITING_GANGS, Phase, Reason
from tpu_slices.domain.model.slices import ClusterId, SliceSpec, WorkloadUid
from tpu_slices.domain.records.slices import SliceRecord


def wants(record: SliceRecord) -> str | None:
    """Return what a claim waits for; None: for nothing, as it says that it is of a gang that waits, or needs none."""
    return needs(record) if record.reason not in OF_WAITING_GANGS else None


def needs(record: SliceRecord) -> str | None:
    """Return what a claim needs, whatever it says; None: it has a slice, or one was requested for it, or it needs none.

    | the claim                                                            | needs                |
    |----------------------------------------------------------------------|----------------------|
    | is not needed, or not known to be possible; is held; is a node group | nothing              |
    | is the place of a spare: nobody needs that                           | nothing              |
    | has a slice, or one was requested for it                             | nothing              |
    | else                                                                 | one for its request  |
    """
    claim, spec = record.claim, record.spec
    if record.unclaimed or not record.wanted or record.hold or record.owner.kind.declares or record.owner.kind.is_spare:
        return None
    if record.current.create_requested_at is not None or spec is None or claim.refusal is not None:
        return None
    return _request(record.cluster, record.owner.namespace, spec)


def offers(record: SliceRecord) -> str | None:
    """Return for what a slice that goes, or a spare, could serve; None: for nothing.

    | the slice                                                                      | could serve          |
    |--------------------------------------------------------------------------------|----------------------|
    | stays, and is no spare                                                         | nobody               |
    | does not stand any more, or its deletion was requested                         | nobody               |
    | is held, or released by an operator; is that of a node group, or was adopted   | nobody               |
    | has hosts that leave by themselves, or that are labelled for one Job           | nobody               |
    | was let go since something is wrong with it, or releases are stopped           | nobody               |
    | else                                                                           | for what it was made |
    """
    current, made_as = record.current, record.made_as
    if not (record.goes or record.owner.kind.is_spare):
        return None
    if record.phase is Phase.GONE or current.create_requested_at is None or made_as is None:
        return None
    if current.delete_requested_at is not None or record.hold or record.release_requested or current.number == 0:
        return None
    if record.owner.kind.declares or made_as.exclusive_nodes or made_as.capacity.max_run_duration is not None:
        return None
    if (record.unclaimed and not record.fits) or record.reason is Reason.RELEASES_STOPPED:
        return None
    return _request(record.cluster, record.owner.namespace, made_as)


def wants_of_any(record: SliceRecord) -> str | None:
    """Return what a claim waits for that may get hosts that another namespace had; None: for nothing."""
    return needs_of_any(record) if record.reason not in OF_WAITING_GANGS else None


def needs_of_any(record: SliceRecord) -> str | None:
    """Return what a claim needs of any namespace; None: it may get nothing of another one, or needs nothing."""
    takes = record.spec is not None and record.spec.takes and needs(record) is not None
    return _of_any(record.cluster, record.spec) if takes and record.spec is not None else None


def offers_to_any(record: SliceRecord) -> str | None:
    """Return for what of any namespace a slice could serve that is warm; None: for nothing in another one."""
    made_as = record.made_as
    if made_as is None or not made_as.crosses or record.reason is not Reason.WARM or offers(record) is None:
        return None
    return _of_any(record.cluster, made_as)


def goes_at(record: SliceRecord) -> datetime | None:
    """Return until when a slice that goes is kept warm; None: it is not, and goes before those that are."""
    warm = record.current.warm
    return warm.until if warm is not None and record.reason is Reason.WARM else None


def users_of(record: SliceRecord) -> set[WorkloadUid]:
    """Return the workloads that a slice is of, that are on its hosts, and that lately left them."""
    hosts = record.current.hosts
    left = (each.user for each in hosts.departures)
    return {record.owner.uid, *(each.owner.uid for each in (*hosts.occupants, *left))}


def hears(record: SliceRecord) -> str | None:
    """Return the `news_of` the workload whose changes concern a slice at once; None: those of none do.

    | the slice                                                            | hears of its workload                |
    |----------------------------------------------------------------------|--------------------------------------|
    | no claim has it                                                      | nothing: it goes                     |
    | it was requested, or stands; or its claim is tried again once the    | everything                           |
    | workload changes                                                     |                                      |
    | was not looked at yet, nothing is left of it, or no leader was known | that its leader waits                |
    | to wait for it                                                       |                                      |
    | else: its claim waits for capacity, chips, a slot, its next try, or  | nothing: it is looked at when that   |
    | is refused                                                           | comes, or once the change has lasted |
    """
    if record.unclaimed:
        return None
    requested = record.current.create_requested_at is not None
    rests = record.phase is Phase.GONE or record.reason in {Reason.REQUESTED, Reason.DEMAND_STALE}
    rejection = record.claim.rejection
    tried_again = rejection is not None and rejection.generation is not None
    concerned = requested or rests or tried_again or record.claim.unawaited_since is not None
    return news_of(record.cluster, record.owner.uid) if concerned else None


def news_of(cluster: ClusterId, workload: WorkloadUid) -> str:
    return f"{cluster} {workload}"


def tells(record: SliceRecord) -> str | None:
    """Return by what a claim's slice is counted among its workload's: phase and reason; None: no claim has it.

    And by the chips that are refused for a limit: those who need the fewest come first. The names of one workload sort
    between `told_of_all`.
    """
    if record.unclaimed:
        return None
    told, _ = told_alike(record.cluster, record.owner.uid, (record.phase, record.reason))
    size = f"{record.spec.chips:06}" if record.reason in LIMITED and record.spec is not None else ""
    return f"{told} {size}"


def told_alike(cluster: ClusterId, workload: WorkloadUid, why: tuple[Phase, Reason]) -> tuple[str, str]:
    """Return what slices of a workload tell that are in a phase for a reason, and what sorts behind all of these."""
    told = " ".join([news_of(cluster, workload), *why])
    return told, f"{told} \uffff"


def told_of_all(cluster: ClusterId, workload: WorkloadUid) -> tuple[str, str]:
    """Return what sorts before and behind what the slices of a workload tell."""
    return f"{news_of(cluster, workload)} ", f"{news_of(cluster, workload)} \uffff"


def _request(cluster: ClusterId, namespace: str, spec: SliceSpec) -> str:
    return f"{cluster} {namespace} {spec.fingerprint}"


def _of_any(cluster: ClusterId, spec: SliceSpec) -> str:
    return f"{cluster} {spec.fingerprint}"


def values_of(spec: SliceSpec) -> tuple[object, ...]:
    """Return what a pool is made as, beside what a fingerprint says."""
    where = (spec.machine_type, spec.zone, spec.capacity)
    return *where, spec.node_labels, spec.taints, spec.service_account, spec.networks
