"""What the rungs of ladders are for the slices of a plan: what each costs, or which selector is against it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.slices import RungSpec, SliceSpec, WorkloadJob, at_rung
from tpu_slices.domain.model.texts import duration
from tpu_slices.domain.planning.costs import price_of
from tpu_slices.domain.records.claims import Refusal

PlannedSlice = tuple[WorkloadJob, SliceSpec | Refusal, ClusterSettings]


def ladders_in(slices: Iterable[PlannedSlice]) -> tuple[Mapping[str, Any], ...]:
    """Return the ladder of each replicatedJob, in JSON: its slices have the same."""
    found: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for job, spec, settings in slices:
        if isinstance(spec, SliceSpec) and spec.ladder:
            owner = job.owner
            key = (owner.kind, owner.full_name, job.replicated_job)
            found.setdefault(key, _as_json(job, spec, settings))
    return tuple(found.values())


def lines_of(ladders: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what people read of ladders."""
    for each in ladders:
        whose = f", replicatedJob {each['replicated_job']}" if each["replicated_job"] else ""
        yield f"{each['kind']} {each['name']}{whose}: a slice is asked for by ladder {each['ladder']}:"
        yield from (f"  {_told(rung)}" for rung in each["rungs"])


def _as_json(job: WorkloadJob, spec: SliceSpec, settings: ClusterSettings) -> Mapping[str, Any]:
    return {
        "kind": job.owner.kind.value,
        "name": job.owner.name,
        "namespace": job.owner.namespace,
        "replicated_job": job.replicated_job,
        "ladder": spec.ladder.partition("@")[0],
        "rungs": [_rung(number, rung, spec, settings) for number, rung in enumerate(spec.rungs)],
    }


def _rung(number: int, rung: RungSpec, spec: SliceSpec, settings: ClusterSettings) -> Mapping[str, Any]:
    price = None if rung.against else price_of(at_rung(spec, number), settings)
    return {
        "rung": number + 1,
        "place": rung.place,
        "how": rung.how,
        "for": duration(rung.lasts) if rung.lasts else None,
        "fits": not rung.against,
        "against": rung.against or None,
        "price": price and price.as_json(),
        "usd_per_hour": price and str(price),
    }


def _told(rung: Mapping[str, Any]) -> str:
    lasts = f", for {rung['for']}" if rung["for"] else ""
    what = f"rung {rung['rung']}, {rung['place']} ({rung['how']}{lasts})"
    if not rung["fits"]:
        return f"{what}: passed over: {rung['against']}."
    price = rung["usd_per_hour"]
    return f"{what}: fits, {price if price == 'reserved' else f'{price} USD per hour'}."
