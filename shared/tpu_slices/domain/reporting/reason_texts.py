"""The text for each reason: what a slice waits for, and what can be done about it. Pure.

`message` follows the names of the slices ("slice-0 and slice-1: ..."); `remedy` is a sentence of its own. Both may name
the `{kind}` of the workload, and what runs the slice as `{vendor}` (`Vendor` has its words).
`{detail}` is the slice's own message, which names keys, values and limits, or why the cluster is paused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from tpu_slices.domain.model.facts import Pinning
from tpu_slices.domain.model.reasons import SERVED, Phase, Reason
from tpu_slices.domain.model.texts import clock
from tpu_slices.domain.model.vendors import COMPUTE_ENGINE, GKE, Vendor
from tpu_slices.domain.records import attempts_told
from tpu_slices.domain.records.heartbeats import SILENT_AFTER
from tpu_slices.domain.records.slices import SliceRecord


@dataclass(frozen=True, slots=True)
class ReasonText:
    message: str
    remedy: str = ""
    only: Vendor | None = None
    """Where alone a slice can have the reason; None: everywhere."""


_NO_ACTION = "No action needed."
_COME_BACK = "No action needed: the same slice goes on once its hosts are back, and none is bought beside it."
_RETRIED = "It is retried automatically."
_CHANGE_IT = "Change the {kind} and create it again; `slices plan -f FILE` shows in advance what it would get."
_OPERATOR = "Contact the operator of the cluster; `slices explain` shows the details."

_CONFIRM = "Ask the operator of the cluster to look whether the workloads are really gone, and to confirm that."

RELAY_NAMESPACE = "tpu-slice-provisioner"
"""The namespace of the relay's pods in its cluster."""

