"""The stories of seeds, as YAML too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import yaml

from tests.builders import a_request, joining_by_kubeadm, settings
from tests.domain.asking import FLEX, SPOT
from tests.manifests import a_manifest
from tests.relay.objects import container
from tpu_slices.domain.model.capacity import LADDER
from tpu_slices.domain.model.clusters import Allowed, Limits, Policy
from tpu_slices.domain.model.facts import TemplateRequest, Toleration
from tpu_slices.domain.model.slices import CapacityKind, OwnerKind
from tpu_slices.domain.planning.host_labels import FLEX_START, NODE_POOL, RESERVATION, TOPOLOGY
from tpu_slices.domain.planning.host_labels import SPOT as SPOT_SELECTOR
from tpu_slices.domain.planning.sharing import share_slice
from tpu_slices.wire.readers import READERS
from tpu_slices.wire.workloads import Json
from tpu_slices_simulator.chance import Chance
from tpu_slices_simulator.story import PER_MINUTE, Fault, Kind, Plot, Story

PLAIN: dict[str, Any] = {
    "slices": 1,
    "shape": "4x4",
    "namespace": "research",
    "flex_start": False,
    "spot": False,
    "scatters": False,
    "shared": False,
    "gang": False,
    "tolerates": False,
    "ladder": "",
    "ends": None,
    "deleted": False,
    "again": 0,
    "suspended": [],
    "kind": "JOBSET",
    "edited": [],
}
"""What a JobSet is unless its story says otherwise."""


TOLERATES_SPOT = Toleration(key=SPOT_SELECTOR, operator="Exists")
HELD_BRIEFLY: dict[str, Any] = {"gang_hold_for": timedelta(minutes=20), "gang_hold_at_most": timedelta(hours=1)}
"""How long gangs are held here: so that many are let go within a story."""
FIRST_OF_GANGS = 1000
"""From this seed on, workloads are gangs in each other story."""
ANOTHER_SHAPE, NO_TPU = "another shape", "no TPU"
"""What the pods of a workload request after it was edited."""


def a_plot(
    name: str,
    at: int,
    *,
    slices: int = 1,
    shape: str = "4x4",
    flex_start: bool = False,
    spot: bool = False,
    scatters: bool = False,
    shared: bool = False,
    gang: bool = False,
    tolerates: bool = False,
    ladder: str = "",
    kind: OwnerKind = OwnerKind.JOBSET,
    edited: tuple[tuple[int, str], ...] = (),
    reservation: str = "",
    **more: Any,
) -> Plot:
    """Return a workload of so many slices of one kind; `edited`: when, and what its pods request then.

    `scatters`: whether nothing keeps the pods of a Job together where nothing pins them. `shared`: whether each pod is
    of a Job of its own. `gang`: whether its pods start together. `tolerates`: whether they may come to spot hosts that
    they do not select. `ladder`: which one it names.
    """
    plain = a_request(tolerations=(TOLERATES_SPOT,) if tolerates else ())
    request = _of_shape(FLEX if flex_start else SPOT if spot else plain, shape)
    request = _kept(request, scatters=scatters or shared)
    if reservation:
        request = replace(request, node_selector=(*request.node_selector, (RESERVATION, reservation)))
    named = ((LADDER, ladder),) if ladder else ()
    request = replace(request, gang="all" if gang else "", requested_annotations=named)
    edits = tuple((minute, _edited(kind, slices, what, scatters=scatters)) for minute, what in edited)
    manifest = a_manifest(kind, slices, request, shared=shared)
    return Plot(name=name, at=at, kind=kind, manifest=manifest, edits=edits, **more)


def _of_shape(request: TemplateRequest, shape: str) -> TemplateRequest:
    selector = {**dict(request.node_selector), TOPOLOGY: shape}
    return replace(request, topology=shape, node_selector=tuple(selector.items()))


def _kept(request: TemplateRequest, *, scatters: bool) -> TemplateRequest:
    return request if scatters else replace(request, exclusive_topology=NODE_POOL)


def _edited(kind: OwnerKind, slices: int, what: str, *, scatters: bool) -> Json:
    if what == ANOTHER_SHAPE:
        return a_manifest(kind, slices, _kept(a_request(topology="4x8"), scatters=scatters))
    made = a_manifest(kind, slices, _kept(a_request(), scatters=scatters))
    made["spec"]["leaderWorkerTemplate"]["workerTemplate"] = {"spec": {"containers": [container(0)]}}
    return made


def _asked(plot: Plot) -> TemplateRequest:
    [request] = READERS[plot.kind].requests(plot.manifest)
    return request


def is_flex_start(plot: Plot) -> bool:
    return FLEX_START in dict(_asked(plot).node_selector)


def is_spot(plot: Plot) -> bool:
    return SPOT_SELECTOR in dict(_asked(plot).node_selector)


def scatters(plot: Plot) -> bool:
    return not _asked(plot).exclusive_topology and plot.kind is not OwnerKind.JOB


def shares_a_slice(plot: Plot) -> bool:
    return share_slice(_asked(plot))


def is_a_gang(plot: Plot) -> bool:
    return bool(_asked(plot).gang)


def shape_of(plot: Plot) -> str:
    return _asked(plot).topology or ""


def tolerates_spot(plot: Plot) -> bool:
    return TOLERATES_SPOT in _asked(plot).tolerations


def ladder_named(plot: Plot) -> str:
    """Return the ladder that a workload names; empty: it names none."""
    return str((plot.manifest["metadata"].get("annotations") or {}).get(LADDER, ""))


def remade(plot: Plot, **changes: Any) -> Plot:
    """Return a workload that is otherwise only as the changes say, with the same life."""
    fields: dict[str, Any] = {
        "slices": plot.slices,
        "shape": shape_of(plot),
        "flex_start": is_flex_start(plot),
        "spot": is_spot(plot),
        "scatters": scatters(plot),
        "shared": shares_a_slice(plot),
        "gang": is_a_gang(plot),
        "tolerates": tolerates_spot(plot),
        "ladder": ladder_named(plot),
        **changes,
    }
    fields["gang"] = fields["gang"] and not fields["flex_start"]
    made = a_plot(plot.name, plot.at, kind=plot.kind, edited=tuple(_edits(plot)), **fields)
    return replace(plot, manifest=made.manifest, edits=made.edits)


def _edits(plot: Plot) -> Iterator[tuple[int, str]]:
    for minute, manifest in plot.edits:
        another = _edited(plot.kind, plot.slices, ANOTHER_SHAPE, scatters=scatters(plot))
        yield minute, ANOTHER_SHAPE if manifest == another else NO_TPU


def a_story(
    *,
    seed: int,
    minutes: int,
    chips: int | None = None,
    chips_per_namespace: int | None = None,
    operations: int = 5,
    compute: bool = False,
    **more: Any,
) -> Story:
    """Return a story in a cluster with limits of chips, and one of operations at a time; GKE's own is 5.

    `compute`: a self-managed cluster on Compute Engine, whose hosts join with a token.
    """
    allowed = Allowed(chips_per_namespace=chips_per_namespace, reservations=("*",))
    policy = Policy(chips_per_cluster=chips, everyone=allowed)
    rules: dict[str, Any] = {"policy": policy, "limits": Limits(operations=operations, **HELD_BRIEFLY)}
    cluster = joining_by_kubeadm(**rules) if compute else settings(gke_id="first", **rules)
    return Story(seed=seed, minutes=minutes, settings=cluster, **more)


def to_yaml(story: Story) -> str:
    fields = {
        "seed": story.seed,
        "minutes": story.minutes,
        "chips": story.settings.policy.chips_per_cluster,
        "operations": story.settings.limits.operations,
        "compute": story.settings.self_managed,
        "crosses": story.crosses,
        "slow_scheduler": story.slow_scheduler,
        "flapping": story.flapping,
        "policy_off": story.policy_off,
        "set_back": story.set_back,
        "operated": story.operated,
        "jobsets": [_told(each) for each in story.jobsets],
        "faults": [_fault_told(each) for each in story.faults],
    }
    return yaml.safe_dump(fields, sort_keys=False)


def _told(plot: Plot) -> dict[str, Any]:
    fields = {
        "name": plot.name,
        "at": plot.at,
        "slices": plot.slices,
        "shape": shape_of(plot),
        "namespace": plot.namespace,
        "flex_start": is_flex_start(plot),
        "spot": is_spot(plot),
        "scatters": scatters(plot),
        "shared": shares_a_slice(plot),
        "gang": is_a_gang(plot),
        "tolerates": tolerates_spot(plot),
        "ladder": ladder_named(plot),
        "ends": plot.ends,
        "deleted": plot.deleted,
        "again": plot.again,
        "suspended": [list(each) for each in plot.suspended],
        "kind": plot.kind.name,
        "edited": [list(each) for each in _edits(plot)],
    }
    return {name: value for name, value in fields.items() if name not in PLAIN or value != PLAIN[name]}


def _fault_told(fault: Fault) -> dict[str, Any]:
    fields = {"kind": fault.kind.value, "at": fault.at, "lasts": fault.lasts, "share": fault.share}
    where: dict[str, Any] = {"zones": list(fault.zones), "capacity": fault.capacity and fault.capacity.value}
    where |= {"hosts": fault.hosts if fault.hosts > 1 else None, "for_good": fault.for_good}
    return {**fields, **{name: value for name, value in where.items() if value}}


def _fault_read(told: dict[str, Any]) -> Fault:
    capacity = CapacityKind(told["capacity"]) if "capacity" in told else None
    zones = tuple(told.get("zones", ()))
    return Fault(**{**told, "kind": Kind(told["kind"]), "zones": zones, "capacity": capacity})


def _read(told: dict[str, Any]) -> dict[str, Any]:
    times = {name: tuple(tuple(each) for each in told.get(name, ())) for name in ("suspended", "edited")}
    return {**told, **times, "kind": OwnerKind[told.get("kind", PLAIN["kind"])]}


def from_yaml(text: str) -> Story:
    fields = yaml.safe_load(text)
    jobsets = (a_plot(**_read(each)) for each in fields.pop("jobsets", ()))
    faults = map(_fault_read, fields.pop("faults", ()))
    return a_story(**fields, jobsets=tuple(jobsets), faults=tuple(faults))


KINDS = (*[OwnerKind.JOBSET] * 6, OwnerKind.JOB, OwnerKind.LEADER_WORKER_SET)
SHARES = (0.02, 0.1, 0.3, 1.0)
SHAPES = ("4x4", "4x4", "2x4", "4x8")
ONE_HOST = "2x2"
NAMESPACES = ("research", "research", "vision")


def story_of(seed: int) -> Story:
    """Return the story that a seed draws; see FIRST_OF_GANGS."""
    story = _drawn(seed)
    return in_gangs(story) if seed >= FIRST_OF_GANGS and seed % 2 else story


def in_gangs(story: Story) -> Story:
    """Return a story in which the pods of each workload start together, unless its hosts come by flex-start.

    In one story of four, one workload has more slices than any other.
    """
    chance = Chance(f"gangs {story.seed}")
    large = next(filter(_may_be_large, story.jobsets), None) if chance.happens(0.25, "large") else None
    slices = chance.between(4, 8, "slices")
    return replace(
        story,
        jobsets=tuple(
            remade(plot, gang=True, slices=slices) if plot is large else remade(plot, gang=True)
            for plot in story.jobsets
        ),
    )


def _may_be_large(plot: Plot) -> bool:
    """Return whether a workload can have many slices: a Job has one, and so has one whose Jobs share a slice."""
    return plot.kind is not OwnerKind.JOB and not shares_a_slice(plot) and not is_flex_start(plot)


def _drawn(seed: int) -> Story:
    """Return the story that is drawn of a seed.

    Pools whose labels were replaced are known by their records alone: a database that is set back loses them for good.
    """
    chance = Chance(f"story {seed}")
    minutes = chance.between(60, 240, "minutes")
    compute, crosses = chance.happens(0.25, "compute"), chance.happens(0.5, "crosses")
    set_back = chance.between(11, minutes, "set back") if chance.happens(0.15, "is set back") else None
    faults = [_fault(chance, number, minutes) for number in range(chance.between(0, 10, "faults"))]
    return a_story(
        seed=seed,
        minutes=minutes,
        chips=chance.pick((None, 64, 96), "chips"),
        operations=chance.pick((5, 5, 2), "operations"),
        compute=compute,
        crosses=crosses,
        slow_scheduler=chance.happens(0.5, "slow scheduler"),
        flapping=chance.happens(0.2, "flapping"),
        policy_off=chance.between(1, minutes, "policy off") if chance.happens(0.2, "policy is off") else None,
        set_back=set_back,
        operated=chance.happens(0.3, "operated"),
        jobsets=tuple(
            _plot(chance, number, minutes, compute=compute, pinned=not crosses) for number in range(_how_many(chance))
        ),
        faults=tuple(each for each in faults if set_back is None or each.kind is not Kind.LABELS_REPLACED),
    )


def level(story: Story) -> Story:
    """Return a story whose only fault is that all news is lost, for good: repetition and sweeps are left."""
    return replace(story, faults=(Fault(kind=Kind.NEWS_LOST, at=0, lasts=10 * story.minutes + 1_000, for_good=True),))


def _how_many(chance: Chance) -> int:
    """Return how many JobSets there are: in one story of twenty, more than may be deleted at once."""
    return 14 if chance.happens(0.05, "a crowd") else chance.between(1, 9, "jobsets")


def _plot(chance: Chance, number: int, minutes: int, *, compute: bool, pinned: bool) -> Plot:
    """Return a workload; where nothing pins pods, one whose pods something else keeps together."""
    at = chance.between(0, minutes - 30, number, "at")
    ends = chance.between(at + 5, minutes, number, "ends") if chance.happens(0.6, number, "ends?") else None
    deleted, again = chance.happens(0.5, number, "deleted"), int(chance.happens(0.3, number, "again"))
    if chance.happens(0.1, number, "again and again"):
        ends, deleted, again = at + chance.between(1, 4, number, "brief"), True, chance.between(2, 12, number, "lives")
    last = minutes if ends is None else ends
    since = chance.between(at + 1, last, number, "suspended")
    until = chance.between(since + 1, since + 30, number, "resumed")
    kind = chance.pick(KINDS, number, "kind")
    stops = kind is not OwnerKind.LEADER_WORKER_SET
    what = chance.pick((ANOTHER_SHAPE, NO_TPU), number, "edited")
    scattered = pinned and kind is not OwnerKind.JOB and chance.happens(0.5, number, "scatters")
    shared = scattered and kind is OwnerKind.JOBSET and chance.happens(0.4, number, "shared")
    several = kind is not OwnerKind.JOB and not shared
    return a_plot(
        f"job-{number}",
        at,
        kind=kind,
        slices=chance.pick((1, 1, 2, 3), number, "slices") if several else 1,
        shape=ONE_HOST if kind is OwnerKind.JOB and not pinned else chance.pick(SHAPES, number, "shape"),
        scatters=scattered,
        shared=shared,
        namespace=chance.pick(NAMESPACES, number, "namespace"),
        flex_start=not compute and chance.happens(0.2, number, "flex-start"),
        spot=chance.happens(0.3, number, "spot"),
        ends=ends,
        deleted=deleted,
        again=again if deleted and ends is not None else 0,
        suspended=((since, until),) if stops and until < last and chance.happens(0.3, number, "suspended?") else (),
        edited=((since, what),) if not stops and chance.happens(0.5, number, "edited?") else (),
    )


def _fault(chance: Chance, number: int, minutes: int) -> Fault:
    kind = chance.pick(tuple(Kind), "kind", number)
    share = chance.pick(SHARES[:3] if kind is Kind.FUNCTIONS_CRASH else SHARES, "share", number)
    return Fault(
        kind=kind,
        at=chance.between(0, minutes - 10, "from", number),
        lasts=chance.pick((5, 20, 60, 120), "lasts", number),
        share=share / 10 if kind in PER_MINUTE else share,
    )
