"""What a spare is, as the settings ask for it, and whether its seat is needed. Pure."""

from __future__ import annotations

from dataclasses import replace

from tpu_slices.domain.capacity.spares import Seat, not_needed, seats_of
from tpu_slices.domain.catalogue.accelerators import ImpossibleShape, accelerator_of, machines_for, topology_of
from tpu_slices.domain.model.capacity import Spare
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import TemplateRequest, Toleration, WaitingLeader
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import Capacity, RungSpec, SliceSpec
from tpu_slices.domain.planning.host_labels import ACCELERATOR, MACHINE, SPOT, TOPOLOGY
from tpu_slices.domain.planning.specs import SliceRequest, spec_at
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.domain.records.matching import values_of
from tpu_slices.domain.records.slices import Desire, SliceRecord

NOT_ASKED_FOR = "the settings ask for no such spare"


def planned(seat: Seat, settings: ClusterSettings) -> SliceSpec | Refusal:
    """Return what the slice of a seat is, as for pods that select this and nothing else; or why there is none such."""
    job = seat.job
    asked = SliceRequest(
        job=job,
        request=_request(seat.spare, settings),
        leader=WaitingLeader(replicated_job="", job_index=job.job_index),
        jobset_chips=0,
        at=_place(seat.spare, settings),
    )
    spec = spec_at(asked, settings)
    if isinstance(spec, Refusal):
        return replace(spec, message=spec.message.removeprefix("pod template: "))
    return spec


def _request(spare: Spare, settings: ClusterSettings) -> TemplateRequest:
    selects = {**dict(spare.node_selector), ACCELERATOR: spare.accelerator, TOPOLOGY: spare.topology}
    return TemplateRequest(
        replicated_job="",
        replicas=1,
        accelerator=spare.accelerator,
        topology=spare.topology,
        chips_per_pod=_chips_per_host(spare, selects.get(MACHINE), settings),
        node_selector=tuple(sorted(selects.items())),
        tolerations=(Toleration(key=SPOT, operator="Exists"),),
    )


def _chips_per_host(spare: Spare, machine: str | None, settings: ClusterSettings) -> int:
    """Return the chips of a host, those of the selected machine type or the first that has no need to be selected."""
    known = settings.accelerators
    try:
        topology = topology_of(spare.accelerator, spare.topology, known)
        possible = machines_for(accelerator_of(spare.accelerator, known), topology)
    except ImpossibleShape:
        return 0  # which is told with the shape
    fitting = (each.chips for each in possible if (each.name == machine if machine else not each.by_name))
    return next(fitting, 0)


def _place(spare: Spare, settings: ClusterSettings) -> RungSpec:
    place = settings.places[spare.place]
    return RungSpec(place=spare.place, zone=place.zones[0], capacity=Capacity(place.capacity, place.reservation))


def as_wanted(record: SliceRecord, settings: ClusterSettings) -> SliceRecord:
    """Return the record of a seat as the settings ask for it now; any other record as it is.

    | the seat                                                         | is                                       |
    |------------------------------------------------------------------|------------------------------------------|
    | is not needed any more                                           | not needed, until its slice is gone      |
    | is asked for by no setting, or the cluster is retired            | not needed                               |
    | has a slice, and the settings ask for another one, or allow none | not needed; the next one is as they say  |
    | such                                                             |                                          |
    | else                                                             | needed, as the settings say              |
    """
    if not record.owner.kind.is_spare or record.unclaimed or not record.wanted:
        return record
    seat = seats_of(settings).get(record.last_claim)
    if seat is None:
        return not_needed(record, NOT_ASKED_FOR)
    spec, made_as = planned(seat, settings), record.current.ordered
    requested = record.current.create_requested_at is not None
    if isinstance(spec, Refusal):
        return not_needed(record, spec.message) if requested else record.with_claim(refusal=spec)
    if requested and made_as is not None and not _same(made_as, spec):
        return not_needed(record, "the settings ask for another spare in its place")
    return record.with_changes(spec=spec).with_claim(refusal=None)


def _same(one: SliceSpec, other: SliceSpec) -> bool:
    return (one.fingerprint, values_of(one)) == (other.fingerprint, values_of(other))


def is_settled(record: SliceRecord) -> bool:
    """Return whether nothing is left of a seat that was not needed: if the settings ask for it, it has its next."""
    return record.phase is Phase.GONE and not record.wanted and record.next_reconcile_at is None


def needed_again(record: SliceRecord) -> SliceRecord:
    return replace(record, desire=Desire.PRESENT, desire_message="", release_requested=False, release_forced=False)
