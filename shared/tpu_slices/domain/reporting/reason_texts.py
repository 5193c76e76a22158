"""What each reason means to who waits, and what can be done about it: one table, read as prose. Pure.

`message` goes on from the names of the slices ("slice-0 and slice-1: ..."); `remedy` is for the person that can act.
`{detail}` is the slice's own sentence, which names keys, values and limits, or why the cluster is paused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.records import SliceRecord


@dataclass(frozen=True, slots=True)
class ReasonText:
    message: str
    remedy: str = ""


_BY_ITSELF = "Nothing to do: it goes on by itself."
_CHANGE_IT = "Change the JobSet and create it again; `slices plan -f FILE` shows beforehand what it would get."
_OPERATOR = "Ask who runs the cluster; `slices explain` has the details."

SERVED = frozenset({Reason.READY, Reason.SPEC_DRIFTED, Reason.ADOPTED})
"""The reasons of slices that serve: nobody waits for them, but for their end."""

REASON_TEXTS: Mapping[Reason, ReasonText] = MappingProxyType(
    {
        Reason.WANTED: ReasonText("just heard of", _BY_ITSELF),
        Reason.OPERATION_LIMIT: ReasonText(
            "GKE takes only so many operations on a cluster at once: in line for its creation", _BY_ITSELF
        ),
        Reason.DEMAND_STALE: ReasonText(
            "no leader pod was reported to wait for it lately",
            "Nothing to do if its Job runs; else ask who runs the cluster whether the relay runs.",
        ),
        Reason.CREATION_STARTED: ReasonText("ordered from GKE", _BY_ITSELF),
        Reason.CREATING: ReasonText(
            "GKE is creating {hosts} hosts in {zone}",
            "Nothing to do: GKE takes minutes, and up to half an hour to find that there is no stock.",
        ),
        Reason.HOSTS_JOINING: ReasonText("{usable} of {hosts} hosts are ready and offer their chips", _BY_ITSELF),
        Reason.HOSTS_LOST: ReasonText(
            "{usable} of {hosts} hosts are left of a slice that was ready",
            "GKE repairs hosts, and the JobSet's failure policy restarts its Jobs. A host that was cordoned needs "
            "`kubectl uncordon`.",
        ),
        Reason.POOL_BUSY: ReasonText("GKE repairs or upgrades its hosts", _BY_ITSELF),
        Reason.POOL_BROKEN: ReasonText("broken under its running Job, and left to repair", _OPERATOR),
        Reason.LEADER_STILL_WAITING: ReasonText(
            "ready, and yet its leader pod is not scheduled",
            "See `kubectl describe pod` of the leader: something it asks for is not on these hosts.",
        ),
        Reason.STOCKOUT: ReasonText(
            "{zone} is out of {what}",
            "It is tried again by itself. Another zone, a smaller topology, spot or a reservation may be had sooner.",
        ),
        Reason.QUOTA_EXCEEDED: ReasonText(
            "the project's quota allows no more {what} in {zone}",
            "It is tried again by itself. Ask for more quota of these chips, or end what holds them.",
        ),
        Reason.RESERVATION_UNAVAILABLE: ReasonText(
            "{reservation} has no room for {what} in {zone}",
            "It is tried again by itself. See `gcloud compute reservations describe`, or end what uses it.",
        ),
        Reason.NO_IP_SPACE: ReasonText(
            "the cluster has no pod addresses left for {hosts} hosts",
            "It is tried again by itself. Ask who runs the cluster for a larger pod range.",
        ),
        Reason.TOO_MANY_OPERATIONS: ReasonText(
            "GKE takes no more operations on the cluster for the moment", _BY_ITSELF
        ),
        Reason.CLUSTER_BUSY: ReasonText("another operation on the cluster is in the way", _BY_ITSELF),
        Reason.CREATION_FAILED: ReasonText("{detail}", "It is tried again by itself. If it fails again: " + _OPERATOR),
        Reason.IMPOSSIBLE_SHAPE: ReasonText("{detail}", _CHANGE_IT),
        Reason.DOES_NOT_FIT: ReasonText("{detail}", _CHANGE_IT),
        Reason.MADE_BY_GKE: ReasonText(
            "{detail}", "Nothing to do, if GKE is to make these hosts; else leave out what asks for that."
        ),
        Reason.NOT_ALLOWED: ReasonText("{detail}", "Ask for what is allowed, or who runs the cluster to allow it."),
        Reason.NO_CHIPS_LEFT: ReasonText("{detail}", "It is tried again by itself, once others give chips back."),
        Reason.CONFIGURATION: ReasonText("{detail}", _OPERATOR),
        Reason.UNOWNED_POOL: ReasonText("{detail}", _OPERATOR),
        Reason.ATTEMPTS_EXHAUSTED: ReasonText("{detail}", "Create the JobSet again: another one has new names."),
        Reason.HELD: ReasonText("held by a person: nothing is created or deleted", "Let it go on by `slices resume`."),
        Reason.PAUSED: ReasonText("{detail}", "Who runs the cluster ends the pause by `slices resume --cluster ID`."),
        **dict.fromkeys(SERVED, ReasonText("not given back yet", _BY_ITSELF)),
        Reason.DELETION_STARTED: ReasonText("being deleted", _BY_ITSELF),
        Reason.OCCUPIED: ReasonText("another live JobSet runs on its hosts", _BY_ITSELF),
        Reason.CREATE_MAY_BE_UNDER_WAY: ReasonText("given up, while an order for it may still arrive", _BY_ITSELF),
        Reason.DELETION_REFUSED: ReasonText("{detail}", _OPERATOR),
        Reason.RELEASED: ReasonText("given back", "It is made anew while a leader pod waits for it."),
        Reason.NEVER_MADE: ReasonText("not made", "It is made once a leader pod waits for it."),
        Reason.POOL_UNREADABLE: ReasonText("GKE does not say what became of its hosts", _BY_ITSELF),
    }
)
"""Every reason there is."""


_ASKED_BACK = ReasonText("{detail}", "Create the JobSet again, if it is to go on.")


def reason_text(record: SliceRecord, reason: Reason, paused: str | None = None) -> ReasonText:
    """Say what a slice waits for, by this reason, and what can be done; `paused`: why its cluster is."""
    words = _ASKED_BACK if record.release_requested else REASON_TEXTS[reason]
    detail = f"the cluster is paused: {paused}" if reason is Reason.PAUSED and paused else record.message
    return ReasonText(
        words.message.format_map({**_known(record), "detail": (detail or reason).rstrip(".")}), words.remedy
    )


def _known(record: SliceRecord) -> Mapping[str, object]:
    spec = record.spec
    reservation = spec.capacity.reservation if spec else None
    return {
        "zone": spec.zone if spec else "its zone",
        "what": f"{spec.accelerator} {spec.topology}" if spec else "such hosts",
        "hosts": spec.hosts if spec else "its",
        "usable": record.hosts_usable,
        "reservation": f"the reservation {reservation}" if reservation else "the reservation",
    }
