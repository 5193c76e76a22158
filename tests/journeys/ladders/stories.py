"""A cluster with places and ladders, and what its workloads ask for where."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from tests.builders import MINUTE, a_request, settings
from tests.world import World
from tpu_slices.domain.model.capacity import LADDER, Ladder, Place, Rung, ZonesOf
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import TemplateRequest, Toleration
from tpu_slices.domain.model.slices import CapacityKind
from tpu_slices_simulator.fakes.backend import Verb
from tpu_slices_simulator.live import LiveWorkload

B, C, D = "us-central2-b", "us-central2-c", "us-central2-d"
SPOT, FLEX, LIST = CapacityKind.SPOT, CapacityKind.FLEX_START, CapacityKind.ON_DEMAND
TOLERATES_SPOT = Toleration(key="cloud.google.com/gke-spot", operator="Exists")
PLACES = {
    "spot": Place(capacity=SPOT, zones=(B,)),
    "spot-any": Place(capacity=SPOT, zones=(B, C, D)),
    "flex": Place(capacity=FLEX, zones=(B,)),
    "list": Place(capacity=LIST, zones=(B,)),
    "list-elsewhere": Place(capacity=LIST, zones=(C,)),
}


def laddered(*rungs: Rung, zones: ZonesOf = ZonesOf.ONE, **changes: Any) -> ClusterSettings:
    """Return the settings of a cluster whose workloads have a ladder of these rungs."""
    fields = {"places": PLACES, "ladders": {"patient": Ladder(rungs=rungs, zones=zones)}, "ladder": "patient"}
    return settings(**{**fields, **changes})


def rung(place: str, minutes: int | None = None, **changes: Any) -> Rung:
    return Rung(place=place, lasts=timedelta(minutes=minutes) if minutes is not None else None, **changes)


def request(slices: int = 1, **changes: Any) -> TemplateRequest:
    return a_request(**{"replicas": slices, "tolerations": (TOLERATES_SPOT,), **changes})


def appears(world: World, name: str, slices: int = 1, **changes: Any) -> LiveWorkload:
    return world.jobset_appears(name, slices=slices, request=request(slices, **changes))


def naming(ladder: str) -> dict[str, Any]:
    return {"requested_annotations": ((LADDER, ladder),)}


def asked(world: World, name: str = "") -> Counter[str]:
    """Return how often creations were ordered, by capacity and zone; those for one workload if it is named."""
    calls = [call for call in world.backend.calls if call.verb is Verb.CREATE and name in call.pool]
    return Counter(call.spec.how for call in calls if call.spec is not None)


def ordered(world: World, name: str) -> list[tuple[datetime, str]]:
    """Return when and where creations were ordered for a workload."""
    calls = (call for call in world.backend.calls if call.verb is Verb.CREATE and name in call.pool)
    return [(call.at, call.spec.how) for call in calls if call.spec is not None]


def had(world: World) -> Counter[str]:
    """Return where the pools are that stand."""
    specs = [pool.order.spec for pool in world.backend.pools.values() if pool.order is not None]
    return Counter(spec.how for spec in specs if spec is not None)


def messages(world: World, jobset: LiveWorkload) -> str:
    stored = world.store.workloads(world.settings.cluster, [jobset.ref.owner.uid]).get(jobset.ref.owner.uid)
    report = stored.value.report if stored is not None else None
    return report.message if report is not None else ""


__all__ = ["MINUTE"]