REASON_TEXTS: Mapping[Reason, ReasonText] = MappingProxyType(
    {
        Reason.REQUESTED: ReasonText("not reconciled yet", _NO_ACTION),
        Reason.OPERATION_LIMIT: ReasonText("queued, because {vendor.limit}", _NO_ACTION),
        Reason.AWAITING_TURN: ReasonText("{shortage}", "No action needed: one slice at a time tries. {sooner}"),
        Reason.RESERVATION_NOT_OPEN: ReasonText(
            "{detail}",
            "No action needed if the reservation is meant: it is asked for once it has room. Other capacity may be "
            "there sooner; `gcloud compute reservations list` has the reservations.",
        ),
        Reason.DEMAND_STALE: ReasonText(
            "the relay did not confirm lately that a leader pod needs it",
            "No action needed if its Job is running; otherwise ask the operator of the cluster whether the relay runs.",
        ),
        Reason.AWAITING_GANG: ReasonText("{detail}", _NO_ACTION),
        Reason.SPARE_WAITS: ReasonText(
            "{detail}", "Change what the message names, if it is not demand that comes first."
        ),
        Reason.CREATION_STARTED: ReasonText("requested from {vendor}", _NO_ACTION),
        Reason.CREATING: ReasonText(
            "{vendor} is creating {hosts} hosts in {zone}",
            "No action needed: this takes minutes, and {vendor.slowest}.",
        ),
        Reason.AWAITING_FLEX_START: ReasonText(
            "waiting for flex-start capacity: GKE adds {hosts} hosts in {zone} when it has them, and takes them back "
            "after {run_duration}",
            "No action needed: this may take hours or days. What a Job has not saved when GKE takes its hosts back is "
            "lost, and the JobSet's failure policy decides whether it waits again.",
            only=GKE,
        ),
        Reason.AWAITING_CAPACITY: ReasonText(
            "waiting for capacity: Compute Engine starts all {hosts} hosts in {zone} when it has them",
            "No action needed: Compute Engine goes on trying. {sooner}",
            only=COMPUTE_ENGINE,
        ),
        Reason.HOSTS_JOINING: ReasonText("{usable} of {hosts} hosts are ready and offer their chips", _NO_ACTION),
        Reason.HOSTS_LOST: ReasonText(
            "only {usable} of {hosts} hosts are still ready",
            "{vendor.repair}, and the {kind}'s policy for failures restarts its pods. Run `kubectl uncordon` for a "
            "host that was cordoned.",
        ),
        Reason.POOL_BUSY: ReasonText("{detail}", _NO_ACTION),
        Reason.GKE_UPGRADES: ReasonText("{detail}", _COME_BACK, only=GKE),
        Reason.GKE_REPAIRS: ReasonText("{detail}", _COME_BACK, only=GKE),
        Reason.UNDER_MAINTENANCE: ReasonText("{detail}", _COME_BACK, only=GKE),
        Reason.PREEMPTED: ReasonText(
            "{detail}", f"{_COME_BACK} Another zone, on-demand hosts or a reservation may be available sooner."
        ),
        Reason.POOL_BROKEN: ReasonText(
            "{vendor} reports an error for its {vendor.pool}, which is kept for repair while its Job runs", _OPERATOR
        ),
        Reason.LEADER_STILL_WAITING: ReasonText(
            "all hosts are ready, but its leader pod is not scheduled",
            "Run `kubectl describe pod` for the leader pod: it requires something that these hosts do not have.",
        ),
        Reason.PODS_NOT_RUNNING: ReasonText(
            "{detail}",
            "Run `kubectl describe pod` for the pod that is named; if it does not exist, `kubectl describe job`, or "
            "`kubectl describe statefulset` for a LeaderWorkerSet.",
        ),
        Reason.PODS_APART: ReasonText(
            "{detail}",
            "Pods on several slices cannot work together. Have the operator of the cluster pin pods: `slices doctor` "
            "says whether they are. Then delete the {kind} and create it again.",
        ),
        Reason.IDLE: ReasonText(
            "{detail}",
            "Delete or suspend the {kind} if you do not need it; if no Job uses the slice, it is released by itself.",
        ),
        Reason.SPARE: ReasonText(
            "{detail}", "No action needed: the settings say so; to have fewer, lower a count there."
        ),
        Reason.STOCKOUT: ReasonText(
            "{zone} is out of {what}",
            f"{_RETRIED} {{sooner}}",
        ),
        Reason.QUOTA_EXCEEDED: ReasonText(
            "the project's quota does not allow more {what} in {zone}",
            f"{_RETRIED} Request more quota for these chips, or stop workloads that use them.",
        ),
        Reason.RESOURCES_EXHAUSTED: ReasonText(
            "{zone} is out of {what}, or the project's quota does not allow more of them: {vendor} does not say which",
            f"{_RETRIED} Compare the project's quota with what it uses; if that leaves room: {{sooner}}",
        ),
        Reason.RESERVATION_UNAVAILABLE: ReasonText(
            "{reservation} cannot provide {what} in {zone} now",
            f"{_RETRIED} Check `gcloud compute reservations describe`, or stop workloads that use the reservation.",
        ),
        Reason.RESERVATION_AWAITED: ReasonText(
            "{reservation} is not there, or cannot be used yet",
            f"{_RETRIED} If it should be there, check its name, its project and zone, and with whom it is shared, by "
            "`gcloud compute reservations describe`.",
        ),
        Reason.IP_SPACE_EXHAUSTED: ReasonText(
            "no addresses are left in the {vendor.addresses} for {hosts} hosts",
            f"{_RETRIED} Ask the operator of the cluster for a larger {{vendor.addresses}}.",
        ),
        Reason.TOO_MANY_OPERATIONS: ReasonText("{vendor} accepts no more operations at the moment", _NO_ACTION),
        Reason.CLUSTER_BUSY: ReasonText("another operation on {vendor.scope} is in progress", _NO_ACTION),
        Reason.CREATION_FAILED: ReasonText("{detail}", f"{_RETRIED} If it keeps failing: {_OPERATOR}"),
        Reason.UNOWNED_POOL: ReasonText("{detail}", _NO_ACTION),
        Reason.HOSTS_NOT_USABLE: ReasonText("{detail}", f"{_RETRIED} If it happens again: {_OPERATOR}"),
        Reason.LET_GO_WITH_GANG: ReasonText("{detail}", _RETRIED),
        Reason.GANG_TOO_LARGE: ReasonText(
            "{detail}", "Lower the replicas, or ask the operator of the cluster for a higher limit."
        ),
        Reason.LEADER_UNSCHEDULABLE: ReasonText(
            "{detail}",
            "Run `kubectl describe pod` for the leader pod: it requires something that the hosts do not have. "
            "The slice is created again once the {kind} is changed, or suspended and resumed.",
        ),
        Reason.PODS_DID_NOT_RUN: ReasonText(
            "{detail}",
            "Mend what keeps the pods from running; then edit the {kind}, suspend and resume it, or delete it and "
            "create it again.",
        ),
        Reason.IMPOSSIBLE_SHAPE: ReasonText("{detail}", _CHANGE_IT),
        Reason.DOES_NOT_FIT: ReasonText("{detail}", _CHANGE_IT),
        Reason.PROVISIONED_BY_GKE: ReasonText(
            "{detail}",
            "No action needed if GKE is to provision these hosts; otherwise remove what is named.",
            only=GKE,
        ),
        Reason.NOT_ALLOWED: ReasonText(
            "{detail}", "Request what is allowed, or ask the operator of the cluster to allow it."
        ),
        Reason.PODS_NOT_PINNED: ReasonText(
            "{detail}",
            "Pods that are there stay as they are; `slices doctor` says whether new ones are pinned.",
        ),
        Reason.CLUSTER_RETIRED: ReasonText(
            "{detail}", "Use another cluster. The operator can take this one back with `slices resume --cluster ID`."
        ),
        Reason.PURCHASES_STOPPED: ReasonText("{detail}", _CONFIRM),
        Reason.CHIP_LIMIT_REACHED: ReasonText(
            "{detail}", "It is retried automatically once other slices release chips."
        ),
        Reason.INVALID_CONFIGURATION: ReasonText("{detail}", _OPERATOR),
        Reason.ATTEMPTS_EXHAUSTED: ReasonText("{detail}", "Create the {kind} again: its slices then get new names."),
        Reason.NO_RUNG_IN_ZONE: ReasonText("{detail}", "Ask the operator of the cluster to change the ladder."),
        Reason.HELD: ReasonText("{held}: nothing is created or deleted", "Run `slices resume` to end the hold."),
        Reason.PAUSED: ReasonText("{detail}", "The operator ends the pause with `slices resume --cluster ID`."),
        **dict.fromkeys(SERVED, ReasonText("not released yet", _NO_ACTION)),
        Reason.DELETION_STARTED: ReasonText("being deleted", _NO_ACTION),
        Reason.CLOSING_HOSTS: ReasonText("being released", _NO_ACTION),
        Reason.WARM: ReasonText(
            "{detail}", "No action needed: the settings say so. `slices release` has it deleted at once."
        ),
        Reason.DELETION_QUEUED: ReasonText("being released, once another operation has ended", _NO_ACTION),
        Reason.EARLIER_SLICE_STANDS: ReasonText("{detail}", _NO_ACTION),
        Reason.DELETION_POSTPONED: ReasonText(
            "being released, once {vendor} has ended another operation on its {vendor.pool} or the cluster", _NO_ACTION
        ),
        Reason.OCCUPIED: ReasonText("another live workload runs on its hosts", _NO_ACTION),
        Reason.RESTART_POSSIBLE: ReasonText("{detail}", _NO_ACTION),
        Reason.USERS_UNKNOWN: ReasonText("{detail}", _NO_ACTION),
        Reason.RELAY_SILENT: ReasonText(
            "not released, because the cluster's relay is not heard and nobody else knows who runs on it",
            "Ask the operator of the cluster whether the relay runs; `slices release --force` deletes it without "
            "asking the relay.",
        ),
        Reason.RELEASES_STOPPED: ReasonText("{detail}", _CONFIRM),
        Reason.CREATION_IN_DOUBT: ReasonText(
            "being released, but a create request for it may still arrive", _NO_ACTION
        ),
        Reason.DELETION_REFUSED: ReasonText("{detail}", _OPERATOR),
        Reason.RELEASED: ReasonText("released", "It is created again if a leader pod waits for it."),
        Reason.NEVER_CREATED: ReasonText("never created", "It is created once a leader pod waits for it."),
        Reason.POOL_UNREADABLE: ReasonText("{detail}", f"{_RETRIED} If that lasts: {_OPERATOR}"),
        Reason.RESERVATION_ENDS: ReasonText(
            "{detail}", "Write a checkpoint before; ask for other capacity if the run is to go on."
        ),
        Reason.LATER_RELEASE: ReasonText("a later release of the provisioner decided last", _NO_ACTION),
        Reason.RECORD_UNREADABLE: ReasonText(
            "its record cannot be read, so nothing is created or deleted for it",
            "Contact the operator of the cluster: the log event `document.unreadable` names the field.",
        ),
    }
)
"""The text of every reason."""


