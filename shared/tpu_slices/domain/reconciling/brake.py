"""The brake: if many slices lose their workloads at once and nobody confirms that, they are kept until somebody does.

A relay that errs, that talks to another API server, or to one that lost its objects, must not delete a cluster's slices
within minutes. Pure.

| an end                                                                    | is                                   |
|---------------------------------------------------------------------------|--------------------------------------|
| DELETED: the API server said of this very object that it deletes it, at a | confirmed: released without a brake  |
| resourceVersion beyond the last one on record                             |                                      |
| COMPLETED, FAILED, or suspended: the object itself says so                | the same                             |
| MISSING: a list or an answer lacks it, which is all that an API server    | counted, if the slice has a pool,    |
| can say that never had it, or lost it                                     | and stopped if there are too many    |
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.planning.policy import Held
from tpu_slices.domain.records.brakes import WINDOW, Brake, Stop, UnconfirmedEnd
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord

MOST = 10
"""Within WINDOW so many slices may lose their workloads unconfirmed, or a fifth of all that stand, if that is more."""


def found(record: SliceRecord, own: WorkloadRecord | None, now: datetime, brake: Brake | None) -> UnconfirmedEnd | None:
    """Return the end of a slice that nobody confirmed, if it has a pool; None: there is none, or somebody confirmed it.

    It counts for the cluster unless the releases of its namespace are stopped: one namespace alone stops no other.
    """
    if own is None or own.state is not WorkloadState.MISSING or record.release_requested or record.unclaimed:
        return None
    if record.unconfirmed_end is not None:
        return record.unconfirmed_end
    stands = record.current.create_requested_at is not None or record.claim.earlier
    own_stop = brake.on(record.owner.namespace) if brake else None
    return UnconfirmedEnd(found_at=now, counted=own_stop is None) if stands else None


def too_many(ended: int, live: int) -> bool:
    """Return whether so many ends within WINDOW stop releases; `live`: the slices that are READY beside them."""
    return ended > max(MOST, (live + ended) // 5)


def enough(ended: int) -> int:
    """Return how many READY slices are enough for so many ends not to be too many."""
    return 4 * ended


def stops_told(brake: Brake, namespace: str | None = None) -> Iterator[str]:
    """Yield what is stopped: in a namespace, or in all of them and the whole cluster."""
    of = [None, namespace] if namespace is not None else [None, *sorted(brake.namespaces)]
    yield from (_kept(brake, each, stop) for each in of if (stop := brake.on(each)) is not None)


def why_kept(brake: Brake, namespace: str, found_at: datetime) -> str | None:
    """Return why a slice is kept whose end was found then; None: it is not."""
    own, whole = brake.of(namespace), brake.on(None)
    if own is not None and own.is_on and found_at >= own.since:
        return _kept(brake, namespace, own)
    confirmed = own is not None and own.confirmed_at is not None and own.confirmed_at >= found_at
    return _kept(brake, None, whole) if whole is not None and found_at >= whole.since and not confirmed else None


def why_not_bought(brake: Brake, namespace: str, chips: int, held: Held) -> str | None:
    """Return why a slice of so many chips is not bought beside the chips that other slices hold; None: it may be."""
    for scope, holds in ((namespace, held.in_namespace), (None, held.in_cluster)):
        stop = brake.on(scope)
        if stop is not None and holds + chips > stop.chips:
            return (
                f"Releases in {_named(brake, scope)} are stopped, and nothing is bought beyond the {stop.chips} chips "
                f"that stood at {stop.stopped_at:%H:%M} UTC: {holds} are held, and this slice has {chips}. It is "
                f"created once others release chips, or an operator ran `{_command(brake, scope)}`."
            )
    return None


def _kept(brake: Brake, namespace: str | None, stop: Stop) -> str:
    minutes = f"{WINDOW.total_seconds() / 60:.0f} minutes"
    return (
        f"{stop.ended} of {stop.ended + stop.live} slices in {_named(brake, namespace)} had lost their workloads "
        f"by {stop.stopped_at:%H:%M} UTC, within {minutes}, and the API server reported no deletion of these: what "
        f"has lost them is kept until an operator runs `{_command(brake, namespace)}`"
    )


def _named(brake: Brake, namespace: str | None) -> str:
    return f"the cluster {brake.cluster}" if namespace is None else f"the namespace {namespace}"


def _command(brake: Brake, namespace: str | None) -> str:
    scope = "" if namespace is None else f" --namespace {namespace}"
    return f"slices confirm-deletions --cluster {brake.cluster}{scope}"
