"""Reads which gangs the claims of workloads are of, and what holds their pods, from Kubernetes' JSON. Pure.

| a workload's annotation GANG | a pod template with chips is of the gang                                              |
|------------------------------|---------------------------------------------------------------------------------------|
| `all`, `true`                | `all`, with the others                                                                |
| `replicatedjob`              | of its replicatedJob's name; of a Job or LeaderWorkerSet `all`                        |
| `none`, `false`              | none                                                                                  |
| is empty, or is not there    | `all` if the template has the label GANG: `true` or the scheduling gate GANG, or none |
| is anything else             | it is refused, by a ValueError                                                        |
| is beside one like `GANG-…`  | the same: none says more of a gang, as how many of its slices are enough; but for     |
|                              | `GANG-hold-for`, for how long its slices are held                                     |

What comes to be only after another replicatedJob is complete (`dependsOn`, however indirectly) cannot stand together
with that: instead of `all` it is of `all after NAME`, of the last of these in the order of the spec. Jobs that no pod
leads get no slices, and are of no gang.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta

from tpu_slices.domain.model.facts import TemplateRequest
from tpu_slices.domain.model.gangs import GANG, GANG_HOLD_FOR, GangOf
from tpu_slices.domain.model.texts import as_duration
from tpu_slices.wire.jobs import why_nobody_leads
from tpu_slices.wire.workloads import Json, annotations_of, reading

ALL = "all"
"""The gang of all claims of a workload."""
_VALUES: Mapping[str, GangOf | None] = {
    **{each.value: each for each in GangOf},
    "true": GangOf.ALL,
    "false": GangOf.NONE,
    "": None,
}
_LONGEST = timedelta(days=365)
_SHOWN = 63
"""Characters of what a tenant wrote."""

Requests = Callable[[Json], tuple[TemplateRequest, ...]]


def of_a_jobset(requests_of: Requests) -> Requests:
    """Return what reads a JobSet's requests with the gangs that they are of."""

    def requests(obj: Json) -> tuple[TemplateRequest, ...]:
        found, asked = requests_of(obj), _asked(obj)
        with reading("spec.replicatedJobs"):
            jobs = obj["spec"].get("replicatedJobs") or ()
            together = _together(jobs)
            led = {job["name"] for job in jobs if not why_nobody_leads(obj, job)}
            match asked:
                case GangOf.ALL:
                    gangs = together
                case GangOf.REPLICATED_JOB:
                    gangs = {name: name for name in together}
                case GangOf.NONE:
                    gangs = {}
                case None:
                    gangs = {job["name"]: together[job["name"]] for job in jobs if _asks(_template(job))}
        gangs = {name: gang for name, gang in gangs.items() if name in led}
        held = _hold_for(obj)
        return tuple(_of_gang(each, gangs.get(each.replicated_job, ""), held) for each in found)

    return requests


def of_a_job(requests_of: Requests) -> Requests:
    """Return what reads a Job's request with the gang that it is of."""
    return _of_one(requests_of, lambda obj: (obj["spec"]["template"],))


def of_groups(requests_of: Requests) -> Requests:
    """Return what reads a LeaderWorkerSet's request with the gang that it is of."""

    def templates(obj: Json) -> tuple[Json, ...]:
        template = obj["spec"]["leaderWorkerTemplate"]
        return tuple(each for each in (template.get("leaderTemplate"), template["workerTemplate"]) if each is not None)

    return _of_one(requests_of, templates)


def _of_one(requests_of: Requests, templates: Callable[[Json], tuple[Json, ...]]) -> Requests:
    def requests(obj: Json) -> tuple[TemplateRequest, ...]:
        found, asked = requests_of(obj), _asked(obj)
        with reading("spec"):
            is_one = asked is not GangOf.NONE if asked else any(map(_asks, templates(obj)))
        held = _hold_for(obj)
        return tuple(_of_gang(each, ALL if is_one else "", held) for each in found)

    return requests


def _of_gang(request: TemplateRequest, gang: str, hold_for: int) -> TemplateRequest:
    return replace(request, gang=gang, gang_hold_for=hold_for if gang else 0)


def gates_of(pod: Json) -> tuple[str, ...]:
    """Return the names of the scheduling gates of a v1 Pod, or of a template."""
    return tuple(str(each.get("name")) for each in pod["spec"].get("schedulingGates") or ())


def _asked(obj: Json) -> GangOf | None:
    """Return what a workload's annotation says; None: nothing."""
    with reading("metadata"):
        annotations = annotations_of(obj)
    value, more = annotations.get(GANG, ""), _others(annotations)
    if more:
        raise ValueError(f"metadata.annotations[{more[0][: 2 * _SHOWN]}] is not supported: remove it")
    if value not in _VALUES:
        wrong = f'metadata.annotations[{GANG}]: "{value[:_SHOWN]}" is not supported'
        raise ValueError(f"{wrong}: set it to all (or true), replicatedjob, or none (or false)")
    return _VALUES[value]


def _others(annotations: Mapping[str, str]) -> list[str]:
    return sorted(key for key in annotations if key.startswith(f"{GANG}-") and key != GANG_HOLD_FOR)


def _hold_for(obj: Json) -> int:
    """Return for how many seconds slices of a workload's gangs are held; 0: it says nothing."""
    with reading("metadata"):
        written = annotations_of(obj).get(GANG_HOLD_FOR)
    if written is None:
        return 0
    try:
        seconds = as_duration(written).total_seconds()
    except ValueError:
        seconds = 0
    if not 1 <= seconds <= _LONGEST.total_seconds():
        wrong = f'metadata.annotations[{GANG_HOLD_FOR}]: "{written[:_SHOWN]}" is no duration'
        raise ValueError(f"{wrong} of a second to {_LONGEST.days} days: write it as 90s, 30m or 2h")
    return int(seconds)


def _asks(template: Json) -> bool:
    labels = (template.get("metadata") or {}).get("labels") or {}
    return labels.get(GANG) == "true" or GANG in gates_of(template)


def _template(replicated_job: Json) -> Json:
    template: Json = replicated_job["template"]["spec"]["template"]
    return template


def _together(jobs: tuple[Json, ...]) -> Mapping[str, str]:
    """Return the gang of each replicatedJob if all that can stand together do."""
    names: list[str] = [job["name"] for job in jobs]
    place = {name: index for index, name in enumerate(names)}
    after: dict[str, int] = {}
    for job in jobs:
        known = [each for each in job.get("dependsOn") or () if each["name"] in after]
        last = (place[each["name"]] if each["status"] == "Complete" else after[each["name"]] for each in known)
        after[job["name"]] = max(last, default=-1)
    return {name: ALL if last < 0 else f"{ALL} after {names[last][:_SHOWN]}" for name, last in after.items()}