FLEX_START_TEXTS: Mapping[Reason, ReasonText] = MappingProxyType(
    {
        Reason.CREATING: ReasonText(
            "GKE is creating its node pool, to which it then adds hosts by flex-start", _NO_ACTION
        ),
        Reason.HOSTS_LOST: ReasonText(
            "only {usable} of {hosts} flex-start hosts are still ready; GKE takes them back after {run_duration}, and "
            "replaces none",
            "No action needed: once its Job has left, the slice is created again if the {kind} restarts it.",
        ),
    }
)
"""The texts that replace those of other slices for one of flex-start, which is GKE's."""

_RELEASE_REQUESTED = ReasonText("{detail}", "Create the {kind} again if it should continue.")


def reason_text(record: SliceRecord, reason: Reason, vendor: Vendor = GKE, paused: str | None = None) -> ReasonText:
    """Return the text of a reason for a slice; `paused`: why its cluster is paused, or None."""
    texts = {**REASON_TEXTS, **FLEX_START_TEXTS} if record.made_as and record.made_as.is_flex_start else REASON_TEXTS
    text = _RELEASE_REQUESTED if record.release_requested else texts[reason]
    detail = f"the cluster is paused: {paused}" if reason is Reason.PAUSED and paused else record.message
    known = {**_known(record), "vendor": vendor}
    return ReasonText(
        text.message.format_map({**known, "detail": (detail or reason).rstrip(".")}), text.remedy.format_map(known)
    )


