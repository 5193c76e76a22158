"""Which gangs a workload has, what is told of each, and what goes wrong with it although its slices can be had. Pure.

| a gang                                          | what is told                                                      |
|-------------------------------------------------|-------------------------------------------------------------------|
| of several slices                               | that they come together or not at all, and for how long they wait |
| with a slice that is refused                    | that none is made                                                 |
| whose pods nothing may hold                     | they start as slices come, on a part of them                      |
| of Jobs with a deadline                         | it runs on while their pods are held                              |
| in a queue of Kueue without a check of ours     | Kueue evicts it if its pods do not run in time                    |

Where the admission policy makes gangs of JobSets that do not say so, those that are not created yet are such.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tpu_slices.domain.model.clusters import ClusterSettings, Policy
from tpu_slices.domain.model.facts import Pinning, TemplateRequest
from tpu_slices.domain.model.gangs import ADMISSION_CHECKS, GANG, GangOf, Gangs
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.domain.model.texts import duration
from tpu_slices.domain.planning.gangs import GangSize, beyond_limits
from tpu_slices.domain.planning.specs import gangs_of
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.domain.reporting.gating import GATES
from tpu_slices.wire.gangs import gates_of
from tpu_slices.wire.workloads import Json, annotations_of
from tpu_slices_cli.applied.queues import QUEUE, is_checked
from tpu_slices_cli.applied.world import World, named, templates_of


@dataclass(frozen=True, slots=True)
class Gang:
    """Claims of a workload whose pods start together."""

    body: Json
    kind: OwnerKind
    name: str
    size: GangSize
    requests: tuple[TemplateRequest, ...]
    settings: ClusterSettings
    pinning: Pinning | None

    @property
    def whose(self) -> str:
        return named(self.body) if self.name == GangOf.ALL else f"{named(self.body)}, gang {self.name}"

    @property
    def hold_for(self) -> timedelta:
        """For how long slices that stand are held while others cannot be made."""
        asked = max(each.gang_hold_for for each in self.requests)
        return timedelta(seconds=asked) if asked else self.settings.limits.gang_hold_for

    def has_any(self, replicated_jobs: Container[str]) -> bool:
        """Return whether one of these replicatedJobs is of it."""
        return any(each.replicated_job in replicated_jobs for each in self.requests)

    def as_json(self, refused: Mapping[str, int], namespace: str) -> dict[str, Any]:
        """Return what is told of it; `refused`: how many slices of each replicatedJob are."""
        limits = self.settings.limits
        return {
            "kind": self.kind.value,
            "namespace": namespace,
            "name": self.body["metadata"].get("name"),
            "gang": self.name,
            "slices": self.size.slices,
            "chips": self.size.chips,
            "hold_for": duration(self.hold_for),
            "hold_at_most": duration(limits.gang_hold_at_most),
            "message": self._message(sum(refused.get(each.replicated_job, 0) for each in self.requests), namespace),
        }

    def _message(self, refused: int, namespace: str) -> str:
        slices, limits = self.size.slices, self.settings.limits
        if refused:
            are = "is" if refused == 1 else "are"
            return f"{self._begins} {refused} of its {slices} slices {are} refused, so that none is made"
        if slices == 1:
            return f"{self._begins} one slice, whose pods start together, once all of its hosts are ready"
        return (
            f"{self._begins} {slices} slices, {self.size.chips} chips, together or not at all: nothing is bought "
            f"before all of them may be{self._limits(namespace)}, and their pods start together. Slices that stand are "
            f"held, and billed, for {duration(self.hold_for)} while others cannot be made, for "
            f"{duration(limits.gang_hold_at_most)} at most, and then let go"
        )

    @property
    def _begins(self) -> str:
        return f"{self.whose} is a gang:" if self.name == GangOf.ALL else f"{self.whose}:"

    def _limits(self, namespace: str) -> str:
        known = [f"policy.{setting}: {chips}" for setting, chips in self.settings.policy.limits(namespace).items()]
        return f" ({', '.join(known)})" if known else ""

    def templates(self) -> Iterator[tuple[str, Json]]:
        """Yield the pod templates that are of it, each with the path of its spec's parent."""
        ours = {each.replicated_job for each in self.requests}
        found = list(templates_of(self.body, self.kind))
        if self.kind is not OwnerKind.JOBSET:
            yield from found
            return
        for job, each in zip(self.body["spec"]["replicatedJobs"], found, strict=True):
            if job["name"] in ours:
                yield each


