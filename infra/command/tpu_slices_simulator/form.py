"""The file of a story as users write it: every field with its default and meaning. It is checked as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.slices import CapacityKind, OwnerKind
from tpu_slices.domain.model.texts import as_duration
from tpu_slices.wire.validation import first_error
from tpu_slices.wire.workloads import Json
from tpu_slices_simulator.story import IN_ZONES, PER_MINUTE, Fault, Kind, Plot, Reserved, Story

LONGEST = timedelta(days=7)
MOST_WORKLOADS = 1_000


class StoryError(ValueError):
    """A story cannot be played; the message names the field and what to write."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a manifest asks for."""

    kind: OwnerKind
    namespace: str
    name: str
    manifest: Json


def _kind(value: object) -> Kind:
    if value not in set(Kind):
        raise ValueError(f"write one of: {', '.join(sorted(Kind))}")
    return Kind(str(value))


def _capacity(value: object) -> CapacityKind:
    names = {each.lower().replace("_", "-"): each for each in CapacityKind}
    if value not in names:
        raise ValueError(f"write one of: {', '.join(sorted(names))}")
    return names[str(value)]


def _share(value: object) -> object:
    text = str(value).strip()
    return float(text[:-1]) / 100 if text.endswith("%") else value


_Time = Annotated[timedelta, BeforeValidator(as_duration), Field(ge=timedelta(0), le=LONGEST)]
_Length = Annotated[timedelta, BeforeValidator(as_duration), Field(ge=timedelta(minutes=1), le=LONGEST)]
_Kind = Annotated[Kind, BeforeValidator(_kind)]
_Capacity = Annotated[CapacityKind, BeforeValidator(_capacity)]
_Share = Annotated[float, BeforeValidator(_share), Field(gt=0, le=1)]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid")


class JobSetForm(_Form):
    """Workloads of one manifest file: JobSets, Jobs or LeaderWorkerSets."""

    manifest: str
    """Path of the file, from the story's folder; - is not possible."""
    at: _Time = timedelta(0)
    """When they are created."""
    name: str | None = Field(default=None, min_length=1, max_length=253)
    """Instead of the manifest's; for a manifest with one workload."""
    copies: int = Field(default=1, ge=1, le=MOST_WORKLOADS)
    """How many there are; with several, their names end with a number."""
    every: _Time = timedelta(0)
    """The time from one copy to the next."""
    runs: _Length | None = None
    """How long they run with all of their slices until they complete; without it, until the end of the story."""
    deleted_at: _Length | None = None
    """When they are deleted, whatever they have done."""
    suspended: tuple[tuple[_Length, _Length], ...] = ()
    """From when to when they are suspended."""


class FaultForm(_Form):
    what: _Kind
    at: _Time = timedelta(0)
    lasts: _Length
    share: _Share | None = None
    """Of messages, calls or operations; by default all of them. Of pools or Jobs in each minute: no default."""
    zones: tuple[str, ...] = ()
    """Where, for stockout, quota and creations that fail; by default everywhere."""
    capacity: _Capacity | None = None
    """Of which capacity, for these; by default of every one."""
    hosts: int = Field(default=1, ge=1)
    """Of slices of at least so many hosts, for these."""

    @model_validator(mode="after")
    def _fits(self) -> FaultForm:
        if self.share is None and self.what in PER_MINUTE:
            raise ValueError(f'share: is needed for "{self.what}": of those that there are, in each minute, as in 0.5%')
        for name in ("zones", "capacity", "hosts"):
            if name in self.model_fields_set and self.what not in IN_ZONES:
                raise ValueError(f"{name}: only of {', '.join(sorted(IN_ZONES))}")
        return self


class ReservationForm(_Form):
    name: str = Field(min_length=1, max_length=63)
    """As places and pods name it, without a project."""
    hosts: int = Field(ge=1)
    others: int = Field(default=0, ge=0)
    """Hosts that others use."""
    begins: _Time | None = None
    """When it is there: it is booked until then; by default it is there from the beginning."""
    ends: _Time | None = None
    """When Google deletes it, and its hosts."""

    @model_validator(mode="after")
    def _fits(self) -> ReservationForm:
        if self.others > self.hosts:
            raise ValueError("others: at most as many as it has hosts")
        if self.ends is not None and self.ends <= (self.begins or timedelta(0)):
            raise ValueError("ends: after it begins")
        return self