def _known(record: SliceRecord) -> Mapping[str, object]:
    spec = record.made_as
    reservation = spec.capacity.reservation if spec else None
    return {
        "kind": record.job.owner.kind,
        "zone": spec.zone if spec else "its zone",
        "what": f"{spec.accelerator} {spec.topology}" if spec else "such hosts",
        "hosts": spec.hosts if spec else "its",
        "run_duration": (spec and spec.run_duration) or "their time",
        "usable": record.current.hosts.usable,
        "shortage": _shortage(record),
        "held": record.held,
        "reservation": f"the reservation {reservation}" if reservation else "the reservation",
        "sooner": "Its reservation did not provide it: check `gcloud compute reservations describe`."
        if reservation
        else "Another zone, a smaller topology, spot or a reservation may be available sooner.",
    }


def _shortage(record: SliceRecord) -> str:
    awaited = record.slot_awaited
    if awaited is None or awaited.shortage is None:
        return "its capacity ran out lately: one slice at a time tries, and this one waits for its turn"
    return attempts_told.ran_out(record, awaited.shortage)


def run_ends(records: Iterable[SliceRecord]) -> str:
    """Return what happens to ready slices of flex-start at the end of their time; empty: there is none."""
    durations = {each.made_as.run_duration for each in records if each.phase is Phase.READY and each.made_as}
    ends = sorted(each for each in durations if each)
    if not ends:
        return ""
    return (
        f"GKE takes flex-start hosts back {' or '.join(ends)} after their start: their Jobs fail then, and wait again "
        "if the JobSet's failure policy restarts them."
    )


PODS_REFUSED = "No pod with chips can be created: the API server gets no answer of the webhook that pins them."
PINNED_TEXTS: Mapping[Pinning, str] = MappingProxyType(
    {
        Pinning.POLICY: "New pods are pinned to their slices by the admission policy.",
        Pinning.WEBHOOK: "New pods are pinned to their slices by the webhook.",
        Pinning.NOTHING: "New pods are not pinned in this cluster: others may take free hosts of its slices.",
        Pinning.REFUSED: PODS_REFUSED,
    }
)
"""By what pods are pinned in the cluster, for the report of a workload."""


def as_of(heard_at: datetime, now: datetime) -> str:
    """Return from when what is told of a cluster is whose relay was last heard then: longer ago than STALE_AFTER."""
    if now - heard_at > SILENT_AFTER:
        return relay_silence(heard_at, now)
    return f"The cluster's relay was last heard at {clock(heard_at, now)}: what is told here is as it was then."


def relay_silence(since: datetime, now: datetime) -> str:
    """Return the text about a relay that was last heard at a time: what follows, and what operators can do."""
    return (
        f"The cluster's relay has not been heard since {clock(since, now)}: hosts are shown as they were then, and "
        "nothing new is created or deleted until it runs again. "
        f"Operators: `kubectl -n {RELAY_NAMESPACE} get pods`."
    )
