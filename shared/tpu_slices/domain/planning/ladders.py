"""Which ladder a workload has, and what its rungs are for the pods of a slice. Pure.

| the ladder                                                   | of a workload                                       |
|--------------------------------------------------------------|-----------------------------------------------------|
| that the annotation names, of the template or the workload   | if there is one; `none`: it has none                |
| that the settings name for its namespace                     | else                                                |
| that the settings name for the cluster                       | else; without one it has a single place, as ever    |

A place of several zones is as many rungs. What a pod template selects holds at every rung: one that contradicts it is
passed over, and says why; so is one that the policy does not allow, or that costs too much.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from tpu_slices.domain.model.capacity import LADDER, NO_LADDER, Ladder
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import Capacity, CapacityKind, RungSpec, SliceSpec, at_rung
from tpu_slices.domain.model.texts import digest, shortened
from tpu_slices.domain.planning.costs import price_of
from tpu_slices.domain.planning.obstacles import Obstacles, does_not_fit
from tpu_slices.domain.records.claims import Refusal

MOST_RUNGS = 20
"""The most rungs of a ladder, each zone of a place counted."""
_WHOSE = re.compile(r"\A(replicatedJob [^:]+|pod template): ")
"""The beginning of a refusal, which is the same of each rung."""
_AGAINST = 300
"""Characters that are kept of why a rung is passed over."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The ladder of a workload."""

    name: str
    ladder: Ladder


def ladder_of(named: str | None, namespace: str, settings: ClusterSettings) -> Chosen | Refusal | None:
    """Return the ladder of a workload whose annotation names one, or none; a Refusal if there is no such ladder."""
    own = settings.namespaces.get(namespace)
    by_default = (own.ladder if own is not None else None) or settings.ladder or ""
    name = (named or "").strip() or by_default
    if not name or name == NO_LADDER:
        return None
    if name in settings.ladders:
        return Chosen(name, settings.ladders[name])
    found = Obstacles()
    message = (
        f'{LADDER}: "{shortened(name, 63)}" is no ladder of the cluster\'s settings: {meant(name, settings.ladders)}'
    )
    found.add([does_not_fit(message)])
    return found.refusal()


def meant(name: str, known: Collection[str]) -> str:
    """Return the remedy for a name that is not known: the nearest one, or all."""
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f"did you mean {near[0]}?"
    return f"name one of {', '.join(sorted(known))}" if known else "there is none, add it to the settings"


def rungs_of(ladder: Ladder, settings: ClusterSettings) -> tuple[RungSpec, ...]:
    """Return the rungs of a ladder, each zone of a place as one."""
    return tuple(
        RungSpec(
            place=rung.place,
            zone=zone,
            capacity=Capacity(
                place.capacity,
                place.reservation,
                (place.max_run or settings.max_run_duration) if place.capacity is CapacityKind.FLEX_START else None,
            ),
            lasts=rung.lasts,
        )
        for rung in ladder.rungs
        for place in [settings.places[rung.place]]
        for zone in place.zones
    )


def laddered(
    chosen: Chosen, plan: Callable[[RungSpec], SliceSpec | Refusal], settings: ClusterSettings
) -> SliceSpec | Refusal:
    """Return the spec at the first rung that the pods can use, with all rungs; a Refusal if they can use none."""
    rungs = rungs_of(chosen.ladder, settings)
    most = [rung.most_usd_an_hour for rung in chosen.ladder.rungs for _ in settings.places[rung.place].zones]
    planned = [plan(rung) for rung in rungs]
    known = tuple(_known(*each, settings) for each in zip(rungs, planned, most, strict=True))
    if all(each.against for each in known):
        return _none_fits(chosen.name, known, planned)
    key = f"{chosen.name}@{digest(repr((chosen.ladder, rungs))):x}"
    some = next(
        made for made, rung in zip(planned, known, strict=True) if isinstance(made, SliceSpec) and not rung.against
    )
    return at_rung(replace(some, ladder=key, rungs=known), 0)


def _known(rung: RungSpec, made: SliceSpec | Refusal, most: float | None, settings: ClusterSettings) -> RungSpec:
    if isinstance(made, Refusal):
        return replace(rung, against=shortened(_WHOSE.sub("", made.message, count=1).rstrip("."), _AGAINST))
    return replace(rung, capacity=made.capacity, taints=made.taints, against=_too_dear(made, most, settings))


def _too_dear(spec: SliceSpec, most: float | None, settings: ClusterSettings) -> str:
    """Return that all chips of a workload cost more an hour than a rung may, by list price; empty: they do not."""
    price = price_of(spec, settings)
    if most is None or price.reserved:
        return ""
    if price.usd_per_hour is None:
        return f"most_usd_an_hour: at most {most:,.2f} dollars an hour, and its price is not known"
    dollars = price.usd_per_hour * max(1, spec.jobset_chips / spec.chips)
    if dollars <= most:
        return ""
    chips = max(spec.jobset_chips, spec.chips)
    return f"most_usd_an_hour: {chips} chips cost {dollars:,.2f} dollars an hour, and at most {most:,.2f} are allowed"


def _none_fits(name: str, known: Sequence[RungSpec], planned: Sequence[SliceSpec | Refusal]) -> Refusal:
    """Return why a ladder has no rung for these pods: what is against all of them, or what is against each."""
    refusals = [each for each in planned if isinstance(each, Refusal)]
    if len(refusals) == len(known) and len({each.message for each in refusals}) == 1:
        return refusals[0]
    reason = refusals[0].reason if len(refusals) == len(known) else Reason.NOT_ALLOWED
    each = "; ".join(f"rung {number} ({rung.how}): {rung.against}" for number, rung in enumerate(known, 1))
    return Refusal(reason=reason, message=shortened(f"{LADDER}: no rung of {name} is for these pods: {each}."))
