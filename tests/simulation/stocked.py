"""Stories in clusters that have spares, until the last workload ends."""

from __future__ import annotations

from dataclasses import replace

from tpu_slices.domain.capacity.spares import seats_of
from tpu_slices.domain.model.capacity import Place, Spare
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.slices import CapacityKind
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices_simulator.story import Story

ZONE = "us-central2-b"
SPARES = (
    Spare(accelerator="tpu-v6e-slice", topology="4x4", place="list", count=1, namespaces=("research", "vision")),
    Spare(accelerator="tpu-v6e-slice", topology="2x4", place="list", count=1, namespaces=("research",)),
)


def with_spares(story: Story) -> Story:
    """Return a story in a cluster that makes spares of the shapes that its workloads ask for."""
    places = {"list": Place(capacity=CapacityKind.ON_DEMAND, zones=(ZONE,))}
    return replace(story, settings=replace(story.settings, places={**story.settings.places, **places}, spares=SPARES))


def is_asked_for(record: SliceRecord, settings: ClusterSettings) -> bool:
    """Return whether a slice is a spare that the settings ask for."""
    return record.owner.kind.is_spare and record.claimed_by is not None and record.claimed_by in seats_of(settings)
