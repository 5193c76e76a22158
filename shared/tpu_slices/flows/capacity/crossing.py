"""Slices that are kept warm for claims of any namespace: who waits for one, which ones there are, who may hold it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.planning.policy import Held, over_budget
from tpu_slices.domain.records.matching import needs_of_any, offers_to_any
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows.budget import count, tell_waiting
from tpu_slices.flows.looking import Looked
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.store import Change, Stored

MOST_READ = 50
"""How many of those that wait are read, or of the slices that are warm."""
MOST_ASKED = 5
"""How many of them are looked at: of those that wait, the first of each namespace."""


def wanting(looked: Looked, after: SliceRecord, deps: ReconcileDeps) -> Iterator[Stored[SliceRecord]]:
    """Yield claims of other namespaces that wait for what a slice is, which is warm `after` this step.

    The one of each namespace that waits longest. Nothing is read where no setting keeps slices for all.
    """
    request = offers_to_any(after)
    if request is None or not (looked.settings.hands_across and looked.known.relay.hands_across):
        return
    seen = {after.owner.namespace}
    for stored in deps.store.wanting(request, MOST_READ, of_any=True):
        if stored.value.owner.namespace not in seen and len(seen) <= MOST_ASKED:
            seen.add(stored.value.owner.namespace)
            yield stored


def offered(looked: Looked, deps: ReconcileDeps, most: int = MOST_READ) -> Sequence[Stored[SliceRecord]]:
    """Return slices of other namespaces that are kept warm for what a claim waits for, those first that end first."""
    request = needs_of_any(looked.record)
    if request is None or not (looked.settings.hands_across and looked.known.relay.hands_across):
        return ()
    found = deps.store.offered(request, most, to_any=True)
    return [each for each in found if each.value.owner.namespace != looked.record.owner.namespace]


def guards(
    claim: SliceRecord, slice_: SliceRecord, settings: ClusterSettings, deps: ReconcileDeps
) -> tuple[Change, ...] | None:
    """Return what is written with a hand-over; None: the claim's namespace may not hold so many chips.

    Within a namespace nothing is: its chips are counted already. Between two it is as for a creation, but that the
    cluster holds the chips before and after: what is written orders it among all that count chips.
    """
    namespace = claim.owner.namespace
    if namespace == slice_.owner.namespace:
        return ()
    brake = deps.store.brake(settings.cluster)
    if claim.spec is None or (brake is not None and brake.value.stops(namespace)):
        return None
    chips = count(claim, settings, deps)
    if chips.held is None:
        return ()
    held = Held(chips.held.in_namespace, chips.held.in_cluster - slice_.chips_bought)
    return None if over_budget(claim.spec, namespace, held, settings.policy) else chips.guards


def tell_left(claim: SliceRecord, slice_: SliceRecord, settings: ClusterSettings, deps: ReconcileDeps) -> None:
    """Have those looked at that wait for chips in the namespace that a slice has left."""
    if claim.owner.namespace != slice_.owner.namespace:
        tell_waiting(settings, deps, released_in=slice_.owner.namespace)