def as_meant(body: Json, kind: OwnerKind, requests: Sequence[TemplateRequest], settings: ClusterSettings) -> Json:
    """Return a workload as the admission policy makes it, by the cluster's setting which workloads are gangs."""
    new = kind is OwnerKind.JOBSET and "uid" not in body["metadata"]
    several = sum(each.replicas for each in requests) > 1
    if not new or not several or settings.gangs is not Gangs.MULTISLICE or GANG in annotations_of(body):
        return body
    annotations = {**annotations_of(body), GANG: GangOf.ALL.value}
    return {**body, "metadata": {**body["metadata"], "annotations": annotations}}


def never_together(gang: GangSize, namespace: str, policy: Policy) -> Refusal | None:
    """Return why no slice of a gang is made, however much capacity is free; None: they may be."""
    why = next(beyond_limits(gang, namespace, policy), None)
    return None if why is None else Refusal(reason=Reason.GANG_TOO_LARGE, message=f"{why}.")


def gangs_in(
    body: Json,
    kind: OwnerKind,
    requests: Sequence[TemplateRequest],
    settings: ClusterSettings,
    pinning: Pinning | None,
) -> Iterator[Gang]:
    """Yield the gangs of a workload."""
    for name, size in gangs_of(requests, settings.accelerators).items():
        if name:
            some = tuple(each for each in requests if each.gang == name)
            yield Gang(body, kind, name, size, some, settings, pinning)


def go_wrong(gangs: Iterable[Gang], world: World) -> Iterator[str]:
    """Yield what goes wrong with gangs whose slices can be had, each with the remedy."""
    for gang in gangs:
        yield from _not_held(gang)
        yield from _deadlines(gang)
        yield from _evicted(gang, world)


def _not_held(gang: Gang) -> Iterator[str]:
    """Yield that nothing may hold the pods of a gang, whose templates have no gate: they start as slices come."""
    if all(GANG in gates_of(template) for _, template in gang.templates()):
        return
    if gang.pinning is Pinning.NOTHING:
        yield (
            f"{gang.whose}: nothing holds its pods until all of its slices stand, as neither the admission policy nor "
            "the webhook is in force: they start as slices come (GangNotHeld). Have the operator of the cluster apply "
            f"one, or add {GATES} to its pod templates"
        )
    elif gang.pinning is None:
        yield (
            f"{gang.whose}: only the admission policy or the webhook holds its pods until all of its slices stand: "
            "where neither is in force (`slices doctor` says whether pods are pinned) they start as slices come, "
            f"unless you add {GATES} to its pod templates"
        )


def _deadlines(gang: Gang) -> Iterator[str]:
    for where, job_spec in _job_specs(gang):
        if (seconds := job_spec.get("activeDeadlineSeconds")) is not None:
            yield (
                f"{gang.whose}: {where}.activeDeadlineSeconds is {seconds}, and runs on while the pods are held: the "
                "Job fails if the slices come later: remove it, or add as long as they may take"
            )


def _job_specs(gang: Gang) -> Iterator[tuple[str, Json]]:
    spec = gang.body["spec"]
    ours = {each.replicated_job for each in gang.requests}
    if gang.kind is OwnerKind.JOB:
        yield "spec", spec
    elif gang.kind is OwnerKind.JOBSET:
        for index, job in enumerate(spec["replicatedJobs"]):
            if job["name"] in ours:
                yield f"spec.replicatedJobs[{index}].template.spec", job["template"]["spec"]


def _evicted(gang: Gang, world: World) -> Iterator[str]:
    """Yield that Kueue may evict a gang while its slices are made, unless its queue is known to wait for them."""
    labels: Mapping[str, Any] = gang.body["metadata"].get("labels") or {}
    queue = labels.get(QUEUE)
    if gang.size.slices > 1 and queue and not is_checked(queue, world.namespace_of(gang.body), world):
        longest = duration(gang.settings.limits.gang_hold_at_most)
        yield (
            f"{gang.whose}: {QUEUE} is {queue}, and by waitForPodsReady, which is on by default since 0.19, Kueue "
            "evicts it unless all of its pods run within 30 minutes, as they may not while slices are made: have the "
            f"operator of Kueue give the queue an AdmissionCheck of {ADMISSION_CHECKS}, so that this time begins once "
            f"all slices stand, or set waitForPodsReady.timeout and recoveryTimeout above {longest}, or turn it off"
        )