class StoryForm(_Form):
    cluster: str
    """Path of the cluster's settings, from the story's folder."""
    lasts: _Length
    seed: int = 0
    """Of all that the story does not say: the times of operations, what is struck by a share."""
    creation: tuple[_Length, _Length] = (timedelta(minutes=3), timedelta(minutes=8))
    """Of a node pool: the shortest time and the longest. An assumption: GKE documents none."""
    deletion: tuple[_Length, _Length] = (timedelta(minutes=2), timedelta(minutes=6))
    stockout: tuple[_Length, _Length] | None = None
    """Of a creation that finds no stock; by default as of any. GKE takes up to 35 minutes."""
    jobsets: tuple[JobSetForm, ...] = Field(min_length=1)
    faults: tuple[FaultForm, ...] = ()
    reservations: tuple[ReservationForm, ...] = ()
    """Those that there are, if any: without them none may be read, and creations in them find hosts."""

    @model_validator(mode="after")
    def _fits(self) -> StoryForm:
        if any(each and each[0] > each[1] for each in (self.creation, self.deletion, self.stockout)):
            raise ValueError("creation, deletion, stockout: write the shorter time first")
        for number, each in enumerate(self.jobsets):
            if each.at + each.every * (each.copies - 1) >= self.lasts:
                raise ValueError(f"jobsets.{number}.at: the story has ended then")
        names = [each.name for each in self.reservations]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"reservations: {twice} is there twice")
        if sum(each.copies for each in self.jobsets) > MOST_WORKLOADS:
            raise ValueError(f"jobsets: at most {MOST_WORKLOADS} workloads with all copies")
        return self


def form_of(document: Mapping[str, Any]) -> StoryForm:
    """Return a story's file as it is written. Raise StoryError."""
    try:
        return StoryForm.model_validate(document)
    except ValidationError as invalid:
        raise StoryError(first_error(invalid)) from invalid


def story_of(form: StoryForm, settings: ClusterSettings, asked: Callable[[str], Sequence[Asked]]) -> Story:
    """Return the story of a file; `asked` reads a manifest. Raise StoryError."""
    plots = tuple(plot for number, each in enumerate(form.jobsets) for plot in _plots(number, each, asked))
    ids = [plot.id for plot in plots]
    twice = next((each for each in ids if ids.count(each) > 1), None)
    if twice is not None:
        raise StoryError(f"jobsets: {twice} is there twice: set name or copies")
    return Story(
        seed=form.seed,
        minutes=_minutes(form.lasts),
        settings=settings,
        creation=(_minutes(form.creation[0]), _minutes(form.creation[1])),
        deletion=(_minutes(form.deletion[0]), _minutes(form.deletion[1])),
        stockout=None if form.stockout is None else (_minutes(form.stockout[0]), _minutes(form.stockout[1])),
        jobsets=plots,
        faults=tuple(
            Fault(
                kind=each.what,
                at=_minutes(each.at),
                lasts=_minutes(each.lasts),
                share=1.0 if each.share is None else each.share,
                zones=each.zones,
                capacity=each.capacity,
                hosts=each.hosts,
            )
            for each in form.faults
        ),
        reservations=tuple(map(_reserved, form.reservations)),
    )


def _reserved(form: ReservationForm) -> Reserved:
    return Reserved(
        name=form.name,
        hosts=form.hosts,
        others=form.others,
        begins=None if form.begins is None else _minutes(form.begins),
        ends=None if form.ends is None else _minutes(form.ends),
    )


def _plots(number: int, form: JobSetForm, asked: Callable[[str], Sequence[Asked]]) -> Iterator[Plot]:
    found = asked(form.manifest)
    if form.name is not None and len(found) > 1:
        raise StoryError(f"jobsets.{number}.name: {form.manifest} has {len(found)} workloads")
    for each in found:
        if form.suspended and each.kind is OwnerKind.LEADER_WORKER_SET:
            raise StoryError(f"jobsets.{number}.suspended: a LeaderWorkerSet cannot be suspended, only deleted")
        for copy in range(form.copies):
            name = form.name or each.name
            yield Plot(
                name=name if form.copies == 1 else f"{name}-{copy + 1}",
                at=_minutes(form.at + copy * form.every),
                manifest=each.manifest,
                namespace=each.namespace,
                kind=each.kind,
                runs=None if form.runs is None else _minutes(form.runs),
                ends=None if form.deleted_at is None else _minutes(form.deleted_at),
                deleted=form.deleted_at is not None,
                suspended=tuple((_minutes(since), _minutes(until)) for since, until in form.suspended),
            )


def _minutes(length: timedelta) -> int:
    return round(length / timedelta(minutes=1))
